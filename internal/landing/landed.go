package landing

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"muster"
	"muster/internal/git"
	"muster/internal/leftovers"
	"muster/internal/text"
)

// describe says what a completed task has brought to the target, and what of its lane was left out. It says less where
// git fails: the task has landed.
func (l *landing) describe(ctx context.Context) (changes, note string) {
	if l.task.Status != muster.Completed || l.task.Landed == nil {
		return "", ""
	}
	onto := l.task.Landed.Commit + "^"
	out, err := l.repo.Do(ctx, git.Call{Dir: l.repo.CommonDir(), Bare: true, Args: []string{"diff-tree", "-r", "-z",
		"--no-renames", "--raw", "--numstat", "--end-of-options", onto, l.task.Landed.Commit}})
	if err != nil {
		return l.leftOutText(), ""
	}
	files, fresh, lines := parseChanges(git.SplitNUL(out))
	changes = fmt.Sprintf("%s, +%d -%d: %s", text.Count(len(files), "file"), lines.added, lines.deleted, listed(files))
	if left := l.leftOutText(); left != "" {
		changes += "; " + left
	}
	if odd := l.doubtful(ctx, onto, fresh); len(odd) > 0 {
		note = "Other projects ignore such files, and these have landed: " + listed(odd) + ". If one does not belong " +
			"in the repository, a further task must remove it and name it in .gitignore."
	}
	return changes, note
}

// leftOutText names what was left out, "" where that is nothing.
func (l *landing) leftOutText() string {
	if l.leftOut == nil {
		return ""
	}
	left := l.leftOut()
	if len(left) == 0 {
		return ""
	}
	return "left out: " + listed(left)
}

// lookForLeftovers looks while the landing goes on: it is only for the words to the owner.
func (l *landing) lookForLeftovers(ctx context.Context) (wait func() []string) {
	left := make(chan []string, 1)
	lane := l.task.Worktree
	go func() {
		names, err := l.lanes.LeftOut(ctx, lane)
		if err != nil {
			l.log.DebugContext(ctx, "looking for what is left out", "err", err)
		}
		left <- names
	}()
	return sync.OnceValue(func() []string { return <-left })
}

type lineCount struct{ added, deleted int }

// parseChanges reads git's raw form and the numbers of lines behind it. fresh are the files that were not there before.
func parseChanges(fields []string) (files, fresh []string, lines lineCount) {
	for i := 0; i < len(fields); i++ {
		if strings.HasPrefix(fields[i], ":") && i+1 < len(fields) { // :MODE MODE ID ID STATUS, and the path
			if strings.HasSuffix(fields[i], " A") {
				fresh = append(fresh, fields[i+1])
			}
			files = append(files, fields[i+1])
			i++
			continue
		}
		if f := strings.SplitN(fields[i], "\t", 3); len(f) == 3 { // ADDED DELETED PATH, and - of a binary file
			added, _ := strconv.Atoi(f[0])
			deleted, _ := strconv.Atoi(f[1])
			lines.added, lines.deleted = lines.added+added, lines.deleted+deleted
		}
	}
	return files, fresh, lines
}

// doubtful returns those of the new files that other projects ignore, without those below directories that the target
// had before.
func (l *landing) doubtful(ctx context.Context, onto string, fresh []string) []string {
	all := leftovers.Doubtful(fresh)
	all = slices.DeleteFunc(all, func(name string) bool { return strings.Contains(name, "\n") })
	if len(all) == 0 {
		return nil
	}
	ask := ""
	for _, name := range all {
		ask += onto + ":" + strings.TrimSuffix(name, "/") + "\n"
	}
	out, err := l.repo.Do(ctx, git.Call{Dir: l.repo.CommonDir(), Bare: true, Stdin: ask,
		Args: []string{"cat-file", "--batch-check"}})
	said := strings.Split(out, "\n")
	if err != nil || len(said) < len(all) {
		return nil
	}
	var odd []string
	for i, name := range all {
		if strings.HasSuffix(said[i], " missing") {
			odd = append(odd, name)
		}
	}
	return odd
}
