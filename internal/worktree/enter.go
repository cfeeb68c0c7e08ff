package worktree

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"muster"
)

// Enter is the directory of a lane, after checking that it is the one we mean: its top level, its repository and its
// branch are the expected ones. Whatever is unclear is an error.
func (l *Lanes) Enter(ctx context.Context, name muster.Name) (dir string, err error) {
	lane, err := l.enter(ctx, name)
	return lane.Path, err
}

// Stand is Enter for the owner's tools: the directory must be the lane's and the repository's, but its owner may have
// another branch or none checked out in it, as in the middle of a rebase; Enter, Commit and Merge refuse that until it is over.
func (l *Lanes) Stand(ctx context.Context, name muster.Name) (dir string, err error) {
	lane, _, err := l.stand(ctx, name)
	return lane.Path, err
}

func (l *Lanes) enter(ctx context.Context, name muster.Name) (muster.Lane, error) {
	lane, head, err := l.stand(ctx, name)
	switch {
	case err != nil:
		return muster.Lane{}, err
	case head == branchRef(lane):
		return lane, nil
	case head == "HEAD":
		return muster.Lane{}, muster.Errorf(muster.Invalid, "the lane %s is on no branch, and should be on %s", name, lane.Branch).
			WithHint("finish or abort the rebase, then: git -C %s checkout %s", lane.Path, lane.Branch)
	}
	other := strings.TrimPrefix(head, "refs/heads/")
	return muster.Lane{}, muster.Errorf(muster.Invalid, "the lane %s is on branch %s, and should be on %s", name, other, lane.Branch).
		WithHint("git -C %s checkout %s && git -C %s merge %s", lane.Path, lane.Branch, lane.Path, other)
}

// stand checks the place and returns the lane and the full name of what its HEAD points to.
func (l *Lanes) stand(ctx context.Context, name muster.Name) (lane muster.Lane, head string, err error) {
	lane, err = l.Get(ctx, name)
	if err != nil {
		return lane, "", err
	}
	if r := (removal{}); field(lane, fieldRemoving, &r) || lane.Status != muster.LaneActive && lane.Status != muster.LaneKept {
		status := string(lane.Status)
		if field(lane, fieldRemoving, &r) {
			status = "being removed"
		}
		return muster.Lane{}, "", muster.Errorf(muster.Held, "the lane %s is %s: nobody can work in it", name, status)
	}
	head, err = l.look(ctx, lane)
	if err != nil {
		return muster.Lane{}, "", err
	}
	return lane, head, nil
}

// look checks that the lane's path is a worktree of this repository, and says what its HEAD points to.
func (l *Lanes) look(ctx context.Context, lane muster.Lane) (head string, err error) {
	if head, ok := l.repo.Standing(lane.Path); ok && ctx.Err() == nil {
		return head, nil // the plain case, which each call of a tool asks about
	}
	out, err := l.repo.Run(ctx, lane.Path, "rev-parse", "--path-format=absolute", "--show-toplevel", "--git-common-dir", "--symbolic-full-name", "HEAD")
	if ctx.Err() != nil {
		return "", err
	}
	line := strings.Split(strings.TrimRight(out, "\n"), "\n")
	if err == nil && len(line) == 3 && samePath(line[0], lane.Path) && samePath(line[1], l.repo.CommonDir()) {
		return line[2], nil
	}
	why := fmt.Sprintf("it is part of %q", line[0])
	if err != nil {
		why = err.Error()
	}
	return "", muster.Errorf(muster.Invalid, "%s is not the lane %s any more: %s", lane.Path, lane.Name, why).
		WithHint("%s", l.reconnect(ctx, lane))
}

func samePath(a, b string) bool {
	a, b = filepath.FromSlash(a), filepath.FromSlash(b)
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	ra, err1 := filepath.EvalSymlinks(a)
	rb, err2 := filepath.EvalSymlinks(b)
	return err1 == nil && err2 == nil && ra == rb
}

// Changed reports whether the lane holds anything beyond its base: uncommitted, untracked, or committed. When that
// cannot be told, the error says so, and nothing may be lost on it.
func (l *Lanes) Changed(ctx context.Context, name muster.Name) (bool, error) {
	lane, err := l.Get(ctx, name)
	if err != nil {
		return false, err
	}
	return l.changed(ctx, lane)
}

func (l *Lanes) changed(ctx context.Context, lane muster.Lane) (bool, error) {
	unclear := func(why error) error {
		return muster.Errorf(muster.Invalid, "cannot verify that the lane %s has nothing to lose: %w", lane.Name, why)
	}
	if lane.Base == "" {
		return false, unclear(muster.Errorf(muster.NotFound, "what it was made from is not recorded"))
	}
	tip, err := l.repo.Ref(ctx, branchRef(lane))
	if err != nil {
		return false, unclear(err)
	}
	if gone(lane.Path) {
		return tip != "" && tip != lane.Base, nil
	}
	if _, err := l.look(ctx, lane); err != nil {
		return false, unclear(err)
	}
	head, err := l.repo.ResolveIn(ctx, lane.Path, "HEAD")
	if err != nil {
		return false, unclear(err)
	}
	if head != lane.Base || tip != "" && tip != lane.Base {
		return true, nil
	}
	dirty, err := l.repo.Status(ctx, lane.Path)
	if err != nil {
		return false, unclear(err)
	}
	return dirty, nil
}

// maxListed is how many files Status names.
const maxListed = 20

// Status says in words what a lane holds: for people and models.
func (l *Lanes) Status(ctx context.Context, name muster.Name) (string, error) {
	lane, err := l.Get(ctx, name)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "lane %s (%s) on %s at %s\n", lane.Name, lane.Status, lane.Branch, lane.Path)
	head, err := l.look(ctx, lane)
	if err != nil {
		return "", err
	}
	if head != branchRef(lane) {
		fmt.Fprintf(&b, "its HEAD is not on its branch: %s\n", strings.TrimPrefix(head, "refs/heads/"))
	}
	if lane.Base != "" {
		out, err := l.repo.Run(ctx, lane.Path, "log", "--oneline", fmt.Sprintf("-%d", maxListed), lane.Base+"..HEAD")
		if err != nil {
			return "", muster.Errorf(muster.Unavailable, "git cannot list the commits of lane %s: %w", name, err)
		}
		list(&b, fmt.Sprintf("commits since its base %.7s", lane.Base), strings.Split(strings.TrimSpace(out), "\n"))
	}
	out, err := l.repo.Run(ctx, lane.Path, "status", "--porcelain", "--untracked-files=all")
	if err != nil {
		return "", muster.Errorf(muster.Unavailable, "git cannot see what has changed in lane %s: %w", name, err)
	}
	list(&b, "uncommitted", strings.Split(strings.TrimRight(out, "\n"), "\n"))
	if open, err := l.unresolved(ctx, lane); err == nil && len(open) > 0 {
		fmt.Fprintf(&b, "in conflict: %s\n", places(open))
	}
	return b.String(), nil
}

func list(b *strings.Builder, title string, lines []string) {
	if len(lines) == 1 && lines[0] == "" {
		fmt.Fprintf(b, "%s: none\n", title)
		return
	}
	fmt.Fprintf(b, "%s:\n", title)
	for i, line := range lines {
		if i == maxListed {
			fmt.Fprintf(b, "  and %d more\n", len(lines)-i)
			break
		}
		fmt.Fprintf(b, "  %s\n", line)
	}
}
