package worktree

import (
	"context"
	"strings"

	"muster"
)

// Ignored are the files of a lane that git ignores, a directory of nothing else as one: they never land, and go with the lane.
func (l *Lanes) Ignored(ctx context.Context, name muster.Name) ([]string, error) {
	lane, err := l.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	if _, err := l.look(ctx, lane); err != nil {
		return nil, err
	}
	out, err := l.repo.Run(ctx, lane.Path, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory", "--no-empty-directory")
	if err != nil {
		return nil, muster.Errorf(muster.Unavailable, "git cannot list what it ignores in lane %s: %w", name, err)
	}
	return strings.FieldsFunc(out, func(r rune) bool { return r == 0 }), nil
}
