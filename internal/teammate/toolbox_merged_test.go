package teammate

import (
	"slices"
	"strings"
	"testing"

	"muster"
	"muster/internal/board"
	"muster/llm"
)

// TestMergedTools: a tool that is a part of another one is not offered, and runs for the calls of the other one that mean
// it, and by its own name.
func TestMergedTools(t *testing.T) {
	for _, who := range []muster.Name{muster.Lead, "alice"} {
		live(t, who, func(l *life) {
			l.create(board.Draft{Subject: "the parser", Description: "of chapter seven"})
			l.start(calls("task_list", map[string]any{"task_id": "#1"}), calls("task_get", map[string]any{"task_id": 1}),
				calls("send_message", map[string]any{"to": "all", "content": "to each"}),
				calls("bash", map[string]any{"command": "make", "background": true}),
				calls("check_background", map[string]any{"id": "bg-1", "stop": true}), says("What now?"))
			heard := l.heard()
			if n := strings.Count(heard, "\"description\": \"of chapter seven\""); n != 2 {
				t.Errorf("%s reads the task %d times: %s", who, n, heard)
			}
			others := l.mail("alice")
			if who == "alice" {
				others = l.mail(muster.Lead)
			}
			if !slices.ContainsFunc(others, func(m muster.Message) bool { return m.Content == "to each" }) {
				t.Errorf("%s: the mail to all is not in %+v: %s", who, others, heard)
			}
			if l.jobs.Running() != 0 || !strings.Contains(heard, "stopped") {
				t.Errorf("%s: the job runs on: %s", who, heard)
			}
			for _, m := range merged {
				if slices.ContainsFunc(l.asked[0].Tools, func(s llm.Spec) bool { return s.Name == m.tool }) {
					t.Errorf("%s is offered %s", who, m.tool)
				}
			}
		})
	}
}
