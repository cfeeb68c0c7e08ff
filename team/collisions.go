package team

import (
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
