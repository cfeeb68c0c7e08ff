package file

import (
	"context"
	"errors"
	"strings"

	"muster"
)

// leases says which processes live. A lease is the lock of a file that its process keeps open, so the kernel frees it
// however the process dies.
type leases struct{ s *Store }

// lease is a held lease.
type lease struct {
	s      *Store
	isHost bool // a process that holds it keeps the documents
	unlock func() error
	lost   chan struct{}
}

// Acquire takes the lease, or returns Held at once, even if this process holds it.
func (l leases) Acquire(ctx context.Context, name string) (muster.Lease, error) {
	if err := checkLease(ctx, name); err != nil {
		return nil, err
	}
	if err := l.s.probe(); err != nil {
		return nil, err
	}
	isHost := strings.HasPrefix(name, muster.HostLeases)
	if isHost {
		unlock, err := l.s.keeper.begin(ctx)
		if err != nil {
			return nil, err
		}
		defer unlock()
	}
	h, err := l.take(name, isHost)
	if err != nil {
		if isHost {
			l.s.keeper.count(-1)
		}
		return nil, err
	}
	return h, nil
}

// take is Acquire without the keeper.
func (l leases) take(name string, isHost bool) (*lease, error) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	if l.s.closed {
		return nil, muster.Errorf(muster.Unavailable, "this store was closed")
	}
	// The store's lock is held meanwhile, so a Close either comes before, and is seen above, or finds the lease in
	// held.
	unlock, err := l.s.files.TryLock(l.s.lockPath(name))
	if errors.Is(err, muster.ErrHeld) {
		return nil, muster.Errorf(muster.Held, "the lease %s is held by another process", name)
	}
	if err != nil {
		return nil, err
	}
	h := &lease{s: l.s, isHost: isHost, unlock: unlock, lost: make(chan struct{})}
	l.s.held[h] = true
	return h, nil
}

// Held reports whether anyone holds the lease. It creates nothing.
func (l leases) Held(ctx context.Context, name string) (bool, error) {
	if err := checkLease(ctx, name); err != nil {
		return false, err
	}
	return l.s.files.Locked(l.s.lockPath(name))
}

// Lost is closed after Release or the store's Close, and never before, because the kernel keeps the lock while the
// process lives.
func (h *lease) Lost() <-chan struct{} { return h.lost }

// Release gives the lease back. Further calls do nothing.
func (h *lease) Release() error {
	h.s.mu.Lock()
	mine := h.s.held[h]
	delete(h.s.held, h)
	h.s.mu.Unlock()
	if !mine {
		return nil
	}
	return h.end()
}

// end frees the lock and tells those who watch the lease. The caller has taken it out of held, so it comes here once.
func (h *lease) end() error {
	if h.isHost {
		h.s.keeper.count(-1)
	}
	err := h.unlock()
	close(h.lost)
	return err
}

// checkLease fails if the context has ended or the name cannot be a lease's.
func checkLease(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return checkName("the name of a lease", name)
}
