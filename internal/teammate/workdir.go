package teammate

import (
	"context"
	"sync"

	"muster/internal/memory"
	"muster/internal/paths"
	"muster/internal/skills"
	"muster/internal/tool/code"
)

type workdir struct {
	claims   *claims
	noImages bool
	readable func() []string // directories outside of its own that the member may read

	mu      sync.Mutex
	scratch string // the member's scratch checkout, once made
	commit  string // the commit of the scratch checkout
}

// subagentDir is where the tools of a subagent run: where the member's do. Its model may be another one.
type subagentDir struct {
	*workdir
	noImages  bool
	onlyReads bool // whatever tool may come to work in it
}

func (d subagentDir) Workdir(ctx context.Context) (code.Workdir, error) {
	at, err := d.workdir.Workdir(ctx)
	at.NoImages = d.noImages
	if d.onlyReads {
		at.Writable, at.Why = false, "you only read"
	}
	return at, err
}

// Workdir returns where a tool runs: the lane, checked at every call, or a scratch checkout, from which nothing lands.
func (w *workdir) Workdir(ctx context.Context) (code.Workdir, error) {
	s := code.Workdir{ReadOnly: w.readable(), NoImages: w.noImages}
	if err := w.claims.verify(ctx); err != nil {
		return s, err
	}
	if t, ok := w.claims.CurrentTask(); ok {
		dir, err := w.claims.worktrees.Workdir(ctx, t.Worktree) // not Enter: its owner may be in the middle of a rebase
		s.Dir, s.Writable = dir, true
		return s, err
	}
	s.Why = "you stand in a read-only view of what has landed: claim a task first (claim_task), then write in its lane"
	tip, err := w.claims.lander.Target(ctx)
	if err != nil {
		return s, err
	}
	// The checkout follows the target. Tools that only read run side by side: one of them makes it.
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.scratch == "" || w.commit != tip {
		if s.Dir, err = w.claims.worktrees.Scratch(ctx, w.claims.name, tip); err != nil {
			return s, err
		}
		w.scratch, w.commit = s.Dir, tip
	}
	s.Dir = w.scratch
	return s, nil
}

// readable returns what a member may read outside of its directory: outputs, skills, and what is remembered.
func readable(home paths.Dir, list []skills.Skill, remembered func() (repository, user memory.Dir)) []string {
	dirs := []string{home.Outputs()}
	for _, skill := range skills.Usable(list) {
		dirs = append(dirs, skill.Dir)
	}
	if remembered != nil {
		repository, user := remembered()
		for _, d := range []memory.Dir{repository, user} {
			if d.Path != "" {
				dirs = append(dirs, d.Path)
			}
		}
	}
	return dirs
}
