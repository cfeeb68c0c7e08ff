package file_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"muster"
	"muster/internal/durable"
	"muster/internal/paths"
)

// While all locks of a table are held, nobody writes any document of it, and afterwards everybody can.
func TestFreeze(t *testing.T) {
	root := t.TempDir()
	tasks := open(t, root).Table(muster.TableTasks)
	unlock, err := durable.New(durable.OS{}).LockAll(t.Context(), paths.Dir(root).TableLocks(muster.TableTasks))
	must(t, err)
	const n = 100 // enough for every lock there is
	put := func(ctx context.Context, want error) {
		t.Helper()
		var all sync.WaitGroup
		for id := range n {
			all.Go(func() {
				if _, err := tasks.Put(ctx, fmt.Sprint(id+1), []byte("{}"), muster.None); !errors.Is(err, want) {
					t.Errorf("task %d: %v, want %v", id+1, err, want)
				}
			})
		}
		all.Wait()
	}
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	put(short, context.DeadlineExceeded)
	unlock()
	put(t.Context(), nil)
}
