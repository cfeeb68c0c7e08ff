//go:build unix

package proc

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// newSession gives a program a session of its own: a process group and no terminal.
func newSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// ExitStatus is the exit status as a shell says it.
func ExitStatus(s *os.ProcessState) int {
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return s.ExitCode()
}

// tree is a program that was started and what can be found of its descendants.
type tree struct {
	pid int    // also the number of its session and process group
	tag string // is in the environment of its descendants

	mu     sync.Mutex
	reaped bool // its pid may be another's by now
}

// newTree returns the tree of a program that has just started.
func newTree(p *os.Process, tag string) (*tree, error) { return &tree{pid: p.Pid, tag: tag}, nil }

// kill kills the process group, and what the sweep finds outside of it.
func (t *tree) kill() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reaped {
		return nil
	}
	t.sweep()
	// ESRCH: the group is empty. EPERM: what is left in it is another user's.
	err := syscall.Kill(-t.pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) || errors.Is(err, syscall.EPERM) {
		return nil
	}
	return err
}

// setReaped notes that the program was reaped: from now on its pid may be another's and must not be killed.
func (t *tree) setReaped() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reaped = true
}

// defaultPath is searched when the environment of a command has no PATH.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// findProgram looks program up in path, as a shell does. A program with a slash is not looked up. Relative entries of
// a PATH are passed over: a repository must not be able to put its own git in front of the real one.
func findProgram(program, path string) (string, error) {
	if strings.Contains(program, "/") {
		return program, nil
	}
	if path == "" {
		path = defaultPath
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		full := filepath.Join(dir, program)
		if fi, err := os.Stat(full); err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0 {
			return full, nil
		}
	}
	return "", errNoProgram(program)
}

// shellProgram returns the program of a shell: its name, which is looked up in the PATH of the command.
func shellProgram(name string) string { return name }
