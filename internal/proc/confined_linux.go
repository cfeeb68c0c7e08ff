package proc

import (
	"syscall"

	"muster/internal/landlock"
)

// forkConfined starts a tool under a Landlock ruleset.
//
// A thread that is under a ruleset never comes out of it, so each tool has a thread of its own, which restricts itself
// and then forks. The tool inherits what the thread has. The thread waits until the tool has ended, because the kernel
// kills the tool when the thread dies (Pdeathsig). The Go runtime runs nothing else on it, and starts no thread from
// it.
//
// The tool could trace the thread, and so read and write the memory of the guard, if the guard were dumpable: see
// serve.
func (r *run) forkConfined(ruleset int, writable []string, path string, argv []string, attr *syscall.ProcAttr) error {
	r.thread = make(chan struct{})
	started := make(chan error)
	landlock.OnThread(func() {
		r.enterGroup()
		err := landlock.Restrict(ruleset, writable)
		if err == nil {
			r.pid, err = syscall.ForkExec(path, argv, attr)
		}
		started <- err
		if err == nil {
			<-r.thread
		}
	})
	err := <-started
	if err != nil && r.group != nil {
		r.group.Release() // the thread leaves it as it ends
		r.group = nil
	}
	return err
}

// enterGroup moves this thread into the group of the tool, for good: what is under a ruleset cannot leave it. A group
// of version 2 takes a process only at its start, by a call that is refused under a ruleset: there the guard counts.
func (r *run) enterGroup() {
	if r.group == nil {
		return
	}
	if _, isUnified := r.group.FD(); !isUnified {
		if _, err := r.group.Enter(); err == nil {
			return
		}
	}
	r.group.Release()
	r.group = nil
}

// endThread lets the thread of a confined tool end, after the tool.
func (r *run) endThread() {
	if r.thread != nil {
		close(r.thread)
	}
}
