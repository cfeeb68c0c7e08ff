package team_test

import (
	"strings"
	"testing"
	"time"

	"muster/journal"
)

// TestATeammateWithoutWorkCostsNothing: a teammate whose tasks are all blocked is not asked before one is free. Its first
// request has the task and the words with which it was spawned, also if it was spawned before its task was created.
func TestATeammateWithoutWorkCostsNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		q := &asked{Model: h.scripted(`
speakers:
  lead:
    - do:
        - spawn_teammate: {name: ann, role: coder, prompt: Write the contract.}
        - spawn_teammate: {name: ben, role: tester, prompt: Test what is there.}
        - task_create: {subject: contract, claim_role: coder}
        - task_create: {subject: tests, claim_role: tester, blocked_by: [contract]}
    - do: [{wait: {}}]
      until: All done
    - say: Done.
  ann:
    - wait: 5m
      do: [{write_file: {path: contract, content: x}}]
    - do: [{complete_task: {summary: contract}}]
  ben:
    - do: [{write_file: {path: tests, content: x}}]
    - do: [{complete_task: {summary: tests}}]
`)}
		h.run(h.open(q, nil)).ends(0, time.Hour)
		for name, words := range map[string][]string{"ann": {"Write the contract.", "Task #1: contract"}, "ben": {"Test what is there.", "Task #2: tests"}} {
			all := q.of(name)
			if len(all) != 2 {
				t.Errorf("%s was asked %d times", name, len(all))
			}
			for _, want := range words {
				if text := sayings(all[0]); !strings.Contains(text, want) {
					t.Errorf("%s does not read %q first: %s", name, want, text)
				}
			}
		}
		landed := h.until("the contract", is(journal.TaskCompleted, "ann"))
		if first := h.until("ben's first turn", is(journal.TurnStarted, "ben")); first.At < landed.At {
			t.Errorf("ben was asked before the contract had landed\n%s", h.tail())
		}
	})
}
