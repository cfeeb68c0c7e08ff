package face

import (
	"regexp"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"muster"
	"muster/internal/tool/code"
	"muster/internal/view"
)

// TestAsk checks that a question has all that is needed to answer it.
func TestAsk(t *testing.T) {
	r := muster.Request{ID: "a1", Kind: muster.AskPermission, From: "bob", To: muster.User, TaskID: 3, CreatedAt: 900,
		Deadline: 1240, Plan: "git push\x1b[2J\n--force", Reason: "git push\x1b[2J\n--force (ask bash(git push *))", Asks: []string{"bash(git push)"}}
	q := Ask(r, view.Paint{}, muster.Time(1000), 80, func(muster.TaskID) string { return "benchmark" })
	var keys []string
	for _, k := range q.Keys {
		keys = append(keys, k.Name)
	}
	got := q.Title + " | " + q.Note + " | " + strings.Join(q.Lines, " | ") + " | " + strings.Join(keys, " ")
	const want = "bob asks: run this command? | 4 min left, then no | $ git push[2J\n  --force | rule: ask bash(git push *) · task 3 benchmark | y Y n v"
	if got != want {
		t.Errorf("%q", got)
	}
}

// TestAskAboutAChange checks that the difference stands in the question, with numbers and harmless.
func TestAskAboutAChange(t *testing.T) {
	change := func(path, before, after string, isNew bool) string {
		files := []code.FileChange{{Path: path, Before: before, After: after, IsNew: isNew}}
		diff, _, _ := code.Unified(files, nil, 1000)
		return diff
	}
	for _, c := range []struct{ title, change, want string }{
		{"bob asks: change a.go?", change("a.go", "one\ntwo\nold\nfour\nfive\n", "one\ntwo\nnew\x1b[2J\nfour\nfive\n", false),
			"a.go  +1 -1\n 2  two\n 3 -old\n 3 +new[2J\n 4  four"},
		{"bob asks: create b.go?", change("b.go", "", "one\n", true), "b.go (new)  +1\n 1  one"},
		{"bob asks: create c.go?", change("c.go", "", "", true), "c.go (new)  +0"},
		{"bob asks: change a +++ b/x?", change("a\n+++ b/x", "-- a/y\n", "", false), "a +++ b/x  -1\n 1 --- a/y"},
	} {
		r := muster.Request{ID: "a1", Kind: muster.AskPermission, From: "bob", To: muster.User, CreatedAt: 900, TaskID: 3,
			Change: c.change, Reason: "edit_file a.go (ask edit_file of the user's config.yaml)", Asks: []string{"write_file(a.go)"}}
		q := Ask(r, view.Colours(nil), muster.Time(1000), 80, func(muster.TaskID) string { return "benchmark" })
		got := regexp.MustCompile(` +(\n|$)`).ReplaceAllString(ansi.Strip(q.Lines[0]), "$1")
		if q.Title != c.title || got != c.want {
			t.Errorf("%q %q", q.Title, got)
		}
		if got := q.Keys[1].Label; got != "allow changes to a.go in this run" {
			t.Errorf("Y %s", got)
		}
		if got, want := ansi.Strip(q.Lines[1]), "rule: ask edit_file of your config.yaml · task 3 benchmark"; got != want {
			t.Errorf("%q", got)
		}
	}
}
