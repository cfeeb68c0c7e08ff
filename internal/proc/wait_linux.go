package proc

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// waiter is where the guard waits, on the one thread that does everything: a start or an end that had to be handed from
// thread to thread would cost the tool more than the rest of the guard does.
type waiter struct {
	socket int
	signal int // an eventfd that counts the SIGCHLD
	polled []unix.PollFd
	runs   []*run // of polled[2:]
}

// wakeup is what the guard was waiting for. Several may be true: whoever makes processes end without a pause must not
// keep it from being told to kill them.
type wakeup struct {
	spoken bool // there is something to read, or the socket's end
	ended  bool // a process may have ended
	late   bool // the time has come
}

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

// wait waits until something happens, and for no longer than until; the zero time is for ever.
func (w *waiter) wait(g *guard, until time.Time) (why wakeup) {
	w.polled = append(w.polled[:0], unix.PollFd{Fd: int32(w.socket), Events: unix.POLLIN}, unix.PollFd{Fd: int32(w.signal), Events: unix.POLLIN})
	w.runs = w.runs[:0]
	for _, r := range g.running {
		if r.fd >= 0 {
			w.polled = append(w.polled, unix.PollFd{Fd: int32(r.fd), Events: unix.POLLIN})
			w.runs = append(w.runs, r)
		}
	}
	limit := -1
	if !until.IsZero() {
		limit = max(0, int(time.Until(until)/time.Millisecond)+1)
	}
	_, err := unix.Poll(w.polled, limit)
	why.late = !until.IsZero() && !time.Now().Before(until)
	if err != nil { // interrupted, most likely by SIGCHLD
		why.ended = true
		return why
	}
	why.spoken = w.polled[0].Revents != 0
	if w.polled[1].Revents != 0 {
		why.ended = true
		_, _ = unix.Read(w.signal, make([]byte, 8))
	}
	for i, r := range w.runs {
		if w.polled[i+2].Revents != 0 {
			why.ended = true
			r.forgetFD() // what cannot be reaped now, because somebody traces it, is told by SIGCHLD later
		}
	}
	return why
}

// forgetFD closes the pidfd.
func (r *run) forgetFD() {
	if r.fd >= 0 {
		_ = unix.Close(r.fd)
		r.fd = -1
	}
}
