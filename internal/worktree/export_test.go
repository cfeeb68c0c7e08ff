package worktree

import "context"

// Prepare makes one spare.
func (s *Spares) Prepare(ctx context.Context, commit string) error { return s.prepare(ctx, commit) }

// Count returns how many spares are ready.
func (s *Spares) Count() int { return s.count() }
