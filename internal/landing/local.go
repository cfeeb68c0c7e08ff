package landing

import (
	"context"
	"errors"
	"slices"

	"muster"
	"muster/internal/worktree"
)

// holdsLocalFiles is the gate for work that would bring to the target one of the files that were copied into its lane
// from the user's checkout.
func (l *landing) holdsLocalFiles(ctx context.Context, tip string) (back comeback, err error) {
	lane, err := l.lanes.Get(ctx, l.task.Worktree)
	if err != nil && !errors.Is(err, muster.ErrNotFound) { // work that was made without a lane has none
		return back, err
	}
	local := slices.Concat(worktree.LocalOf(lane), l.options.Local.Names())
	if len(local) == 0 {
		return back, nil
	}
	changed, err := treeChanges(ctx, l.repo, tip, l.merged.tree)
	if err == nil && l.options.MergeCommits {
		var history []fileChange
		history, err = historyChanges(ctx, l.repo, tip, l.head)
		changed = append(changed, history...)
	}
	if err != nil {
		return back, err
	}
	var held []string
	for _, c := range changed {
		if slices.Contains(local, c.Path) && !slices.Contains(held, c.Path) {
			held = append(held, c.Path)
		}
	}
	if len(held) == 0 {
		return back, nil
	}
	return localFilesHeld(l.options.branch(), held, l.options.MergeCommits), nil
}
