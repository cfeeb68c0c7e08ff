//go:build unix

package cli

import (
	"path/filepath"
	"testing"

	"muster/internal/testing/gittest"
	"muster/internal/testing/tmuxtest"
)

// landsGreeting is a script of a lead that lands one file.
const landsGreeting = `speakers:
  lead:
    - do: [{task_create: {subject: greet}}, {claim_task: {task_id: 1}}]
    - do: [{write_file: {path: greeting, content: "hello\n"}}]
    - do: [{complete_task: {task_id: 1, summary: Says hello.}}]
    - say: Done.
`

// runsAtTerminal returns a terminal in a repository with an uncommitted file, and what to type there for a run that
// lands greeting.
func runsAtTerminal(t *testing.T, file, check string) (w *world, s *tmuxtest.Screen, run string) {
	t.Helper()
	t.Parallel()
	w = newWorld(t)
	s = w.terminal()
	gittest.Write(t, w.dir, map[string]string{file: "mine\n"})
	gittest.Write(t, s.Dir, map[string]string{"go.sh": "clear; muster run x --teammates 0 --check '" + check +
		"' --model 'script/" + w.words(landsGreeting) + "'; echo exit $?\n"})
	return w, s, "sh " + filepath.Join(s.Dir, "go.sh")
}

const (
	asksWhere = `1 file is not committed: \w+\n  h  begin at HEAD(?s:.*)merge makes it a commit of main\n\[h/s\]`
	asksMerge = `m  merge it into main: \d files?, \+\d -0    any other key  leave it$`
)

// One key decides where a run with uncommitted changes begins, and one key takes its work.
func TestOneKeyForASnapshotAndOneForTheMerge(t *testing.T) {
	w, s, run := runsAtTerminal(t, "mine", "true")
	s.Keys(run, "Enter")
	s.Wait(asksWhere)
	s.Keys("x") // is no answer
	s.Keys("C-c")
	s.Wait(`exit 130\n`)
	s.Cooked()
	if refs := gittest.Git(t, w.dir, "for-each-ref"); refs != gittest.Git(t, w.dir, "for-each-ref", "refs/heads/main") {
		t.Errorf("there are %s", refs)
	}
	s.Keys("clear", "Enter") // what is typed before the question is no answer
	s.Wait(`^\$ $`)
	s.Keys(run, "Enter")
	s.Wait(asksWhere)
	s.Keys("s")
	s.Wait(asksMerge)
	if at := gittest.Git(t, w.dir, "status", "--porcelain"); at != "?? mine" {
		t.Errorf("the checkout has %q", at)
	}
	s.Keys("m")
	s.Wait(`2 commits of muster/repo came to main by fast-forward(?s:.*)snapshot of your uncommitted changes(?s:.*)exit 0\n`)
	s.Cooked()
	if got := gittest.Git(t, w.dir, "log", "--format=%s", "-2", "main"); got != "greet\nSnapshot of uncommitted changes" {
		t.Errorf("main has %q", got)
	}
	if at := gittest.Git(t, w.dir, "status", "--porcelain"); at != "" {
		t.Errorf("the checkout has %q", at)
	}
}

// With Enter the run begins at HEAD. With another key than m the work stays on the team's branch, and the next run,
// which builds on it, does not ask where to begin.
func TestEnterBeginsAtHeadAndAnotherKeyLeavesTheWork(t *testing.T) {
	w, s, run := runsAtTerminal(t, "mine", "true")
	s.Keys(run, "Enter")
	s.Wait(asksWhere)
	s.Keys("Enter")
	s.Wait(asksMerge)
	s.Keys("x")
	s.Wait(`leave it\nnot merged; later: muster merge\nexit 0\n`)
	s.Cooked()
	if got := gittest.Git(t, w.dir, "log", "--format=%s", "main..muster/repo"); got != "greet" {
		t.Errorf("muster/repo has %q", got)
	}
	s.Keys("clear; muster run y --model 'script/"+w.words("speakers: {lead: [{say: Hello.}]}\n")+"'; echo exit $?", "Enter")
	s.Wait(`Hello\.\n(?s:.*)exit 0\n`)
}

// A key that is followed by another one was the beginning of a command.
func TestACommandAtTheEndMergesNothing(t *testing.T) {
	w, s, run := runsAtTerminal(t, "mine", "true")
	s.Keys(run, "Enter")
	s.Wait(asksWhere)
	s.Keys("h")
	s.Wait(asksMerge)
	s.Keys("-l", "mv a b")
	s.Wait(`more was typed, so nothing is merged: muster merge\nexit 0\n`)
	s.Cooked()
	if got := gittest.Git(t, w.dir, "log", "--format=%s", "main..muster/repo"); got != "greet" {
		t.Errorf("muster/repo has %q", got)
	}
}

// The run does not offer a merge that an uncommitted file is in the way of.
func TestNoKeyMergesOverChangesInTheWay(t *testing.T) {
	_, s, run := runsAtTerminal(t, "greeting", "true")
	s.Keys(run, "Enter")
	s.Wait(asksWhere)
	s.Keys("h")
	s.Wait(`take them:  muster merge\nexit 0\n`)
}

// What was typed while the team worked is for the shell, and answers no question.
func TestNoKeyIsTakenFromTheShell(t *testing.T) {
	w, s, _ := runsAtTerminal(t, "mine", "")
	typed := filepath.Join(s.Dir, "typed")
	gittest.Write(t, s.Dir, map[string]string{"go.sh": "clear; muster run x --without-changes --teammates 0 --check 'until test -e " +
		typed + "; do sleep 0.1; done' --model 'script/" + w.words(landsGreeting) + "'; echo exit $?\n"})
	s.Keys("sh "+filepath.Join(s.Dir, "go.sh"), "Enter")
	s.Wait(`the base`)
	s.Keys("echo shell-$((1+1))")
	gittest.Write(t, s.Dir, map[string]string{"typed": ""})
	s.Wait(`take them:  muster merge\nexit 0\n`)
	s.Keys("Enter")
	s.Wait(`\nshell-2\n`)
}

// The conversation asks too.
func TestAConversationAsksWhereToBegin(t *testing.T) {
	w, s, _ := runsAtTerminal(t, "mine", "")
	s.Keys("clear; muster --model 'script/"+w.words(landsGreeting)+"'", "Enter")
	s.Wait(asksWhere)
	s.Keys("-l", "this message answers nothing\n")
	s.Wait(`more than one key was typed, which is no answer\n\[h/s\]$`)
	s.Keys("s")
	s.Wait(`> $`)
	s.Keys("go", "Enter")
	s.Wait(`the team begins at a snapshot`)
}
