package file_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"muster"
)

// Nobody writes any document of a frozen table, and everybody does afterwards.
func TestFreeze(t *testing.T) {
	root := t.TempDir()
	tasks := open(t, root).Table(muster.TableTasks)
	unlock, err := open(t, root).Freeze(t.Context(), muster.TableTasks)
	if err != nil {
		t.Fatal(err)
	}
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
