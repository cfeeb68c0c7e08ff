package hostile

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// Whatever a repository is like, work lands complete and clean in it, or is refused with a sentence and kept. The user's
// checkout, index and stash stay as they are.
func TestRepositories(t *testing.T) {
	runTable(t, "repositories", map[string]command{"lands": lands, "target": target, "commit": commit})
}

// lands SHELL FLAGS... runs a team whose lead claims a task, runs the commands in its lane and completes it: the work
// lands on muster/t. ! lands SHELL TEXT FLAGS... is a run in which it does not: the agent is told the text, the target
// stays, and the lane is kept.
func lands(ts *testscript.TestScript, neg bool, args []string) {
	refused, flags := "", args[1:]
	if neg {
		refused, flags = args[1], args[2:]
	}
	path := ts.MkAbs(ts.Getenv("WORK") + "/agent.yaml")
	ts.Check(os.WriteFile(path, scripted(working(bash("set -e\n"+args[0]))), 0o600))
	before, tip := usersThings(ts), targetTip(ts)
	run := append([]string{"run", "work", "--team", "t", "--teammates", "0", "--model", "script/" + path}, flags...)
	want := "0"
	if neg {
		want = "3"
	}
	exits(ts, false, append([]string{want, "muster"}, run...))
	if now := usersThings(ts); now != before {
		ts.Fatalf("the user's things have changed from\n%s\nto\n%s", before, now)
	}
	told, err := filepath.Glob(ts.MkAbs(".transcripts/lead/*.jsonl"))
	ts.Check(err)
	text := ""
	for _, path := range told {
		text += ts.ReadFile(path)
	}
	if !neg {
		if strings.Contains(text, `"is_error":true`) {
			ts.Fatalf("a command of the agent has failed:\n%s", text)
		}
		return
	}
	if !strings.Contains(text, refused) {
		ts.Fatalf("the agent was not told %q:\n%s", refused, text)
	}
	if now := targetTip(ts); now != cmp.Or(tip, head(ts)) {
		ts.Fatalf("the target has moved from %s to %s", tip, now)
	}
	if lanes, err := filepath.Glob(ts.MkAbs(".worktrees/task-*-work")); err != nil || len(lanes) == 0 {
		ts.Fatalf("the lane was not kept: %v", err)
	}
}

// targetTip returns the commit of the target, "" where there is none yet.
func targetTip(ts *testscript.TestScript) string {
	ts.Check(ts.Exec("git", "for-each-ref", "--format=%(objectname)", "refs/heads/muster/t"))
	return ts.ReadFile("stdout")
}

// head returns the commit of the user's checkout.
func head(ts *testscript.TestScript) string {
	ts.Check(ts.Exec("git", "rev-parse", "HEAD"))
	return ts.ReadFile("stdout")
}

// usersThings says how the user's checkout, index, branch and stash are.
func usersThings(ts *testscript.TestScript) string {
	ts.Check(ts.Exec("sh", "-c", "git status --porcelain --branch; git ls-files --stage | cksum; git rev-parse HEAD; "+
		"git rev-parse -q --verify refs/stash; true"))
	return ts.ReadFile("stdout")
}

// target FILE TEXT checks what the target has in a file, with the blanks at both ends cut; ! target FILE that it has none.
func target(ts *testscript.TestScript, neg bool, args []string) {
	err := ts.Exec("git", "cat-file", "blob", "refs/heads/muster/t:"+args[0])
	got := strings.TrimSpace(ts.ReadFile("stdout"))
	switch {
	case neg && err == nil:
		ts.Fatalf("the target has %s: %q", args[0], got)
	case !neg && (err != nil || got != args[1]):
		ts.Fatalf("the target has %q in %s, want %q (%v)", got, args[0], args[1], err)
	}
}

// commit SHELL runs the commands and commits everything.
func commit(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(ts.Exec("sh", "-e", "-c", args[0]+"\ngit add -A\ngit commit -q --allow-empty -m files"))
}
