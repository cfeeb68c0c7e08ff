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
	"muster/internal/failpoint"
)

// gate is where goroutines of this process wait for one lock file, so that they do not spin on it.
type gate struct {
	turn chan struct{} // holds one token: who has it may try the file
	uses int
}

// Lock waits for the lock of a file, until ctx ends. The file is made and never removed.
func (f *Files) Lock(ctx context.Context, path string) (unlock func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if failpoint.Disabled(failpoint.Lock) {
		return func() {}, nil
	}
	f.mu.Lock()
	g := f.gates[path]
	if g == nil {
		g = &gate{turn: make(chan struct{}, 1)}
		f.gates[path] = g
	}
	g.uses++
	f.mu.Unlock()
	leave := func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if g.uses--; g.uses == 0 {
			delete(f.gates, path)
		}
	}
	select {
	case g.turn <- struct{}{}:
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
	held, err := f.wait(ctx, path)
	if err != nil {
		<-g.turn
		leave()
		return nil, err
	}
	return func() {
		held.Close()
		<-g.turn
		leave()
	}, nil
}

// wait tries until the lock is ours or ctx ends. flock has no queue that ends with a context, hence the jitter.
func (f *Files) wait(ctx context.Context, path string) (Locked, error) {
	longest := 200 * time.Microsecond
	for {
		l, err := f.try(path)
		if !errors.Is(err, ErrLocked) {
			return l, err
		}
		t := time.NewTimer(50*time.Microsecond + rand.N(longest))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, ctx.Err()
		}
		longest = min(longest*2, 3*time.Millisecond)
	}
}

// try takes the lock at once or fails with ErrLocked.
func (f *Files) try(path string) (Locked, error) {
	l, err := f.fs.TryLock(path, Exclusive)
	if errors.Is(err, fs.ErrNotExist) {
		if err := f.MakeDir(filepath.Dir(path)); err != nil {
			return nil, err
		}
		l, err = f.fs.TryLock(path, Exclusive)
	}
	if errors.Is(err, ErrLocked) {
		return nil, err
	}
	if err != nil {
		return nil, failed(path, err)
	}
	l.Note(strconv.Itoa(os.Getpid()) + "\n")
	return l, nil
}

// patience is how long TryLock goes on when only processes that ask (Locked) are in its way: each does for microseconds.
const patience = 5 * time.Second

// TryLock takes the lock of a file or fails with Held at once. It never takes one that asks for one that holds.
func (f *Files) TryLock(path string) (unlock func() error, err error) {
	for started := time.Now(); ; {
		l, err := f.try(path)
		if err == nil {
			return l.Close, nil
		}
		if !errors.Is(err, ErrLocked) {
			return nil, err
		}
		// Who asks has it shared, who holds it exclusively.
		taken, err := f.Locked(path)
		if err != nil {
			return nil, err
		}
		if taken || time.Since(started) > patience {
			return nil, muster.Errorf(muster.Held, "another process has the lock %s", path)
		}
		time.Sleep(rand.N(200 * time.Microsecond))
	}
}

// Locked reports whether anyone has the lock of a file now. It makes nothing, and never makes a TryLock fail.
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
	return false, failed(path, err)
}

// ProbeLocks tries in dir whether two descriptors exclude each other, as they do not on some network file systems.
func (f *Files) ProbeLocks(dir string) error {
	path := filepath.Join(dir, ".probe.lock")
	first, err := f.try(path)
	if errors.Is(err, ErrLocked) {
		return nil // another process is probing, and that excludes us
	}
	if err != nil {
		return err
	}
	defer first.Close()
	second, err := f.fs.TryLock(path, Exclusive)
	if errors.Is(err, ErrLocked) {
		return nil
	}
	if err == nil {
		second.Close()
	}
	return muster.Errorf(muster.Unavailable, "locks do not work in %s: two processes could take the same task", dir).
		WithHint("move the repository to a local disk")
}
