//go:build unix

package cli

import (
	"os/exec"
	"strings"
	"testing"

	"muster/internal/testing/program"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
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

func TestWatchShowsAPlanWholeAndApprovesIt(t *testing.T) {
	tier.All(t)
	t.Parallel()
	w := newWorld(t)
	s := w.terminal()
	// It opens before there is a team, and shows the team when it is there.
	s.Keys("muster watch", "Enter")
	s.Wait(`no team has worked here yet(.|\n)*q quit`)
	run := exec.Command(program.Path(t), "run", "a faster parser", "--model", "script/"+w.words(aPlanWaits))
	run.Dir, run.Stdout, run.Stderr = w.dir, &w.out, &w.out
	require.NoError(t, run.Start())
	t.Cleanup(func() { _ = run.Process.Kill() }) // it has ended, unless the test has failed
	s.Wait(`(?s)goal: a faster parser.*PLAN for 1 rewrite the parser.*> plan for 1 .*One pass instead of two.*a approve`)
	s.Keys("Enter", "PageDown")
	s.Wait(`(?s)undo: git revert`)
	s.Keys("a")
	s.Wait(`plan for 1 of alice is approved`)
	s.Wait(`(?s)> PLAN approved for 1`)
	if err := run.Wait(); err != nil || !strings.Contains(w.out.String(), "1 of 1 task landed") {
		t.Errorf("%v\n%s", err, w.out.String())
	}
	s.Wait(`(?s)1 finished`)
	s.Keys("q")
	s.Wait(`\$ $`)
	s.Cooked()
	if h := s.History(); strings.Contains(h, "PLAN") {
		t.Errorf("the shell got parts of the full screen:\n%s", h)
	}
}
