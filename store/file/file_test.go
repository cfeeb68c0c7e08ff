package file_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"muster"
	"muster/internal/durable"
	"muster/internal/paths"
	"muster/internal/testing/require"
	"muster/store/file"
	"muster/store/storetest"
)

func TestMain(m *testing.M) {
	if asProcess() {
		return
	}
	goleak.VerifyTestMain(m)
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) func() muster.Store {
		root := t.TempDir()
		return func() muster.Store { return open(t, root) }
	})
}

// The same, where the journal is rotated after every line or two.
func TestStoreThatRotates(t *testing.T) {
	storetest.Run(t, func(t *testing.T) func() muster.Store {
		root := t.TempDir()
		return func() muster.Store {
			s := open(t, root)
			s.RotateAt(40)
			return s
		}
	})
}

// open opens a handle that the caller closes.
func open(t testing.TB, root string) *file.Store {
	t.Helper()
	s, err := file.Open(root)
	require.NoError(t, err)
	return s
}

// While all locks of a table are held, nobody writes any document of it, and afterwards everybody can.
func TestFreeze(t *testing.T) {
	root := t.TempDir()
	tasks := open(t, root).Table(muster.TableTasks)
	unlock, err := durable.New(durable.OS{}).LockAll(t.Context(), paths.Dir(root).TableLocks(muster.TableTasks))
	require.NoError(t, err)
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
			if want != nil {
				all.Go(func() {
					if err := tasks.Delete(ctx, fmt.Sprint(id+1), muster.None); !errors.Is(err, want) {
						t.Errorf("deletion of task %d: %v, want %v", id+1, err, want)
					}
				})
			}
		}
		all.Wait()
	}
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	put(short, context.DeadlineExceeded)
	unlock()
	put(t.Context(), nil)
}
