package team_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"muster"
	"muster/internal/compact"
	"muster/internal/testing/tier"
	"muster/llm"
	"muster/team"
)

// TestFiftyTasksInARow has a teammate do 50 tasks (12 in the first tier), each with mail, files and a report. What its
// model is sent for a task does not grow from the fifth to the last by more than a tenth.
func TestFiftyTasksInARow(t *testing.T) {
	t.Parallel()
	tasks, rounds := tier.Amount(12, 50), 6
	bubble(t, func(h *house) {
		sent, task, round := map[int]int{}, 0, 0
		m := cast{
			"lead": func(_ context.Context, n int, _ llm.Request) (llm.Reply, error) {
				switch {
				case n < tasks:
					return calls(fmt.Sprint("l", n), "task_create", in{"subject": fmt.Sprintf("part %d", n+1),
						"description": strings.Repeat("It must do what the chapter says. ", 20)})
				case n == tasks:
					return calls("s", "spawn_teammate", in{"name": "alice", "role": "coder", "prompt": "Work."})
				}
				return calls(fmt.Sprint("w", n), "wait", in{})
			},
			"alice": func(_ context.Context, n int, r llm.Request) (llm.Reply, error) {
				if last := r.Messages[len(r.Messages)-1].Parts.Text(); strings.Contains(last, fmt.Sprintf("Task #%d: ", task+1)) {
					task, round = task+1, 0
				}
				sent[task] += compact.PrefixTokens(r.System, r.Tools) + compact.Estimate(r.Messages)
				id := fmt.Sprint("a", n)
				switch round++; {
				case round < rounds:
					return calls(id, "write_file", in{"path": fmt.Sprintf("part%d/file%d.go", task, round),
						"content": strings.Repeat(fmt.Sprintf("line %d of round %d\n", task, round), 30)})
				case round == rounds:
					return calls(id, "complete_task", in{"task_id": task, "summary": strings.Repeat("I made it so. ", 30)})
				}
				return says("Done with it.")
			}}.model()
		r := h.run(h.open(m, func(c *team.Config) { c.Teammates = 1 }))
		h.until("the last one", completed(muster.TaskID(tasks)))
		r.abandon()
		least, most := sent[5], sent[5]
		for i := 5; i <= tasks; i++ {
			least, most = min(least, sent[i]), max(most, sent[i])
		}
		t.Logf("tokens sent for a task: the first %d, the second %d, from the fifth to the last %d to %d", sent[1], sent[2],
			least, most)
		if sent[5] == 0 || float64(most) > 1.1*float64(least) {
			t.Errorf("from the fifth task to the last %d to %d tokens: %v", least, most, sent)
		}
	})
}
