package landing_test

import (
	"strings"
	"testing"

	"muster"
	"muster/internal/board"
	"muster/internal/testing/tier"
)

// publish has the owner of a task publish a check.
func (w *world) publish(t muster.Task, name, command string) {
	w.t.Helper()
	if _, err := board.Publish(w.ctx(), w.board, t.ID, t.Fence, muster.PublishedCheck{Name: name, Command: command}); err != nil {
		w.t.Fatal(err)
	}
}

// TestContract checks that a published check holds for its own landing and each later one, with and without a check of
// the run, and that one that breaks it hears whose it is, until it is retired.
func TestContract(t *testing.T) {
	tier.All(t)
	t.Parallel()
	for _, check := range []string{"", "true"} {
		w := newWorld(t, check, map[string]string{"a": "a\n"})
		api, lane := w.task("Api", "alice", map[string]string{"api": "v2\n"})
		w.publish(api, "api", "grep -q v1 api")
		v := w.back(api)
		if !strings.Contains(v.Text, "breaks a published check (exit 1") ||
			!strings.Contains(v.Text, "check api of task 1 (Api, alice): grep -q v1 api.\n") {
			t.Errorf("%q: its own landing: %s", check, v.Text)
		}
		w.write(lane, map[string]string{"api": "v1\n"})
		w.lands(api)

		fine, _ := w.task("Fine", "bob", map[string]string{"b": "b\n"})
		w.lands(fine)
		other, _ := w.task("Other", "carol", map[string]string{"c": "c\n"})
		w.publish(other, "other", "test -e c")
		breaks, _ := w.task("Breaks", "bob", map[string]string{"api": "v3\n"})
		v = w.back(breaks)
		if !strings.Contains(v.Text, "check api of task 1 (Api, alice)") || strings.Contains(v.Text, "other") {
			t.Errorf("%q: %s", check, v.Text)
		}
		if _, err := board.Retire(w.ctx(), w.board, api.ID, "api", muster.Lead); err != nil {
			t.Fatal(err)
		}
		w.lands(breaks)
		w.lands(other)
	}
}
