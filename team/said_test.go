package team_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"muster"
	"muster/team"
)

// A conversation reads like one: words, calls in a few words, answers, and mail as mail.
func TestConversationOfAMember(t *testing.T) {
	t.Parallel()
	dir := repository()
	defer os.RemoveAll(dir)
	tm := opened(dir, `
speakers:
  lead:
    - say: I begin.
      do: [{task_create: {subject: write it}}, {claim_task: {task_id: 1}}]
    - do: [{send_message: {to: lead, content: "a note\nto me"}}]
    - do: [{read_file: {path: nothing}}]
    - do: [{complete_task: {task_id: 1, summary: Nothing to do.}}]
    - say: Done.
`, nil)
	if _, err := tm.Mail().Send(t.Context(), muster.Lead, "hello\nthere"); err != nil {
		t.Fatal(err)
	}
	if _, err := tm.Run(t.Context(), "the goal", team.Start{}); err != nil {
		t.Fatal(err)
	}
	var all []string
	var last muster.Pos
	for s, err := range tm.Members().Conversation(t.Context(), muster.Lead, 0) {
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
	for s, err := range tm.Members().Conversation(t.Context(), muster.Lead, last) {
		t.Errorf("after the end: %+v, %v", s, err)
	}
	for s, err := range tm.Members().Conversation(t.Context(), "nobody", 0) {
		t.Errorf("somebody who never was: %+v, %v", s, err)
	}
}
