package mem

import (
	"context"

	"muster"
)

// leases is the state as leases, for one handle.
type leases struct{ s *Store }

// lease is a held lease.
type lease struct {
	s    *Store
	name string
	lost chan struct{}
}

// Acquire takes the lease or returns Held at once.
func (l leases) Acquire(ctx context.Context, name string) (muster.Lease, error) {
	if err := checkLease(ctx, name); err != nil {
		return nil, err
	}
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	if l.s.ended {
		return nil, muster.Errorf(muster.Unavailable, "this store was closed")
	}
	st := l.s.s
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.leases[name] != nil {
		return nil, muster.Errorf(muster.Held, "the lease %s is held by another process", name)
	}
	h := &lease{s: l.s, name: name, lost: make(chan struct{})}
	st.leases[name] = h
	l.s.held[h] = true
	return h, nil
}

// Held reports whether anyone has the lease now.
func (l leases) Held(ctx context.Context, name string) (bool, error) {
	if err := checkLease(ctx, name); err != nil {
		return false, err
	}
	l.s.s.mu.Lock()
	defer l.s.s.mu.Unlock()
	return l.s.s.leases[name] != nil, nil
}

// Lost is closed after Release or the handle's Close.
func (h *lease) Lost() <-chan struct{} { return h.lost }

// Release gives the lease back. Again, it does nothing.
func (h *lease) Release() error {
	h.s.mu.Lock()
	delete(h.s.held, h)
	h.s.mu.Unlock()
	h.end()
	return nil
}

// end gives the lease up if it is still held. Release and Close may both come here.
func (h *lease) end() {
	st := h.s.s
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.leases[h.name] == h {
		delete(st.leases, h.name)
		close(h.lost)
	}
}

// checkLease fails if the context has ended or the name cannot be a lease's.
func checkLease(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return checkName("the name of a lease", name)
}
