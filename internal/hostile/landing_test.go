package hostile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"muster/internal/testing/scripts"
)

// TestLanding runs what agents do to get around the landing, or to change what is the user's.
func TestLanding(t *testing.T) {
	runTable(t, "landing", map[string]command{"team": teamRun, "does": does, "landed": landed, "at": at,
		"held": held, "theirs": theirs, "told": told})
}

// teamRun CODE SCRIPT ARGS... runs a team whose lead is the scripted model of the file, alone and without a check unless
// the arguments say otherwise, and checks the exit code.
func teamRun(ts *testscript.TestScript, neg bool, args []string) {
	all := append([]string{args[0], "muster", "run", "goal", "--teammates", "0", "--model",
		"script/" + ts.MkAbs(ts.Getenv("WORK")+"/"+args[1])}, args[2:]...)
	code := 0
	if err := ts.Exec(all[1], all[2:]...); err != nil {
		_, _ = fmt.Sscanf(err.Error(), "exit status %d", &code) // one that was killed has none
	}
	if (fmt.Sprint(code) == args[0]) == neg {
		ts.Fatalf("exit code %d", code)
	}
	// Both outputs in one file, for contains: a pattern of stderr would have to be quoted.
	ts.Check(os.WriteFile(ts.MkAbs(ts.Getenv("WORK")+"/stderr+out"),
		[]byte(ts.ReadFile("stderr")+ts.ReadFile("stdout")), 0o600))
}

// git returns what git prints in the current directory, "" when it fails.
func git(ts *testscript.TestScript, args ...string) string {
	cmd := exec.Command("git", args...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_NOSYSTEM", "PATH", "GIT_CEILING_DIRECTORIES"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		ts.Logf("git %s: %v", strings.Join(args, " "), err)
		return ""
	}
	return strings.TrimSpace(string(out))
}

// landed BRANCH N FILES... checks that the branch has N commits beyond main, all of which landings made, and these files.
func landed(ts *testscript.TestScript, _ bool, args []string) {
	branch := "refs/heads/" + args[0]
	if link := git(ts, "symbolic-ref", "-q", branch); link != "" {
		ts.Fatalf("%s leads to %s", branch, link)
	}
	commits := strings.Fields(git(ts, "rev-list", "main.."+branch))
	trailers := strings.Count(git(ts, "log", "--format=%(trailers:key=Muster-Task)", "main.."+branch), "Muster-Task")
	if fmt.Sprint(len(commits)) != args[1] || trailers != len(commits) {
		ts.Fatalf("%s has %d commits, %d of them landings", branch, len(commits), trailers)
	}
	files := strings.Join(strings.Fields(git(ts, "ls-tree", "-r", "--name-only", branch)), " ")
	if files != strings.Join(args[2:], " ") {
		ts.Fatalf("%s has %q", branch, files)
	}
}

// at REF COMMIT checks that a ref is at a commit; "none" is no ref.
func at(ts *testscript.TestScript, neg bool, args []string) {
	is, want := git(ts, "rev-parse", "-q", "--verify", args[0]), ""
	if args[1] != "none" {
		want = git(ts, "rev-parse", "-q", "--verify", args[1])
	}
	if (is == want) == neg {
		ts.Fatalf("%s is at %q, and %s is %q", args[0], is, args[1], want)
	}
}

// held TEXT... checks that some ref below refs/muster/archive/ has each of the files in its tree.
func held(ts *testscript.TestScript, _ bool, args []string) {
	var files string
	for _, ref := range strings.Fields(git(ts, "for-each-ref", "--format=%(refname)", "refs/muster/archive/target-*")) {
		files += git(ts, "ls-tree", "-r", "--name-only", ref) + "\n"
	}
	for _, want := range args {
		if !strings.Contains("\n"+files, "\n"+want+"\n") {
			ts.Fatalf("no archived target has %s: %q", want, files)
		}
	}
}

// theirs DIR makes a repository that its user works in: a file, an untracked one, a branch, a tag and a stash.
func theirs(ts *testscript.TestScript, neg bool, args []string) {
	scripts.Repo(ts, neg, args)
	ts.Check(ts.Exec("sh", "-c", "mkdir -p .git/hooks && printf start >readme && git add readme && git commit -qm readme && "+
		"git branch theirs && git tag v1 && printf x >>readme && git stash -q && echo mine >notes"))
}

// told DIR TEXT checks that user and lead were told of a change, each once: by an event and by a mail.
func told(ts *testscript.TestScript, _ bool, args []string) {
	for file, prefix := range map[string]string{
		".team/events.jsonl": `"text":"changed while lead worked: `, ".team/inbox/lead.jsonl": "changed while lead worked: ",
	} {
		text := ts.ReadFile(file)
		if n := strings.Count(text, prefix); n != 1 || !strings.Contains(text, args[1]) {
			ts.Fatalf("%s has %d changes, wanted %q\n%s", file, n, args[1], text)
		}
	}
}

// does CODE COMMAND ARGS... runs a team as team does, whose lead runs one command in the lane of its only task and then
// completes it. If the command has written $TMPDIR/again, that is run before the second try. In the command R is git's
// common directory, ROOT the user's checkout and T the target's name.
func does(ts *testscript.TestScript, neg bool, args []string) {
	command, err := json.Marshal(`R=$(git -C ../.. rev-parse --path-format=absolute --git-common-dir); ROOT=$(dirname $R); ` +
		`T=muster/$(basename $ROOT); ` + args[1])
	ts.Check(err)
	const complete = "    - do: [{complete_task: {task_id: 1, summary: one}}]\n"
	const again = "    - do: [{bash: {command: 'if test -e $TMPDIR/again; then sh $TMPDIR/again; fi'}}]\n"
	script := fmt.Sprintf("speakers:\n  lead:\n    - do: [{task_create: {subject: one}}]\n"+
		"    - do: [{claim_task: {task_id: 1}}]\n    - do: [{bash: {command: %s}}]\n", command) +
		complete + again + complete + "    - say: Done.\n"
	ts.Check(os.WriteFile(ts.Getenv("WORK")+"/does.yaml", []byte(script), 0o600))
	teamRun(ts, neg, append([]string{args[0], "does.yaml"}, args[2:]...))
}

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
	scripts.Exits(ts, false, append([]string{want, "muster"}, run...))
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

func targetTip(ts *testscript.TestScript) string {
	ts.Check(ts.Exec("git", "for-each-ref", "--format=%(objectname)", "refs/heads/muster/t"))
	return ts.ReadFile("stdout")
}

func head(ts *testscript.TestScript) string {
	ts.Check(ts.Exec("git", "rev-parse", "HEAD"))
	return ts.ReadFile("stdout")
}

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
