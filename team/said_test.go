package team_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/team"
)

// A conversation reads like one: words, calls in a few words, answers, and mail as mail.
func TestConversationOfAMember(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		tm := h.open(h.scripted(`
speakers:
  lead:
    - say: I begin.
      do: [{task_create: {subject: write it}}, {claim_task: {task_id: 1}}]
    - do: [{send_message: {to: lead, content: "a note\nto me"}}]
    - do: [{read_file: {path: nothing}}]
    - do: [{complete_task: {task_id: 1, summary: Nothing to do.}}]
    - say: Done.
`), nil)
		h.tellLead("hello\nthere")
		h.run(tm).ends(0, time.Hour)
		var all []string
		var last muster.Pos
		for s, err := range tm.Members().Conversation(h.Context(), muster.Lead, 0) {
			if err != nil {
				t.Fatal(err)
			}
			all, last = append(all, strings.TrimSpace(string(s.Kind)+" "+s.Tool+" "+s.Text)), s.Pos
		}
		for _, want := range []string{"text  I begin.", "call task_create write it", "in  from user: hello\nthere", "text  Done."} {
			if !slices.Contains(all, want) {
				t.Errorf("no %q in %q", want, all)
			}
		}
		if text := strings.Join(all, "\n"); strings.Contains(text, "<inbox>") {
			t.Errorf("mail is shown as the model reads it: %q", text)
		}
		for who, at := range map[muster.Name]muster.Pos{muster.Lead: last, "nobody": 0} {
			for s, err := range tm.Members().Conversation(h.Context(), who, at) {
				t.Errorf("%s after %d: %+v, %v", who, at, s, err)
			}
		}
	})
}

// The list of steps is the one that was taken last, wherever a reader has stopped before: a call that was refused and
// what another tool prints change nothing.
func TestTheStepsOfAMember(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		tm := h.open(h.scripted(`
speakers:
  lead:
    - do: [{bash: {command: "printf '[x] 1 nothing\\n1 of 1 completed'"}}, {todo: {items: [{id: a, text: "write\nit", status: in_progress}]}}, {todo: {items: [{id: a, text: x, status: odd}]}}]
    - do: [{todo: {items: []}}]
    - say: Done.
`), nil)
		h.run(tm).ends(0, time.Hour)
		read := func(after muster.Pos) (ends []muster.Pos, lists [][]team.Step) {
			for s, err := range tm.Members().Conversation(h.Context(), muster.Lead, after) {
				if err != nil {
					t.Fatal(err)
				}
				if ends = append(ends, s.Pos); s.Steps != nil {
					lists = append(lists, s.Steps)
				}
			}
			return ends, lists
		}
		want := [][]team.Step{{{Text: "write\nit", Status: team.StepInProgress}}, {}}
		ends, lists := read(0)
		if !reflect.DeepEqual(lists, want) {
			t.Fatalf("the lists are %q, want %q", lists, want)
		}
		// The rest that each place has is the end of the same lists.
		for _, at := range ends {
			if _, rest := read(at); len(rest) > 2 || !reflect.DeepEqual(rest, want[2-len(rest):]) && len(rest) > 0 {
				t.Errorf("from %d on the lists are %q", at, rest)
			}
		}
		if _, rest := read(ends[slices.IndexFunc(ends, func(p muster.Pos) bool { return p > ends[0] })]); len(rest) != 2 {
			t.Errorf("after the calls the lists are %q", rest)
		}
	})
}
