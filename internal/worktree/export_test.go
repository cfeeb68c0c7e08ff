package worktree

import "context"

// Prepare makes one spare.
func (s *Spares) Prepare(ctx context.Context, commit string) error { return s.prepare(ctx, commit) }

// Count returns how many spares are ready.
func (s *Spares) Count() int { return s.count() }

// MoveInto moves a spare into a worktree without files, whose git directory is admin.
func (s *Spares) MoveInto(ctx context.Context, path, admin string) error {
	x, _ := s.take()
	defer x.discard()
	return x.moveInto(ctx, s.repo, path, admin)
}
