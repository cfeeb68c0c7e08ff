//go:build unix

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"muster/internal/testing/program"
	"muster/internal/testing/tier"
	"muster/internal/testing/tmuxtest"
)

// aPlanWaits is a team whose only teammate asks before it writes. The lead leaves the decision to the user.
const aPlanWaits = `
speakers:
  lead:
    - do:
        - task_create: {subject: rewrite the parser, description: In one pass., require_plan: true}
        - spawn_teammate: {name: alice, role: coder, prompt: You write code.}
    - do: [{wait: {}}]
      until: All done
    - say: The parser is rewritten.
scenes:
  - cue: 'Task #(?P<id>\d+): rewrite the parser'
    who: [coder]
    turns:
      - say: I have a plan.
        do: [{submit_plan: {plan: "One pass instead of two.\n\n1. one\n2. two\n3. three\n4. four\n5. five\n6. six\n7. seven\n8. eight\n9. nine\n10. ten\n11. eleven\n12. twelve\n13. thirteen\n14. fourteen\n15. fifteen\n16. sixteen\n\nundo: git revert"}}]
      - do: [{write_file: {path: parser.txt, content: "one pass\n"}}]
      - do: [{complete_task: {task_id: "${number:id}", summary: It reads in one pass.}}]
`

// planScene is a terminal beside a team in which a plan waits for the user.
type planScene struct {
	*tmuxtest.Screen
	t   *testing.T
	w   *world
	run *exec.Cmd
	out strings.Builder
}

// openPlanScene starts the terminal; begin starts the team.
func openPlanScene(t *testing.T) *planScene {
	t.Helper()
	t.Parallel()
	w := newWorld(t)
	return &planScene{Screen: w.terminal(), t: t, w: w}
}

// begin starts a run.
func (s *planScene) begin() {
	s.t.Helper()
	words := filepath.Join(s.t.TempDir(), "words.yaml")
	if err := os.WriteFile(words, []byte(aPlanWaits), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.run = exec.Command(program.Path(s.t), "run", "a faster parser", "--model", "script/"+words)
	s.run.Dir = s.w.dir
	s.run.Stdout, s.run.Stderr = &s.out, &s.out
	if err := s.run.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = s.run.Process.Kill() }) // it has ended, unless the test has failed
}

// ends waits until the run has ended with its task landed.
func (s *planScene) ends() {
	s.t.Helper()
	if err := s.run.Wait(); err != nil || !strings.Contains(s.out.String(), "1 of 1 task landed") {
		s.t.Errorf("%v\n%s", err, s.out.String())
	}
}

// watchThePlan opens the screen when the plan waits, so that it opens on the plan.
const watchThePlan = "until muster requests | grep -q plan; do sleep 0.1; done; muster watch"

const planIsShown = `(?s)goal: a faster parser.*PLAN for 1 rewrite the parser.*> plan for 1 .*One pass instead of two.*a approve`

func TestWatchShowsAPlanWholeAndApprovesIt(t *testing.T) {
	tier.All(t)
	s := openPlanScene(t)
	// It opens before there is a team, and shows the team when it is there.
	s.Keys("muster watch", "Enter")
	s.Wait(`no team has worked here yet(.|\n)*q quit`)
	s.begin()
	s.Wait(planIsShown)
	s.Keys("Enter", "PageDown")
	s.Wait(`(?s)undo: git revert`)
	s.Keys("a")
	s.Wait(`plan for 1 of alice is approved`)
	s.Wait(`(?s)> PLAN approved for 1`)
	s.ends()
	s.Wait(`(?s)1 finished`)
	s.Keys("q")
	s.Wait(`\$ $`)
	s.Cooked()
	if h := s.History(); strings.Contains(h, "PLAN") {
		t.Errorf("the shell got parts of the full screen:\n%s", h)
	}
}

// A full screen that is killed leaves no process and no file behind, and the team at work.
func TestAKilledWatchLeavesNothing(t *testing.T) {
	tier.All(t)
	s := openPlanScene(t)
	s.begin()
	s.Keys(watchThePlan, "Enter") // the second one is killed: the first one has read all there is
	s.Wait(planIsShown)
	s.Keys("q")
	s.Wait(`\$ $`)
	before := files(t, s.w.dir)
	s.Keys(`sh -c 'echo $$ > `+s.Dir+`/pid; exec muster watch'`, "Enter")
	s.Wait(planIsShown)
	text, err := os.ReadFile(filepath.Join(s.Dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.Wait(`K\s*i\s*l\s*l\s*e\s*d`) // the terminal is as the screen has left it, so a line is no line there
	children, _ := exec.Command("ps", "-o", "pid=,args=", "--ppid", strconv.Itoa(pid)).Output()
	if len(children) > 0 {
		t.Errorf("it has left processes:\n%s", children)
	}
	if after := files(t, s.w.dir); after != before {
		t.Errorf("before it there was\n%s\nand now\n%s", before, after)
	}
	// Another one opens there. What waits is still to be decided.
	s.Keys("stty sane; clear", "C-j")
	s.Wait(`^\$ $`)
	s.Keys("muster watch", "Enter")
	s.Wait(planIsShown)
	s.Keys("a")
	s.Wait(`plan for 1 of alice is approved`)
	s.ends()
	s.Keys("q")
	s.Wait(`\$ $`)
}

// files lists the files below a directory, those of git excepted.
func files(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		// The team is at work, and takes its mail.
		if err == nil && !strings.Contains(path, "/.git/") && !strings.Contains(path, "/.team/inbox/") {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, "\n")
}

// Without a terminal it says what shows the team instead.
func TestWatchWantsATerminal(t *testing.T) {
	w := newWorld(t, "watch")
	w.run(t.Context(), exitError)
	if got := w.err.String(); !strings.Contains(got, "muster watch needs a terminal") || !strings.Contains(got, "muster status   or: muster log -f") {
		t.Errorf("it says\n%s", got)
	}
}
