//go:build unix

package detach

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// IsPossible reports whether a process can leave its terminal on this system.
const IsPossible = true

// pair returns the two ends of a pipe that goes both ways. No other process inherits them.
func pair() (ours, theirs *os.File, err error) {
	// The lock keeps a fork in another goroutine from inheriting the ends before they are marked.
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "child"), os.NewFile(uintptr(fds[1]), "parent"), nil
}

// isPipe reports whether a file descriptor is a socket, and keeps what this process starts from inheriting it. The
// variable may have come from elsewhere, with a number that means nothing here.
func isPipe(fd int) bool {
	var stat unix.Stat_t
	if fd < 3 || unix.Fstat(fd, &stat) != nil || stat.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return false
	}
	unix.CloseOnExec(fd)
	return unix.SetNonblock(fd, true) == nil // so that a read ends when the file is closed
}

// notify returns the signals that are passed on to the child. A terminal sends Ctrl-C and a hangup to both processes,
// and the child counts two that follow each other at once as one.
func notify() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 4)
	signal.Notify(c, syscall.SIGINT, syscall.SIGTERM)
	// A signal that is caught is no longer ignored in what is started, so under nohup the child would end at a hangup.
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(c, syscall.SIGHUP)
	}
	return c, func() { signal.Stop(c) }
}

// killedBy returns the exit code that a shell gives to a process which a signal has ended.
func killedBy(exit *exec.ExitError) int {
	if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return 128 + int(s.Signal())
	}
	return 1
}

// Leave lets the shell come back while this process goes on: it begins a session of its own, so that no signal of the
// terminal reaches it, and its standard input and output are /dev/null. The caller must have restored the terminal.
func (t *Terminal) Leave() error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("the terminal cannot be left: %w", err)
	}
	defer null.Close()
	// A process that leads its group cannot begin a session. This one is in the group of the first process.
	if _, err := unix.Setsid(); err != nil {
		return fmt.Errorf("the terminal cannot be left: %w", err)
	}
	var errs []error
	for fd := range 3 {
		errs = append(errs, dup(int(null.Fd()), fd))
	}
	return errors.Join(append(errs, t.tell())...)
}

// tell tells the first process to end. One that was killed a moment before needs no word, and this process goes on: it
// was told to.
func (t *Terminal) tell() error {
	t.hasLeft.Store(true)
	if _, err := t.pipe.WriteString(left); err != nil && !errors.Is(err, unix.EPIPE) {
		return err
	}
	return nil
}

// hasTerminal reports whether this process is in the foreground of its terminal. The kernel stops one in the background
// that sets the mode, which would be that of another program by then.
func hasTerminal(fd uintptr) bool {
	group, err := unix.IoctlGetInt(int(fd), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
