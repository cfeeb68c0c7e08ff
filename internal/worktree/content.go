package worktree

import (
	"context"
	"strings"

	"muster"
)

// Content returns a tree of all that the lane holds, uncommitted files too, and the commit that it is to be compared
// with: where it left the history of the tip, or the tip that is being merged into it. The lane stays as it is. git
// keeps the tree until it tidies the repository; nothing refers to it.
func Content(ctx context.Context, l *Lanes, name muster.Name, tip string) (tree, base string, err error) {
	lane, err := l.Get(ctx, name)
	if err != nil {
		return "", "", err
	}
	c := l.checkout(lane)
	if _, err = c.verify(ctx); err != nil {
		return "", "", err
	}
	if base, err = c.mergeHead(ctx); err == nil && base == "" {
		var head string
		if head, err = c.head(ctx); err == nil {
			base, err = l.repo.Run(ctx, l.repo.CommonDir(), "merge-base", head, tip)
		}
		base = strings.TrimSpace(base)
	}
	if err != nil {
		return "", "", muster.Errorf(muster.Unavailable, "git cannot tell where lane %s left the target: %w", name, err)
	}
	if tree, err = c.writeTree(ctx); err == nil {
		err = c.take(ctx, tree)
	}
	return tree, base, err
}
