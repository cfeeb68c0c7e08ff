package landing

import (
	"context"
	"fmt"
	"strings"

	"muster"
	"muster/internal/board"
	"muster/internal/localfiles"
	"muster/internal/secrets"
	"muster/internal/spend"
	"muster/internal/text"
)

// comeback is why a landing is returned. Each function below makes one: what happened, then what to do.
type comeback struct {
	reason  string // one of journal.TaskReturned; "": none
	text    string // for the owner's model
	details board.Details
}

// stuckText is for an owner whose task came back for the last time. Of the text for one that goes on it has the first
// line only, which says what happened: the rest says what to do, and there is nothing to do any more.
func stuckText(t muster.Task, text string) string {
	what, _, _ := strings.Cut(text, "\n")
	return fmt.Sprintf("%s\nThe landing failed %d times in a row. The task needs attention now and is no longer "+
		"yours. Its lane is kept for the next owner, and the lead was told: do not work on it, and do not call "+
		"complete_task for it.", what, t.Rounds)
}

func conflicting(branch string, files []string, met collision) comeback {
	return comeback{"conflict", fmt.Sprintf("Your work conflicts with what has landed on %s meanwhile, in %s.\n"+
		"%s is merged into your lane with conflict markers: after <<<<<<< are your lines, after ||||||| the base, "+
		"after ======= the landed lines. Keep what both sides meant, and remove all markers. If a file has no "+
		"markers (it is binary, or one side deleted it), write it as it should be, then run git add or git rm. Do "+
		"not commit the merge: call complete_task again, and the runtime commits.\n",
		branch, fileList(files), branch) + met.text,
		board.Details{Text: fileList(files), With: met.with, Met: met.met, Moved: true}}
}

// unrelated is for an owner whose work has no history in common with the target: the lane's branch, which began at
// base, was moved, or the target was. Then base is "".
func unrelated(branch, base string) comeback {
	what := fmt.Sprintf("Somebody has moved %s to a history that has no commit in common with your lane, so your work "+
		"cannot be merged into it.\nYou cannot mend that in your lane: tell the lead, who can ask for %s to be moved "+
		"back, then call complete_task again, or release the task.", branch, branch)
	if base != "" {
		what = fmt.Sprintf("Your lane's branch was moved to a history that has no commit in common with %s, so "+
			"nothing of it can be merged.\nIn your lane, run: git reset --soft %s\n"+
			"It leaves all files as they are. Look at git status, then call complete_task again.", branch, base)
	}
	return comeback{"conflict", what, board.Details{Text: "everything: it has no common history with " + branch}}
}

// displaced is for an owner in whose phase the target was displaced. what says how.
func displaced(branch, what string) comeback {
	return comeback{"target", fmt.Sprintf("%s.\nOnly landings move %s: work in your lane, on its own branch, and let "+
		"complete_task land it. Your lane is as it was. Look at git status and git log there, then call "+
		"complete_task again.", what, branch), board.Details{Text: what}}
}

func empty(branch string) comeback {
	return comeback{"empty", fmt.Sprintf("Your work would delete every file of %s: your lane is empty.\nIf a command "+
		"has removed the files by mistake, run in your lane: git checkout HEAD~ -- .\nThen call complete_task "+
		"again. A task that is to remove everything has to leave one file.", branch),
		board.Details{Text: "the lane has no file any more"}}
}

// red is for an owner on whose work the check failed, or could not run. isMerged says that what had landed was merged
// into the lane.
func red(branch string, res CheckResult, met collision, isMerged bool) comeback {
	var b strings.Builder
	what := "The check failed"
	if res.CannotRun {
		what = "The check could not run"
	}
	if res.Refused {
		fmt.Fprintf(&b, "A hook of the user refused your work merged with %s.\n", branch)
	} else {
		fmt.Fprintf(&b, "%s on your work merged with %s: %s (%s, %.1f s).\n",
			what, branch, res.Command, res.How, res.Seconds)
	}
	if len(res.Added) > 0 { // on a red base: what is theirs to mend, and what is not
		fmt.Fprintf(&b, "The check is red on %s too, but with your work more fails: %s. Mend that. What else is named "+
			"below failed before your work, and need not be mended for this task.\n", branch,
			text.List(res.Added, maxFiles))
	}
	if isMerged {
		fmt.Fprintf(&b, "What has landed on %s meanwhile is now merged into your lane, so that you can see it fail "+
			"there.\n", branch)
	}
	fmt.Fprintf(&b, "Mend it in your lane, run the check there, then call complete_task again. Its log: %s\n", res.Log)
	b.WriteString(met.text)
	b.WriteString(res.Output)
	last := strings.Split(res.Output, "\n")
	last = last[max(0, len(last)-20):]
	return comeback{"check", b.String(), board.Details{Text: strings.Join(last, "\n"), Failed: res.Failed,
		Log: res.Log, Seconds: res.Seconds, With: met.with, Met: met.met}}
}

// maxFiles is how many files fileList names.
const maxFiles = 20

func fileList(files []string) string {
	if more := len(files) - maxFiles; more > 0 {
		return fmt.Sprintf("%s and %d more files", strings.Join(files[:maxFiles], ", "), more)
	}
	return strings.Join(files, ", ")
}

// maxListed is how many files the owner of a task is told of a kind, and maxListedName how many bytes of a name.
const maxListed, maxListedName = 6, 100

// listed names some files.
func listed(files []string) string {
	var names []string
	for _, f := range files {
		names = append(names, text.CutBytes(text.OneLine(f), maxListedName))
	}
	return text.List(names, maxListed)
}

func localFilesHeld(branch string, held []string, landsHistory bool) comeback {
	var b strings.Builder
	fmt.Fprintf(&b, "Your work holds files that were copied from the user's checkout and never land: %s.\n",
		listed(held))
	b.WriteString("Take them out of the commit and leave them where they are: git rm --cached -f " +
		text.ShellQuote(held[0]) + "\n")
	if landsHistory {
		fmt.Fprintf(&b, "They must go from ALL commits of your lane, because its history lands too: then run: "+
			"git reset --soft $(git merge-base HEAD %s)\n", branch)
	}
	b.WriteString("Then call complete_task again. Only the user can let one land, by taking it out of " +
		localfiles.Name + ".")
	return comeback{"local", b.String(), board.Details{Text: listed(held) + " of " + localfiles.Name}}
}

func secretsHeld(branch string, held []secrets.Finding, landsHistory bool) comeback {
	var b strings.Builder
	b.WriteString("Your work holds what looks like a secret, so it does not land. File, line and rule:\n")
	var ids []string
	for i, f := range held {
		if i == maxFiles {
			fmt.Fprintf(&b, "  and %d more\n", len(held)-i)
			break
		}
		ids = append(ids, f.Fingerprint)
		fmt.Fprintf(&b, "  %s (%s)\n", placeOf(f), f.Fingerprint)
	}
	b.WriteString("Take each out of your files, and let the program read it from its environment or from a file that " +
		"git ignores. Comments that switch scanners off do not count here.\n")
	if landsHistory {
		fmt.Fprintf(&b, "It must go from ALL commits of your lane, because its history lands too: when your files are "+
			"clean, run: git reset --soft $(git merge-base HEAD %s)\n", branch)
	}
	b.WriteString("Then call complete_task again. If one is a real key, tell the lead that it has to be replaced: " +
		"others may have read it here. If one is no secret, such as made-up data of a test, make it recognisable as " +
		"such (EXAMPLE in it), or tell the lead. Only the user can allow it, in a shell of their own: " +
		"muster allow secret " + strings.Join(ids, " ") + "\n")
	more := ""
	if len(held) > 1 {
		more = fmt.Sprintf(" and %d more", len(held)-1)
	}
	// For people: what is held back, and how they allow the first of it.
	return comeback{"secret", b.String(), board.Details{
		Text: fmt.Sprintf("%s%s (muster allow secret %s)", placeOf(held[0]), more, held[0].Fingerprint)}}
}

// placeOf says where something was found, and what it looks like. It never says what was found.
func placeOf(f secrets.Finding) string {
	return fmt.Sprintf("%s:%d %s", text.OneLine(f.File), f.Line, f.Rule)
}

// unreviewed is for an owner whose reviewer has given no verdict. A spent budget does not count: it is the user's, and
// ends the owner's work too.
func unreviewed(role string, why error) comeback {
	_, isSpent := spend.IsExceeded(why)
	return comeback{"review", fmt.Sprintf("Your work was not reviewed: the %s has given no verdict (%v).\n"+
		"Work lands only after a review. Nothing is known to be wrong with it: leave it as it is, and call "+
		"complete_task again, which has it reviewed again.", role, text.CutBytes(text.OneLine(why.Error()), 300)),
		board.Details{Moved: isSpent, Text: "no verdict: " + text.CutBytes(text.OneLine(why.Error()), 200)}}
}

// rejected is for an owner whose work the reviewer returns. line returns a line of the lane.
func rejected(
	ctx context.Context, role string, v ReviewVerdict, line func(context.Context, string, int) (string, error),
) comeback {
	var b strings.Builder
	fmt.Fprintf(&b, "The %s returns your work. The check has passed, and nothing has landed.\n", role)
	if v.Text != "" {
		fmt.Fprintf(&b, "%s\n", v.Text)
	}
	first := text.OneLine(v.Text)
	for i, c := range v.Comments {
		at := c.File
		if c.Line > 0 {
			at = fmt.Sprintf("%s:%d", c.File, c.Line)
		}
		if i == 0 {
			first = at + ": " + text.OneLine(c.Text)
		}
		fmt.Fprintf(&b, "\n%s", at)
		if quoted, err := line(ctx, c.File, c.Line); err == nil && c.Line > 0 {
			fmt.Fprintf(&b, ": %s", text.CutBytes(text.OneLine(quoted), 300))
		}
		fmt.Fprintf(&b, "\n%s\n", c.Text)
	}
	b.WriteString("\nChange your work accordingly, or say in the summary why it is right as it is; then call " +
		"complete_task again.")
	if more := len(v.Comments) - 1; more > 0 {
		first += fmt.Sprintf(" (and %d more)", more)
	}
	return comeback{"review", b.String(), board.Details{Text: text.CutBytes(first, 300)}}
}
