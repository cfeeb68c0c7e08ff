// Package treediff compares commits and trees of a repository, and quotes lines of them.
package treediff

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"muster"
	"muster/internal/difflines"
	"muster/internal/git"
)

// Diff is what a task has changed.
type Diff struct {
	From  string       `json:"from"` // the commit that it is compared with
	To    string       `json:"to"`   // the landed commit, or a tree of all that the lane holds
	Files []FileChange `json:"files"`
	Text  string       `json:"diff"` // as git diff prints it, without colours
}

// FileChange is what was changed in one file.
type FileChange struct {
	File    string `json:"file"`
	Added   int    `json:"added"`
	Deleted int    `json:"deleted"`
	Binary  bool   `json:"binary,omitempty"`
}

const (
	comparedFile = "4m"     // from this size on a file counts as binary: nobody reads what would fill the memory
	maxDiff      = 64 << 20 // bytes of a difference that are kept in memory
	maxQuoted    = 4 << 20  // bytes of the largest file of which LineOf returns a line
)

// DiffOf compares two commits or trees: all files, or those with these paths.
func DiffOf(ctx context.Context, repo *git.Repo, from, to string, files ...string) (Diff, error) {
	d := Diff{From: from, To: to}
	var out bytes.Buffer
	_, err := repo.Do(ctx, git.Call{Dir: repo.CommonDir(), Bare: true, Out: &out, MaxOut: maxDiff,
		Settings: []git.Setting{{Key: "core.bigFileThreshold", Value: comparedFile}},
		Env:      []string{"GIT_LITERAL_PATHSPECS=1"},
		Args: append([]string{"diff", "--no-color", "--no-renames", "-z", "--numstat", "--patch", from, to, "--"},
			files...)})
	stat, patch, isWhole := strings.Cut(out.String(), "\x00\x00")
	d.Text = patch
	if errors.Is(err, git.ErrTooMuch) && isWhole {
		err = nil
		d.Text = fmt.Sprintf("The difference has more than %d MB: git diff %.7s %.7s shows it\n", maxDiff>>20, from, to)
	}
	if err != nil {
		return d, muster.Errorf(muster.Unavailable, "git cannot compare %.7s with %.7s: %w", from, to, err)
	}
	for _, line := range git.SplitNUL(stat) { // ADDED\tDELETED\tFILE, and - for the numbers of a binary file
		f := strings.SplitN(line, "\t", 3)
		if len(f) < 3 {
			continue
		}
		c := FileChange{File: f[2], Binary: f[0] == "-"}
		c.Added, _ = strconv.Atoi(f[0])
		c.Deleted, _ = strconv.Atoi(f[1])
		d.Files = append(d.Files, c)
	}
	return d, nil
}

// Lines returns the lines of the text. The paths of their files come from Files.
func (d Diff) Lines() []difflines.Line {
	names := make([]string, len(d.Files))
	for i, f := range d.Files {
		names[i] = f.File
	}
	return difflines.Parse(d.Text, names)
}

// LineOf returns a line of a file of a commit or tree, with the number of lines that the file has. The errors say what
// is there instead.
func LineOf(ctx context.Context, repo *git.Repo, tree, file string, line int) (text string, err error) {
	file = path.Clean(file)
	out, err := repo.Do(ctx, git.Call{Dir: repo.CommonDir(), Env: []string{"GIT_LITERAL_PATHSPECS=1"},
		Args: []string{"ls-tree", "-z", "-l", "--full-tree", tree, "--", file}})
	meta, name, found := strings.Cut(strings.TrimSuffix(out, "\x00"), "\t") // MODE TYPE ID SIZE\tFILE
	fields := strings.Fields(meta)
	if _, isExit := errors.AsType[*git.ExitError](err); isExit || err == nil && (!found || name != file) {
		return "", muster.Errorf(muster.NotFound, "there is no file %s", file)
	}
	if err != nil {
		return "", err
	}
	if len(fields) < 4 || fields[1] != "blob" {
		return "", muster.Errorf(muster.Invalid, "%s is no file", file)
	}
	if size, err := strconv.Atoi(fields[3]); err != nil || size > maxQuoted {
		return "", muster.Errorf(muster.Invalid, "%s is too large to point to a line of it", file)
	}
	data, err := repo.Run(ctx, repo.CommonDir(), "cat-file", "blob", fields[2])
	if err != nil {
		return "", muster.Errorf(muster.Unavailable, "git cannot read %s: %w", file, err)
	}
	lines := strings.Split(strings.TrimSuffix(data, "\n"), "\n")
	if strings.Contains(data, "\x00") || data == "" {
		return "", muster.Errorf(muster.Invalid, "%s has no lines: it is empty or binary", file)
	}
	if line < 1 || line > len(lines) {
		return "", muster.Errorf(muster.Invalid, "%s has no line %d", file, line).
			WithHint("its lines are 1 to %d", len(lines))
	}
	return lines[line-1], nil
}
