package team

import (
	"context"

	"muster"
	"muster/internal/collision"
	"muster/internal/worktree"
)

// newCollisions returns what finds out which lanes will conflict. It is nil where there is no repository, as in
// simulated teams.
func newCollisions(p *runHost, host muster.HostID) *collision.Watcher {
	r, isGit := p.repository.(gitRepository)
	lanes, hasLanes := p.Lanes.(*worktree.Lanes)
	if !isGit || !hasLanes {
		return nil
	}
	return collision.New(collision.Options{Repo: r.Repo, Lanes: lanes, Board: p.Board, Journal: p.Journal,
		Target: p.target(), Root: r.Root(), Host: host, Log: p.Log})
}

// Collisions returns which tasks that are under way collide with which, as the team has seen it last.
func (s Tasks) Collisions(ctx context.Context) ([]muster.Collision, error) {
	all, err := s.t.services().Board().Claimed(ctx)
	underWay := map[muster.TaskID]bool{0: true} // the target
	for _, t := range all {
		underWay[t.ID] = t.Worktree != ""
	}
	// What was found of a task that has landed or was given back since is over.
	found := []muster.Collision{}
	for _, c := range collision.Read(s.t.Root()) {
		if c.Task != 0 && underWay[c.Task] && underWay[c.With] && err == nil {
			found = append(found, c)
		}
	}
	return found, err
}
