package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"muster"
	"muster/internal/git"
)

// Changed reports whether the lane holds anything beyond its base: uncommitted, untracked, or committed. When that
// cannot be told it returns an error, and the caller must not remove anything.
func (l *Lanes) Changed(ctx context.Context, name muster.Name) (bool, error) {
	lane, err := l.Get(ctx, name)
	if err != nil {
		return false, err
	}
	return l.checkout(lane).isChanged(ctx)
}

// Fingerprint returns a text that is another one when the lane holds something else beyond its base: other commits,
// other uncommitted files, or such a file was written again. It is "" for a lane that holds nothing. It costs a git
// status.
func (l *Lanes) Fingerprint(ctx context.Context, name muster.Name) (string, error) {
	lane, err := l.Get(ctx, name)
	if err != nil {
		return "", err
	}
	head, changes, err := l.checkout(lane).changes(ctx)
	if err != nil || head == lane.Base && len(changes) == 0 {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\x00", head)
	for _, change := range changes {
		fmt.Fprintf(sum, "%s\x00", change.entry)
		if info, err := os.Lstat(filepath.Join(lane.Path, filepath.FromSlash(change.file))); err == nil {
			fmt.Fprintf(sum, "%v %d %d\x00", info.Mode(), info.Size(), info.ModTime().UnixNano())
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// Ignored returns the files of a lane that git ignores, with a directory of nothing else as one entry. They never
// land, and are lost when the lane is removed.
func (l *Lanes) Ignored(ctx context.Context, name muster.Name) ([]string, error) {
	lane, err := l.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	c := l.checkout(lane)
	if _, err := c.verify(ctx); err != nil {
		return nil, err
	}
	out, err := c.run(ctx, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory",
		"--no-empty-directory")
	if err != nil {
		return nil, muster.Errorf(muster.Unavailable, "git cannot list what it ignores in lane %s: %w", name, err)
	}
	return git.SplitNUL(out), nil
}

// maxListed is how many commits, and how many files, Status names.
const maxListed = 20

// Status describes in words what a lane holds, for people and models. Nobody parses it. What the owner has done to the
// lane does not make it fail, as long as its directory is a worktree of the repository.
func (l *Lanes) Status(ctx context.Context, name muster.Name) (string, error) {
	lane, err := l.Get(ctx, name)
	if err != nil {
		return "", err
	}
	c := l.checkout(lane)
	head, err := c.verify(ctx)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "lane %s (%s) on %s at %s\n", lane.Name, lane.Status, lane.Branch, lane.Path)
	if head != branchRef(lane) {
		fmt.Fprintf(&b, "its HEAD is not on its branch: %s\n", strings.TrimPrefix(head, "refs/heads/"))
	}
	if lane.Base != "" {
		out, err := c.run(ctx, "log", "--oneline", fmt.Sprintf("-%d", maxListed), lane.Base+"..HEAD")
		if err != nil {
			return "", muster.Errorf(muster.Unavailable, "git cannot list the commits of lane %s: %w", name, err)
		}
		writeList(&b, fmt.Sprintf("commits since its base %.7s", lane.Base), strings.TrimSpace(out))
	}
	out, err := c.run(ctx, "status", "--porcelain", "--untracked-files=all")
	if err != nil {
		return "", muster.Errorf(muster.Unavailable, "git cannot see what has changed in lane %s: %w", name, err)
	}
	writeList(&b, "uncommitted", strings.TrimRight(out, "\n"))
	// Conflicts that cannot be listed are left out: the rest of the status is of use without them.
	if open, err := c.unresolved(ctx); err == nil && len(open) > 0 {
		fmt.Fprintf(&b, "in conflict: %s\n", conflictList(open))
	}
	return b.String(), nil
}

func writeList(b *strings.Builder, title, text string) {
	if text == "" {
		fmt.Fprintf(b, "%s: none\n", title)
		return
	}
	fmt.Fprintf(b, "%s:\n", title)
	lines := strings.Split(text, "\n")
	for _, line := range lines[:min(len(lines), maxListed)] {
		fmt.Fprintf(b, "  %s\n", line)
	}
	if more := len(lines) - maxListed; more > 0 {
		fmt.Fprintf(b, "  and %d more\n", more)
	}
}
