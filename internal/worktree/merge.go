package worktree

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/durable"
	"muster/internal/git"
)

// Conflict is a file that a merge left open. A file with markers names its line, so that the owner finds the place; a
// binary file, or one that a side deleted, has none, and the owner must say what it should be.
type Conflict struct {
	File string // as git names it, from the lane's top
	Line int    // of the first conflict marker; 0: there is none, and the file is as the merge left it
}

// String names the file and where to look.
func (c Conflict) String() string {
	if c.Line == 0 {
		return c.File + " (no marker: choose what it should be)"
	}
	return fmt.Sprintf("%s line %d", c.File, c.Line)
}

// conflictList names the conflicts in one line, for messages that the lane's owner reads.
func conflictList(all []Conflict) string {
	var s []string
	for _, c := range all {
		s = append(s, c.String())
	}
	return strings.Join(s, ", ")
}

// Merge merges a commit, named by its full id, into the lane, whose own work must be committed, and does not commit
// the result. Conflicts stay as markers in the files that it returns: the owner resolves them, and Commit finishes
// the merge (one without conflicts too). Called again before that, Merge returns what is still open.
func (l *Lanes) Merge(ctx context.Context, name muster.Name, commit string) (conflicts []string, err error) {
	lane, err := l.enter(ctx, name)
	if err != nil {
		return nil, err
	}
	release, err := l.hold(ctx, lane.Path)
	if err != nil {
		return nil, err
	}
	defer release()
	c := l.checkout(lane)
	if err := c.merge(ctx, commit); err != nil {
		return nil, err
	}
	files, err := c.unmerged(ctx)
	if err != nil || len(files) == 0 {
		return nil, err
	}
	// What the merge left is recorded: a file without markers (a binary one, or one that was changed here and deleted
	// there) is resolved only when it is no longer what the merge left.
	left := c.conflictHashes()
	for _, f := range files {
		if _, ok := left[f]; !ok {
			_, left[f] = c.read(f)
		}
	}
	_, err = l.index.update(ctx, name, func(row *muster.Lane) error {
		setField(row, fieldConflicts, left)
		return nil
	})
	return files, err
}

// Unresolved returns what is still open of a merge in the lane.
func (l *Lanes) Unresolved(ctx context.Context, name muster.Name) ([]Conflict, error) {
	lane, err := l.enter(ctx, name)
	if err != nil {
		return nil, err
	}
	return l.checkout(lane).unresolved(ctx)
}

// merge begins the merge of a commit, unless it is under way already.
func (c checkout) merge(ctx context.Context, commit string) error {
	merging, err := c.mergeHead(ctx)
	if err != nil || merging == commit {
		return err
	}
	if merging != "" {
		return muster.Errorf(muster.Invalid, "a merge of %.7s is under way in lane %s: finish it first",
			merging, c.lane.Name)
	}
	_, changes, err := c.changes(ctx)
	if err != nil {
		return err
	}
	if len(changes) > 0 {
		return muster.Errorf(muster.Invalid, "the lane %s has uncommitted changes: commit them before a merge",
			c.lane.Name)
	}
	// The owner's own changes must not mix with the merge, which is why a dirty lane was refused. --no-commit leaves
	// the result for Commit, also when nothing conflicts.
	// The markers show what both sides had before, too: without it nobody can tell what either of them meant to change.
	_, mergeErr := c.do(ctx, git.Call{
		Settings: []git.Setting{{Key: "merge.conflictStyle", Value: "zdiff3"}},
		Args:     []string{"merge", "-q", "--no-ff", "--no-commit", "--no-stat", "--no-verify", commit}})
	if _, isExit := errors.AsType[*git.ExitError](mergeErr); !isExit {
		return mergeErr
	}
	// git also fails when the merge conflicts: then it is under way.
	merging, err = c.mergeHead(ctx)
	if err == nil && merging != commit {
		err = muster.Errorf(muster.Invalid, "%.7s cannot be merged into lane %s: %w", commit, c.lane.Name, mergeErr)
	}
	return err
}

// unmerged returns the files that git holds as unmerged. Each has up to three entries in the index and is named once.
func (c checkout) unmerged(ctx context.Context) ([]string, error) {
	out, err := c.run(ctx, "ls-files", "-z", "--unmerged")
	if err != nil {
		return nil, muster.Errorf(muster.Unavailable, "git cannot list the conflicts of lane %s: %w", c.lane.Name, err)
	}
	var files []string
	for entry := range strings.SplitSeq(out, "\x00") { // MODE ID STAGE\tFILE
		if _, file, ok := strings.Cut(entry, "\t"); ok && !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	return files, nil
}

// unresolved returns the files that still have a conflict marker, and those that git holds as unmerged and that are as
// the merge left them.
func (c checkout) unresolved(ctx context.Context) ([]Conflict, error) {
	unmerged, err := c.unmerged(ctx)
	if err != nil {
		return nil, err
	}
	return c.openOf(unmerged), nil
}

// openOf is unresolved for the files that git holds as unmerged.
func (c checkout) openOf(unmerged []string) []Conflict {
	left := c.conflictHashes()
	files := slices.AppendSeq(slices.Clone(unmerged), maps.Keys(left))
	slices.Sort(files)
	var open []Conflict
	// A file with a marker is open, even when the owner has staged it by mistake. A file without one is open only if
	// nobody has touched or staged it.
	for _, f := range slices.Compact(files) {
		data, hash := c.read(f)
		noted, isNoted := left[f]
		if line := markerLine(data); line > 0 {
			open = append(open, Conflict{File: f, Line: line})
		} else if isNoted && slices.Contains(unmerged, f) && hash == noted {
			open = append(open, Conflict{File: f})
		}
	}
	return open
}

// conflictHashes returns, for each file that conflicted in the runtime's last merge, the hash of what the merge left.
func (c checkout) conflictHashes() map[string]string {
	hashes, _ := field[map[string]string](c.lane, fieldConflicts)
	return maps.Collect(maps.All(hashes)) // never nil
}

// read returns a file as its owner left it, and its hash; of a symbolic link the data is where it points to. The
// file has the name that git gives it: with slashes, from the lane's top. The hash is "" when there is no file: a
// deleted file is a decision too, because it differs from what the merge left. A file that is too large to read has no
// data, and its size and its time in place of a hash.
func (c checkout) read(name string) (data []byte, hash string) {
	file := filepath.Join(c.dir(), filepath.FromSlash(name))
	info, err := os.Lstat(file)
	if err != nil || info.IsDir() {
		return nil, ""
	}
	if info.Mode()&os.ModeSymlink != 0 {
		to, linkErr := os.Readlink(file)
		data, err = []byte(to), linkErr
	} else {
		data, err = durable.ReadRegular(file, git.MaxFile)
	}
	if errors.Is(err, durable.ErrTooLarge) {
		return nil, fmt.Sprint(info.Size(), info.ModTime().UnixNano())
	}
	if err != nil {
		return nil, ""
	}
	sum := sha256.Sum256(data)
	return data, hex.EncodeToString(sum[:])
}

// markerLine returns the number of the first line that is a conflict marker with its label, 0 when there is none. The
// label tells it from a line of signs in a document, and the line of equal signs between the two sides is not looked
// for, because headings look like it.
func markerLine(data []byte) int {
	n := 0
	for line := range bytes.Lines(data) {
		n++
		for _, c := range []string{"<", "|", ">"} {
			rest := bytes.TrimLeft(line, c)
			if len(line)-len(rest) >= 7 && bytes.HasPrefix(rest, []byte(" ")) {
				return n
			}
		}
	}
	return 0
}
