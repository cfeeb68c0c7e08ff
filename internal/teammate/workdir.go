package teammate

import (
	"context"
	"sync"

	"muster"
	"muster/internal/memory"
	"muster/internal/paths"
	"muster/internal/skills"
	"muster/internal/tool/code"
)

// workdir is where the member's tools run.
type workdir struct {
	name      muster.Name
	noImages  bool
	readable  func() []string // directories outside of its own that the member may read
	worktrees Lanes
	lander    Lander
	claims    *claims

	mu      sync.Mutex
	scratch string // the member's scratch checkout, once made
	commit  string // the commit of the scratch checkout
}

// subagentDir is where the tools of a subagent run: where the member's do. Its model may be another one.
type subagentDir struct {
	*workdir
	noImages bool
}

// Workdir returns that of the member.
func (d subagentDir) Workdir(ctx context.Context) (code.Workdir, error) {
	at, err := d.workdir.Workdir(ctx)
	at.NoImages = d.noImages
	return at, err
}

// Workdir returns the directory in which a tool runs: the lane of the current task, checked at
// every call, otherwise a scratch checkout of the target's tip, in which the file tools write
// nothing and from which nothing lands.
func (w *workdir) Workdir(ctx context.Context) (code.Workdir, error) {
	s := code.Workdir{ReadOnly: w.readable(), NoImages: w.noImages}
	if err := w.claims.verify(ctx); err != nil {
		return s, err
	}
	if t, ok := w.claims.CurrentTask(); ok {
		dir, err := w.worktrees.Workdir(ctx, t.Worktree) // not Enter: its owner may be in the middle of a rebase
		s.Dir, s.Writable = dir, true
		return s, err
	}
	s.Why = "you stand in a read-only view of what has landed: claim a task first (claim_task), then write in its lane"
	tip, err := w.lander.Target(ctx)
	if err != nil {
		return s, err
	}
	// The checkout is made again when something has landed, so that the member sees it. Tools
	// that only read run side by side: one of them makes it.
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.scratch == "" || w.commit != tip {
		if s.Dir, err = w.worktrees.Scratch(ctx, w.name, tip); err != nil {
			return s, err
		}
		w.scratch, w.commit = s.Dir, tip
	}
	s.Dir = w.scratch
	return s, nil
}

// readable returns the directories outside of its own that a member may read: the outputs of all members, the skills,
// and what is remembered.
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
