package face

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"muster"
	"muster/internal/view"
)

// TestAsk checks that a question has all that is needed to answer it.
func TestAsk(t *testing.T) {
	r := muster.Request{ID: "a1", Kind: muster.AskPermission, From: "bob", To: muster.User, TaskID: 3, CreatedAt: 900,
		Deadline: 1240, Plan: "git push\x1b[2J\n--force", Reason: "git push\x1b[2J\n--force (ask bash(git push *))", Asks: []string{"bash(git push)"}}
	q := Ask(r, view.Paint{}, muster.Time(1000), func(muster.TaskID) string { return "benchmark" })
	var keys []string
	for _, k := range q.Keys {
		keys = append(keys, k.Name)
	}
	got := q.Title + " | " + q.Note + " | " + strings.Join(q.Lines, " | ") + " | " + strings.Join(keys, " ")
	const want = "bob asks to run | no in 4 min | $ git push[2J\n  --force | rule: ask bash(git push *) | " +
		"for task 3 benchmark | y n Y v"
	if got != want {
		t.Errorf("%q", got)
	}
}

// TestAskAboutAChange checks that the difference stands in the question, in colours and harmless.
func TestAskAboutAChange(t *testing.T) {
	r := muster.Request{ID: "a1", Kind: muster.AskPermission, From: "bob", To: muster.User, CreatedAt: 900,
		Change: "a.go  +1 -1\n before\n-\told\n+new\x1b[2J", Reason: "edit_file a.go (ask edit_file of the user's config.yaml)"}
	q := Ask(r, view.Colours(nil), muster.Time(1000), func(muster.TaskID) string { return "" })
	const want = "a.go  +1 -1\n\x1b[31m-    old\x1b[0m\n\x1b[32m+new[2J\x1b[0m"
	if q.Title != "bob asks to change" || q.Lines[0] != want {
		t.Errorf("%q %q", q.Title, q.Lines)
	}
	if got, want := ansi.Strip(q.Lines[1]), "edit_file a.go (ask edit_file of your config.yaml)"; got != want {
		t.Errorf("%q", got)
	}
}
