package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

// marker marks the processes of a call by a resource limit, which they inherit: each call has its own limit on the
// bytes of POSIX message queues, a few below what the system allows. Hardly any program uses those, and no mark takes
// more than half of them away.
type marker struct {
	hard uint64 // the hard limit, which marks leave as it is
	top  uint64 // marks are below it
	span uint64 // how many there are
}

// usualQueueBytes is the limit of most systems. Marks stay below it where the hard limit is higher or infinite.
const usualQueueBytes = 819200

// newMarker returns a marker for this system. One with a span of 0 makes no marks: the limit is too low to tell calls
// apart.
func newMarker() marker {
	const fewest = 2000 // marks, so that calls which run at the same time have different ones
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MSGQUEUE, &l) != nil || l.Max/2 < fewest {
		return marker{}
	}
	top := min(l.Max, usualQueueBytes)
	return marker{hard: l.Max, top: top, span: top / 2}
}

// of returns the mark of a call, 0 for none. Guards that run inside each other begin at different places.
func (m marker) of(call uint64) uint64 {
	if m.span == 0 {
		return 0
	}
	return m.top - 1 - (call+uint64(os.Getpid())*7919)%(m.span-1)
}

// set marks this process, and so what it starts until unset.
func (m *marker) set(mark uint64) (unset func()) {
	var before unix.Rlimit
	if mark == 0 {
		return func() {}
	}
	if unix.Prlimit(0, unix.RLIMIT_MSGQUEUE, &unix.Rlimit{Cur: mark, Max: m.hard}, &before) != nil {
		m.span = 0 // not allowed here: without marks, then
		return func() {}
	}
	return func() { _ = unix.Prlimit(0, unix.RLIMIT_MSGQUEUE, &before, nil) }
}

// read returns the mark that a process has.
func (m marker) read(pid int) (mark uint64, ok bool) {
	var l unix.Rlimit
	if m.span == 0 || unix.Prlimit(pid, unix.RLIMIT_MSGQUEUE, nil, &l) != nil {
		return 0, false
	}
	return l.Cur, l.Cur < m.top && l.Cur > m.top-1-m.span
}
