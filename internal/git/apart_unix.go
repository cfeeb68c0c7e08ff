//go:build unix

package git

import (
	"os"
	"os/exec"
	"syscall"
)

// apart keeps git out of the terminal's process group: a Ctrl-C is for muster, which lets git's last write end.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// askToStop lets git remove its lock files.
func askToStop(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
