package collision

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"muster"
	"muster/internal/git"
)

const (
	// maxFiles is how many files of a collision are named.
	maxFiles = 10
	// maxConflicted is how large a file may be in which lines are looked for.
	maxConflicted = 1 << 20
	// maxRead is how much is read for one look. Files beyond that are named without lines.
	maxRead = 32 << 20
	// maxBlamed is in how many files it is asked who has changed the lines.
	maxBlamed = 3
	// maxLanded is how many landed tasks are named.
	maxLanded = 5
)

// readLines returns the files in conflict of each merge with the lines, which it finds in the files with markers.
func (l *looker) readLines(
	ctx context.Context, pairs []sides, merges []merge,
) ([][]muster.CollidingFile, error) {
	var names []string
	for _, m := range merges {
		for _, c := range m.Conflicts[:min(len(m.Conflicts), maxFiles)] {
			names = append(names, merged(m, c), c.Ours, c.Theirs)
		}
	}
	blobs, err := git.Blobs(ctx, l.repo, names, maxConflicted, maxRead)
	if err != nil {
		return nil, err
	}
	all := make([][]muster.CollidingFile, len(merges))
	for i, m := range merges {
		for _, c := range m.Conflicts[:min(len(m.Conflicts), maxFiles)] {
			f := muster.CollidingFile{Path: c.Path}
			ours, theirs := blobs[c.Ours], blobs[c.Theirs]
			if ours != nil && theirs != nil {
				f.Lines, f.WithLines = conflictLines(blobs[merged(m, c)], ours, theirs, pairs[i].Ours, pairs[i].Theirs)
			}
			all[i] = append(all[i], f)
		}
	}
	return all, nil
}

// merged names the file with markers to git.
func merged(m merge, c conflicted) string { return m.Tree + ":" + c.Path }

// landedIn returns the tasks that have changed on the target what the lane collides with: the lines, as far as git can
// tell by whom, else the files. The trailers of landed commits name the tasks.
func (l *looker) landedIn(ctx context.Context, p sides, files []muster.CollidingFile) ([]muster.TaskID, error) {
	var commits []string
	for _, f := range files[:min(len(files), maxBlamed)] {
		found, err := l.blame(ctx, p, f)
		if err != nil {
			return nil, err
		}
		commits = append(commits, found...)
	}
	args := []string{"log", "--format=%(trailers:key=Muster-Task,valueonly)"}
	if len(commits) > 0 {
		args = append(append(args, "--no-walk"), commits...)
	} else {
		args = append(args, fmt.Sprintf("-%d", maxLanded), p.Theirs, "--not", p.Ours, "--")
		for _, f := range files {
			args = append(args, ":(top,literal)"+f.Path)
		}
	}
	out, err := l.ask(ctx, args...)
	var all []muster.TaskID
	for line := range strings.FieldsSeq(out) {
		if id, err := strconv.Atoi(line); err == nil && id > 0 && !slices.Contains(all, muster.TaskID(id)) {
			all = append(all, muster.TaskID(id))
		}
	}
	slices.Sort(all)
	return all[:min(len(all), maxLanded)], err
}

// blame returns the commits that the lane does not have and that have made the target's lines in conflict. There are
// none where lines were deleted.
func (l *looker) blame(ctx context.Context, p sides, f muster.CollidingFile) (commits []string, err error) {
	args := []string{"blame", "-l", "-s"}
	for _, lines := range strings.Split(f.WithLines, ", ") {
		from, to, isRange := strings.Cut(strings.SplitN(lines, " ", 2)[0], "-")
		if !isRange {
			to = from
		}
		args = append(args, "-L"+from+","+to)
	}
	if f.WithLines == "" {
		return nil, nil
	}
	out, err := l.ask(ctx, append(args, p.Theirs, "^"+p.Ours, "--", f.Path)...)
	for line := range strings.Lines(out) {
		// A line that the lane has, too, begins with a sign.
		id, _, _ := strings.Cut(line, " ")
		if id != "" && git.IsID(id) && !slices.Contains(commits, id) {
			commits = append(commits, id)
		}
	}
	return commits, err
}

// ask runs git. Where it fails there is no answer: what was asked for is left out.
func (l *looker) ask(ctx context.Context, args ...string) (string, error) {
	out, err := l.repo.Run(ctx, l.repo.CommonDir(), args...)
	if git.ExitCode(err) > 0 {
		return "", nil
	}
	return out, err
}
