package proc

import (
	"maps"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// waiter waits for everything at once, on the one thread that does the guard's work. A start or an end that went from
// thread to thread would cost a tool more than all else that the guard does for it.
type waiter struct {
	socket int
	signal int // an eventfd that counts the SIGCHLD
}

// wakeReasons say why a wait ended. Several may be true: a tool whose processes end all the time must not keep the
// guard from reading the order to kill it.
type wakeReasons struct {
	readable bool // there is something to read, or the socket's end
	ended    bool // a process may have ended
}

// newWaiter makes SIGCHLD, which the Go runtime delivers on a channel, readable for poll.
func newWaiter(socket int, died <-chan os.Signal) (*waiter, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	go func() {
		one := []byte{0, 0, 0, 0, 0, 0, 0, 1} // any number does, in either order of bytes
		for range died {
			_, _ = unix.Write(fd, one) // it fails when it is full, and then it is readable anyway
		}
	}()
	return &waiter{socket: socket, signal: fd}, nil
}

// wait waits until something happens, or until the time has come; the zero time never comes.
func (w *waiter) wait(g *guard, until time.Time) (why wakeReasons) {
	polled := []unix.PollFd{{Fd: int32(w.socket), Events: unix.POLLIN}, {Fd: int32(w.signal), Events: unix.POLLIN}}
	runs := slices.Collect(maps.Values(g.running))
	for _, r := range runs { // poll ignores the descriptor -1
		polled = append(polled, unix.PollFd{Fd: int32(r.fd), Events: unix.POLLIN})
	}
	limit := -1
	// poll counts in whole milliseconds; one more, so that it does not return too early and spin.
	if !until.IsZero() {
		limit = max(0, int(time.Until(until)/time.Millisecond)+1)
	}
	_, err := unix.Poll(polled, limit)
	if err != nil { // interrupted, most likely by SIGCHLD
		why.ended = true
		return why
	}
	why.readable = polled[0].Revents != 0
	if polled[1].Revents != 0 {
		why.ended = true
		_, _ = unix.Read(w.signal, make([]byte, 8))
	}
	for i, r := range runs {
		if polled[i+2].Revents != 0 {
			why.ended = true
			r.closeFD() // a process that a debugger keeps from being reaped is told of by SIGCHLD later
		}
	}
	return why
}

// isDue reports whether a time has come; the zero time never comes.
func isDue(t time.Time) bool { return !t.IsZero() && !time.Now().Before(t) }

// earlier returns the time that comes first; the zero time never comes.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// closeFD closes the pidfd.
func (r *run) closeFD() {
	if r.fd >= 0 {
		_ = unix.Close(r.fd)
		r.fd = -1
	}
}
