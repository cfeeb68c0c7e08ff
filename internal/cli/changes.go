package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"muster"
	"muster/internal/terminal"
	"muster/internal/text"
	"muster/internal/treediff"
	"muster/internal/workspace"
	"muster/team"
)

const (
	withChanges    = "with-changes"
	withoutChanges = "without-changes"
)

// changesFlags adds the flags with which the user says what becomes of their uncommitted changes.
func changesFlags(f *pflag.FlagSet) {
	f.Bool(withChanges, false, "begin at a snapshot of your uncommitted changes")
	f.Bool(withoutChanges, false, "begin at HEAD, without your uncommitted changes")
}

// givenChanges returns what the flags say. command is the path of the command.
func givenChanges(f *pflag.FlagSet, command string) (team.Changes, error) {
	with, _ := f.GetBool(withChanges)
	without, _ := f.GetBool(withoutChanges)
	switch {
	case with && without:
		return 0, &usageError{command, "--with-changes and --without-changes exclude each other"}
	case with:
		return team.WithChanges, nil
	case without:
		return team.WithoutChanges, nil
	}
	return team.ChangesUndecided, nil
}

// askChanges asks the user at a terminal what becomes of their uncommitted changes in a run that begins, unless they
// have said so or the run has no choice.
func askChanges(ctx context.Context, a *App, j Job) (team.Changes, error) {
	f := a.terminalIn()
	if f == nil || a.json || j.How.Changes != team.ChangesUndecided {
		return j.How.Changes, nil
	}
	t, err := a.openTeam(j) //nolint:contextcheck // Opening starts nothing.
	if err != nil {
		return j.How.Changes, err
	}
	u, err := t.Uncommitted(ctx, j.How)
	if err != nil || len(u.Files) == 0 || u.Why != "" { // why not is a note of the run
		return j.How.Changes, err
	}
	for terminal.IsForeground(f) && hasTyped(f) { // what was typed before the question is no answer
		if _, err := readBytes(ctx, f, 4096); err != nil {
			return 0, err
		}
	}
	target := text.OneLine(u.Target)
	takes := "muster merge brings it to your branch"
	if u.Branch != "" {
		takes = "muster merge makes it a commit of " + text.OneLine(u.Branch)
	}
	fmt.Fprintf(a.Stderr, "%s not committed: %s\n"+
		"  h  begin at HEAD, without them (Enter)\n"+
		"  s  begin at a snapshot of them, a commit on %s;\n"+
		"     %s\n[h/s] ",
		text.Count(len(u.Files), "file")+text.Plural(len(u.Files), " is", " are"), text.List(u.Files, 5), target, takes)
	for {
		switch key, err := readKey(ctx, f); {
		case err != nil:
			fmt.Fprintln(a.Stderr)
			return 0, err
		case key == 's' || key == 'S':
			fmt.Fprintln(a.Stderr, "s")
			return team.WithChanges, nil
		case key == 'h' || key == 'H' || key == '\r' || key == '\n':
			fmt.Fprintln(a.Stderr, "h")
			return team.WithoutChanges, nil
		case key == 0:
			fmt.Fprint(a.Stderr, "more than one key was typed, which is no answer\n[h/s] ")
		}
	}
}

// mergeKeyTimeout is how long the end of a run waits for the key that merges.
const mergeKeyTimeout = time.Minute

// offerMerge lets the user merge the work of a run into their branch by one key, if nothing is in the way. It asks only
// if the summary goes to a terminal, and if the user has typed nothing during the run: that input is for the shell.
func (a *App) offerMerge(ctx context.Context, t *team.Team, j Job, sum team.Summary) error {
	f := a.terminalIn()
	isSeen := isTerminal(a.Stdout) && isTerminal(a.Stderr)
	if f == nil || !isSeen || a.json || j.demoDir != "" || j.isTemporary ||
		sum.Forward.Branch != "" || len(sum.Off) > 0 || !hasLanded(sum) {
		return nil
	}
	u, err := team.TargetOf(t).Mergeable(ctx)
	if err != nil || !u.IsClear || hasTyped(f) {
		return nil //nolint:nilerr // muster merge says what is in the way.
	}
	waiting, cancel := context.WithTimeout(ctx, mergeKeyTimeout)
	defer cancel()
	// A user who types a command already does not answer, so the keys are named, and count, only after a second.
	if !isQuiet(waiting, f, terminal.AnswerAfter) {
		return nil
	}
	fmt.Fprintf(a.Stdout, "\nm  merge it into %s%s    any other key  leave it\n", text.OneLine(u.Branch),
		changesOf(ctx, j.Workspace, u))
	if key, err := readBytes(waiting, f, 1); err != nil || key[0] != 'm' && key[0] != 'M' {
		fmt.Fprintln(a.Stdout, "not merged; later: muster merge")
		return nil //nolint:nilerr // Ctrl-C is another key, and so is none in time: commands may follow in the shell.
	}
	if !isQuiet(waiting, f, terminal.EffectDelay) { // the key was the beginning of a command
		fmt.Fprintln(a.Stdout, "more was typed, so nothing is merged: muster merge")
		return nil
	}
	return mergeTarget(ctx, a, t, later)
}

// changesOf says in a few words what a merge brings, as in ": 2 files, +6 -3", and "" where git cannot tell.
func changesOf(ctx context.Context, w *workspace.Workspace, u team.Untaken) string {
	repo, err := w.Repo(ctx)
	if err != nil {
		return ""
	}
	target := "refs/heads/" + u.Target
	base, err := repo.Run(ctx, repo.CommonDir(), "merge-base", "refs/heads/"+u.Branch, target)
	if err != nil {
		return ""
	}
	diff, err := treediff.DiffOf(ctx, repo, strings.TrimSpace(base), target)
	if err != nil {
		return ""
	}
	added, removed := 0, 0
	for _, f := range diff.Files {
		added, removed = added+f.Added, removed+f.Deleted
	}
	return fmt.Sprintf(": %s, +%d -%d", text.Count(len(diff.Files), "file"), added, removed)
}

// isQuiet waits, and reports whether nothing was typed meanwhile. What was typed stays for the next reader.
func isQuiet(ctx context.Context, f *os.File, d time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for tick := time.Tick(d / 20); ctx.Err() == nil; {
		if hasTyped(f) {
			return false
		}
		select {
		case <-tick:
		case <-ctx.Done():
		}
	}
	return errors.Is(ctx.Err(), context.DeadlineExceeded) && !hasTyped(f)
}

func hasLanded(sum team.Summary) bool {
	for _, t := range sum.Tasks {
		if t.Status == muster.Completed && t.Landed != nil && sum.Run.Has(t) {
			return true
		}
	}
	return false
}
