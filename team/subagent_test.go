package team_test

import (
	"slices"
	"testing"
	"time"

	"muster"
	"muster/journal"
)

// What a subagent calls is in the journal as what its member calls is, and says that it was the subagent.
func TestSubagentCallsAreAudited(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		h.start(`
speakers:
  lead:
    - do: [{task_create: {subject: look}}, {claim_task: {task_id: 1}}]
    - do: [{subagent: {prompt: inspect it, kind: explore}}, {subagent: {prompt: alter it, kind: work}}]
    - do: [{complete_task: {task_id: 1, summary: looked}}]
    - say: Done.
scenes:
  - cue: inspect it
    who: [lead/sub]
    turns: [{do: [{read_file: {path: no-such-file}}]}, {say: I looked.}]
  - cue: alter it
    who: [lead/sub]
    turns: [{do: [{bash: {command: echo x > made}}]}, {say: I changed it.}]
`, nil).ends(0, time.Hour)
		var got []string
		for _, e := range h.events() {
			if by, _ := e.Fields["subagent"].(bool); by && e.Kind != journal.TurnEnded {
				if e.Member != muster.Lead || e.Task != 1 {
					t.Errorf("%s is an event of %s at task %d", e.Kind, e.Member, e.Task)
				}
				got = append(got, e.Kind+" "+e.Text("tool")+" "+e.Text("text"))
				if e.Kind == journal.ToolEnded && (e.Text("error") != "") != (e.Text("tool") == "read_file") {
					t.Errorf("%s ended with %q", e.Text("tool"), e.Text("error"))
				}
			}
		}
		want := []string{"tool.started read_file no-such-file", "tool.ended read_file ",
			"tool.started bash echo x > made", "tool.ended bash "}
		if !slices.Equal(got, want) {
			t.Errorf("the journal has %q", got)
		}
	})
}
