package face

import (
	"strings"
	"testing"

	"muster"
	"muster/internal/treediff"
	"muster/internal/view"
	"muster/team"
)

// A question is drawn with all that its answer needs, and with the commands that the user may type.
func TestQuestion(t *testing.T) {
	q := Question{Request: muster.Request{ID: "7f2c91aa", Kind: muster.AskPlan, From: "bob", To: muster.Lead, TaskID: 3, Status: muster.RequestPending,
		CreatedAt: 1000, Plan: "1. read\x1b[2J\n2. write", Reason: "it is slow"}, Task: &muster.Task{ID: 3, Subject: "reader", Description: "Read big files."},
		Diff: &team.Diff{Diff: treediff.Diff{Text: strings.Repeat("+line\n", maxDiffLines+5), Files: []treediff.FileChange{{File: "a"}}}}}
	draw := func() string { return q.Draw(view.Screen{}, muster.Time(1020), true) }
	has := func(want ...string) {
		t.Helper()
		for _, w := range want {
			if got := draw(); !strings.Contains(got, w) {
				t.Errorf("no %q in\n%s", w, got)
			}
		}
	}
	has("7f2c91aa  plan for 3\nfrom    bob\n", "\nplan\n  1. read[2J\n  2. write\n", "\nreason\n  it is slow\n", "\ntask 3\n  reader\n  Read big files.\n",
		"changes so far: 1 file\n+line\n", "... and 5 more lines: muster diff 3\n", "say yes:  muster approve 7f2c91aa [COMMENT]\n")
	if got := q.Draw(view.Screen{}, muster.Time(1020), false); strings.Contains(got, "muster approve") {
		t.Errorf("where a key answers, a command is named:\n%s", got)
	}
	q.Diff.Files, q.Request.Kind, q.Request.Asks = nil, muster.AskPermission, []string{"bash(rm x)"}
	has("\ncommand\n  1. read", "changes so far: none\n", "for longer:  muster approve 7f2c91aa --run")
	q.Diff, q.NoDiff, q.Request.To = nil, "it has no lane", "bob"
	if has("changes so far: none to show: it has no lane\n"); strings.Contains(draw(), "say yes") {
		t.Errorf("a member's question is offered to the user:\n%s", draw())
	}
	q.Request.Status, q.Request.ResolvedBy, q.Request.ResolvedAt, q.Request.Response = muster.RequestRejected, muster.User, 1010, "not now"
	has(" by user", "\nanswer\n  not now\n")
}
