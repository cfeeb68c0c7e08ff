package durable

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"muster"
	"muster/internal/clock"
)

// Lock waits for the lock of a file, until ctx ends. It makes the file, which is never removed. The goroutines of this
// process wait for their turn first, so that they do not poll the file against each other.
func (f *Files) Lock(ctx context.Context, path string) (unlock func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	// The channel stays for the life of the process, as the lock file does. Removing it would need a count of those who
	// wait, and a mistake in that count would let two goroutines take turns at two channels.
	queue, _ := f.turns.LoadOrStore(path, make(chan struct{}, 1))
	turn := queue.(chan struct{})
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	held, err := f.pollLock(ctx, path)
	if err != nil {
		<-turn
		return nil, err
	}
	return func() {
		_ = held.Close()
		<-turn
	}, nil
}

// LockAll waits for the locks of all the files, in the given order, until ctx ends. Two callers that use the same order
// cannot wait for each other.
func (f *Files) LockAll(ctx context.Context, paths []string) (unlock func(), err error) {
	var held []func()
	unlock = func() {
		for _, u := range held {
			u()
		}
	}
	for _, path := range paths {
		u, err := f.Lock(ctx, path)
		if err != nil {
			unlock()
			return nil, err
		}
		held = append(held, u)
	}
	return unlock, nil
}

// pollLock tries until it has the lock or ctx ends. A flock cannot wait for a context, so it polls at random
// intervals.
func (f *Files) pollLock(ctx context.Context, path string) (Locked, error) {
	longest := 200 * time.Microsecond
	for {
		l, err := f.tryExclusive(path)
		if !errors.Is(err, ErrLocked) {
			return l, err
		}
		if err := clock.Sleep(ctx, 50*time.Microsecond+rand.N(longest)); err != nil {
			return nil, err
		}
		longest = min(longest*2, 3*time.Millisecond)
	}
}

// tryExclusive takes the lock at once or fails with ErrLocked.
func (f *Files) tryExclusive(path string) (l Locked, err error) {
	err = f.openIn(path, func() (err error) {
		l, err = f.fs.TryLock(path, Exclusive)
		return err
	})
	if errors.Is(err, ErrLocked) {
		return nil, err
	}
	if err != nil {
		return nil, writeError(path, err)
	}
	l.Note(strconv.Itoa(os.Getpid()) + "\n")
	return l, nil
}

// tryLockTimeout is how long TryLock continues while only processes that call Locked are in its way. Each of them is
// for microseconds.
const tryLockTimeout = 5 * time.Second

// TryLock takes the lock of a file, or fails with Held at once. It never mistakes a process that calls Locked for one
// that holds the lock.
func (f *Files) TryLock(path string) (unlock func() error, err error) {
	for started := time.Now(); ; {
		l, err := f.tryExclusive(path)
		if err == nil {
			return l.Close, nil
		}
		if !errors.Is(err, ErrLocked) {
			return nil, err
		}
		// A process that only asks holds the lock shared for a moment, and one that has it holds it exclusively. Asking
		// in the same way tells them apart.
		taken, err := f.Locked(path)
		if err != nil {
			return nil, err
		}
		if taken || time.Since(started) > tryLockTimeout {
			return nil, muster.Errorf(muster.Held, "another process has the lock %s", path)
		}
		// At random, so that two processes do not ask in step for ever.
		time.Sleep(rand.N(200 * time.Microsecond))
	}
}

// Locked reports whether anyone holds the lock of a file. It creates nothing, and never makes a TryLock fail.
func (f *Files) Locked(path string) (bool, error) {
	l, err := f.fs.TryLock(path, Shared)
	switch {
	case err == nil:
		return false, l.Close()
	case errors.Is(err, ErrLocked):
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	}
	return false, writeError(path, err)
}

// ProbeLocks checks in dir whether two descriptors exclude each other. On some network file systems they do not, and
// then no promise that rests on a lock holds: two members could work on one task.
func (f *Files) ProbeLocks(dir string) error {
	path := filepath.Join(dir, ".probe.lock")
	first, err := f.tryExclusive(path)
	if errors.Is(err, ErrLocked) {
		return nil // another process is probing, and that excludes us
	}
	if err != nil {
		return err
	}
	defer func() { _ = first.Close() }()
	second, err := f.fs.TryLock(path, Exclusive)
	if errors.Is(err, ErrLocked) {
		return nil
	}
	if err == nil {
		_ = second.Close()
	}
	return muster.Errorf(muster.Unavailable, "locks do not work in %s: two processes could take the same task", dir).
		WithHint("move the repository to a local disk")
}
