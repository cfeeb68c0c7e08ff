package proc

import (
	"runtime"
	"sync"
)

// thread is a thread of the system that lives as long as this process. What a program starts on it can be killed by the
// kernel when its parent dies: to the kernel the parent is the thread, and other threads of Go may end at any time.
type thread struct {
	once sync.Once
	work chan func()
}

func (t *thread) do(f func() error) error {
	t.once.Do(func() {
		t.work = make(chan func())
		go func() {
			runtime.LockOSThread()
			for f := range t.work {
				f()
			}
		}()
	})
	done := make(chan error, 1)
	t.work <- func() { done <- f() }
	return <-done
}
