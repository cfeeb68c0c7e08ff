package worktree

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/git"
)

// Merge merges a commit into the lane, whose own work is committed. It does not commit: conflicts stay as markers in the
// files that it names, the owner resolves them, and Commit finishes the merge (also one without conflicts). Called
// again before that, it names what is still open.
func (l *Lanes) Merge(ctx context.Context, name muster.Name, commit string) (conflicts []string, err error) {
	lane, err := l.enter(ctx, name)
	if err != nil {
		return nil, err
	}
	if commit, err = l.repo.Resolve(ctx, commit); err != nil {
		return nil, err
	}
	under, err := l.merging(ctx, lane)
	if err != nil {
		return nil, err
	}
	switch {
	case under == commit:
		return l.noteConflicts(ctx, lane)
	case under != "":
		return nil, muster.Errorf(muster.Invalid, "a merge of %.7s is under way in lane %s: finish it first", under, name)
	}
	dirty, err := l.repo.Status(ctx, lane.Path)
	if err != nil {
		return nil, muster.Errorf(muster.Unavailable, "git cannot see what has changed in lane %s: %w", name, err)
	}
	if dirty {
		return nil, muster.Errorf(muster.Invalid, "the lane %s has uncommitted changes: commit them before a merge", name)
	}
	_, merr := l.repo.Run(ctx, lane.Path, "merge", "-q", "--no-ff", "--no-commit", "--no-stat", "--no-verify", commit)
	if merr != nil {
		if _, isExit := errors.AsType[*git.ExitError](merr); !isExit {
			return nil, merr
		}
		if under, err = l.merging(ctx, lane); err != nil {
			return nil, err
		}
		if under != commit {
			return nil, muster.Errorf(muster.Invalid, "%.7s cannot be merged into lane %s: %w", commit, name, merr)
		}
	}
	return l.noteConflicts(ctx, lane)
}

// noteConflicts writes into the row what the merge left of the files in conflict, so that a file without markers (a
// binary one, or one changed here and deleted there) is known to be untouched later.
func (l *Lanes) noteConflicts(ctx context.Context, lane muster.Lane) ([]string, error) {
	files, err := l.unmerged(ctx, lane)
	if err != nil || len(files) == 0 {
		return nil, err
	}
	left := map[string]string{}
	field(lane, fieldConflicts, &left)
	for _, f := range files {
		if _, noted := left[f]; !noted {
			left[f] = hashOf(filepath.Join(lane.Path, filepath.FromSlash(f)))
		}
	}
	_, err = l.change(ctx, lane.Name, func(row *muster.Lane) error { return setField(row, fieldConflicts, left) })
	return files, err
}

// unmerged are the files that git holds for unmerged.
func (l *Lanes) unmerged(ctx context.Context, lane muster.Lane) ([]string, error) {
	out, err := l.repo.Run(ctx, lane.Path, "ls-files", "-z", "--unmerged")
	if err != nil {
		return nil, muster.Errorf(muster.Unavailable, "git cannot list the conflicts of lane %s: %w", lane.Name, err)
	}
	var files []string
	for entry := range strings.SplitSeq(out, "\x00") {
		if _, file, ok := cutEntry(entry); ok && !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	return files, nil
}

func hashOf(file string) string {
	data, there := textOf(file)
	if !there {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Conflict is a place that a merge left open.
type Conflict struct {
	File string // as git names it, from the lane's top
	Line int    // of the first conflict marker; 0: there is none, the file is as the merge left it
}

func (c Conflict) String() string {
	if c.Line == 0 {
		return c.File + " (no marker: choose what it should be)"
	}
	return fmt.Sprintf("%s line %d", c.File, c.Line)
}

func places(all []Conflict) string {
	var s []string
	for _, c := range all {
		s = append(s, c.String())
	}
	return strings.Join(s, ", ")
}

// Unresolved is what is still open of a merge in the lane.
func (l *Lanes) Unresolved(ctx context.Context, name muster.Name) ([]Conflict, error) {
	lane, err := l.enter(ctx, name)
	if err != nil {
		return nil, err
	}
	return l.unresolved(ctx, lane)
}

func (l *Lanes) unresolved(ctx context.Context, lane muster.Lane) ([]Conflict, error) {
	unmerged, err := l.unmerged(ctx, lane)
	if err != nil {
		return nil, err
	}
	left := map[string]string{}
	field(lane, fieldConflicts, &left)
	files := map[string]bool{} // still unmerged for git?
	for f := range left {
		files[f] = false
	}
	for _, f := range unmerged {
		files[f] = true
	}
	var open []Conflict
	for _, f := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(lane.Path, filepath.FromSlash(f))
		data, _ := textOf(path)
		if line := marker(data); line > 0 {
			open = append(open, Conflict{File: f, Line: line})
		} else if was, noted := left[f]; noted && files[f] && hashOf(path) == was {
			open = append(open, Conflict{File: f})
		}
	}
	return open, nil
}

// marker is the first line that is a conflict marker with its label, 0 when there is none.
func marker(data []byte) int {
	n := 0
	for line := range bytes.Lines(data) {
		n++
		for _, c := range []string{"<", ">"} {
			rest := bytes.TrimLeft(line, c)
			if len(line)-len(rest) >= 7 && bytes.HasPrefix(rest, []byte(" ")) {
				return n
			}
		}
	}
	return 0
}
