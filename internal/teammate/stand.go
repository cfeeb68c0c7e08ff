package teammate

import (
	"context"
	"os"
	"path/filepath"

	"muster/internal/tool/code"
)

// Stand says where the member's tools run: in the lane of the task in hand, checked at every call, else in a scratch
// checkout of the target's tip in which nothing can be written by the file tools and from which nothing ever lands.
func (m *Member) Stand(ctx context.Context) (code.Standing, error) {
	s := code.Standing{ReadOnly: map[string]string{"outputs": m.Home.Outputs()}}
	if err := m.held(ctx); err != nil {
		return s, err
	}
	if t, ok := m.Hand(); ok {
		dir, err := m.Lanes.Workdir(ctx, t.Worktree) // not Enter: its owner may be in the middle of a rebase
		s.Dir, s.Writable = dir, true
		return s, err
	}
	s.Why = "you stand in a read-only view of what has landed: claim a task first (claim_task), then write in its lane"
	tip, err := m.Lander.Target(ctx)
	if err != nil {
		return s, err
	}
	m.mu.Lock()
	s.Dir = m.scratch
	fresh := s.Dir != "" && m.at == tip
	m.mu.Unlock()
	if fresh {
		return s, nil
	}
	if s.Dir, err = m.Lanes.Scratch(ctx, m.name(), tip); err != nil {
		return s, err
	}
	m.mu.Lock()
	m.scratch, m.at = s.Dir, tip
	m.mu.Unlock()
	return s, nil
}

// keepOutput writes a whole output that was too long for a tool result where every member can read it.
func (m *Member) keepOutput(name, whole string) (string, error) {
	dir := filepath.Join(m.Home.Outputs(), string(m.name()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	return path, os.WriteFile(path, []byte(whole), 0o600)
}
