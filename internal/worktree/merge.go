package worktree

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"muster"
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
	c, release, err := l.enterAlone(ctx, name)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := c.merge(ctx, commit); err != nil {
		return nil, err
	}
	files, err := c.unmerged(ctx)
	if err != nil || len(files) == 0 {
		return nil, err
	}
	// What the merge left is recorded: a file without markers (a binary one, or one that was changed here and deleted
	// there) is resolved only when it is no longer what the merge left.
	states, err := c.states(ctx, files)
	if err != nil {
		return nil, err
	}
	before, _ := field[map[string]string](c.lane, fieldConflicts)
	maps.Copy(states, before) // those of a merge that began before stay
	_, err = l.index.update(ctx, name, func(row *muster.Lane) error {
		setField(row, fieldConflicts, states)
		return nil
	})
	return files, err
}

// Unresolved returns what is still open of a merge in the lane.
func (l *Lanes) Unresolved(ctx context.Context, name muster.Name) ([]Conflict, error) {
	c, err := l.enter(ctx, name)
	if err != nil {
		return nil, err
	}
	return c.unresolved(ctx)
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
	// --no-commit leaves the result for Commit, also when nothing conflicts. The markers show what both sides had
	// before, too: without it nobody can tell what either of them meant to change.
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
		if _, file, ok := strings.Cut(entry, "\t"); ok {
			files = append(files, file)
		}
	}
	return slices.Compact(files), nil
}

// unresolved returns the files with a conflict marker, and the unmerged ones that are as the merge left them.
func (c checkout) unresolved(ctx context.Context) ([]Conflict, error) {
	unmerged, err := c.unmerged(ctx)
	if err != nil {
		return nil, err
	}
	return c.openOf(ctx, unmerged)
}

// openOf is unresolved for the files that git holds as unmerged.
func (c checkout) openOf(ctx context.Context, unmerged []string) (open []Conflict, err error) {
	left, _ := field[map[string]string](c.lane, fieldConflicts)
	files := sortedOnce(slices.AppendSeq(slices.Clone(unmerged), maps.Keys(left)))
	states, err := c.states(ctx, files)
	if err != nil {
		return nil, err
	}
	// A file with a marker is open, even when the owner has staged it by mistake. A file without one is open only if
	// nobody has touched or staged it.
	for _, f := range files {
		noted, isNoted := left[f]
		if line, err := strconv.Atoi(states[f]); err == nil {
			open = append(open, Conflict{File: f, Line: line})
		} else if isNoted && slices.Contains(unmerged, f) && states[f] == noted {
			open = append(open, Conflict{File: f})
		}
	}
	return open, nil
}

const maxConflicts = 2000

// stateScript prints a line for each file that it is named: the number of the first line that is a conflict marker with
// its label, else a sum of what is there, of at most $most bytes. The label tells a marker from a line of signs in a
// document, and the line of equal signs between the two sides is not looked for, because headings look like it.
const stateScript = `for f do
	f=./$f
	if [ -h "$f" ]; then
		echo "link $(readlink "$f" | cksum)"
	elif [ ! -f "$f" ]; then
		echo none
	else
		line=$(head -c "$most" "$f" | grep -a -n -o -m 1 -E '^(<{7,}|[|]{7,}|>{7,}) ')
		case $? in
		0) echo "${line%%:*}" ;;
		1) echo "file $(head -c "$most" "$f" | cksum)" ;;
		*) exit 1 ;;
		esac
	fi
done`

// states returns what stateScript says of each file. A deleted file has a state too: that is a decision of the owner,
// because it differs from what the merge left.
func (c checkout) states(ctx context.Context, files []string) (states map[string]string, err error) {
	states = map[string]string{}
	if len(files) == 0 {
		return states, nil
	}
	if len(files) > maxConflicts {
		return nil, muster.Errorf(muster.Invalid, "%d files of lane %s are in conflict: at most %d are looked at",
			len(files), c.lane.Name, maxConflicts).
			WithHint("git add or git rm those that are right as they are, or merge in smaller steps: git merge --abort")
	}
	out, err := c.do(ctx, git.Call{Script: `exec "$@"`, Look: true, ReadsTree: true, Stdin: strings.Join(files, "\x00"),
		Args: []string{"xargs", "-0", "sh", "-c", stateScript, "sh"}, Env: []string{fmt.Sprint("most=", git.MaxFile)}})
	lines := strings.Split(out, "\n")
	if err == nil && len(lines) != len(files)+1 {
		err = fmt.Errorf("%d of %d files were read", len(lines)-1, len(files))
	}
	if err != nil {
		return nil, muster.Errorf(muster.Unavailable, "the conflicts of lane %s cannot be read: %w", c.lane.Name, err)
	}
	for i, f := range files {
		states[f] = lines[i]
	}
	return states, nil
}
