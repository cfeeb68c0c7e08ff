package git_test

import (
	"runtime"
	"sync"
	"testing"

	"muster/internal/testing/gittest"
)

// The kernel ends a git when the thread that started it ends. Threads of Go end at any time, as those that confine
// themselves do, and no git may end with one.
func TestGitOutlivesItsThread(t *testing.T) {
	repo := open(t, gittest.Repo(t, map[string]string{"a": "a\n"}))
	var gits sync.WaitGroup
	for range 8 {
		gits.Go(func() {
			for range 40 {
				if _, err := repo.Run(t.Context(), repo.CommonDir(), "rev-list", "--all", "--objects"); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	over := make(chan struct{})
	var threads sync.WaitGroup
	for range 8 {
		threads.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					runtime.LockOSThread() // the thread ends with the goroutine
				}()
				<-ended
				runtime.Gosched()
			}
		})
	}
	gits.Wait()
	close(over)
	threads.Wait()
}
