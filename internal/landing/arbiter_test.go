package landing_test

import (
	"context"
	"strings"
	"testing"

	"muster"
	"muster/internal/landing"
	"muster/internal/testing/gittest"
	"muster/internal/testing/tier"
)

// dispute makes a world in which two tasks want the same line, one has landed, and the other has come back twice with
// red checks since it conflicted: the next red one is the last. The check wants both words together.
func dispute(t *testing.T) (w *world, two muster.Task, lane string) {
	t.Helper()
	w = newWorld(t, "! grep -q two list || grep -q one list", map[string]string{"list": "base\n"})
	w.state = "ok"
	one, _ := w.task("One", "alice", map[string]string{"list": "one\n"})
	two, lane = w.task("Two", "bob", map[string]string{"list": "two\n"})
	w.lands(one)
	if v := w.back(two); v.Task.Returns != 0 || len(v.Task.Met) != 1 {
		t.Fatalf("the conflict: %+v", v.Task)
	}
	w.write(lane, map[string]string{"list": "two\n"})
	w.back(two)
	if v := w.back(two); v.Task.Returns != 2 {
		t.Fatalf("the second red check: %+v", v.Task)
	}
	return w, two, lane
}

// arbiter writes a text into the lane, and counts how often it was asked.
func arbiter(t *testing.T, asked *int, lane, text string) landing.Agents {
	return landing.Agents{Arbitrate: func(_ context.Context, d landing.Dispute) (landing.ArbiterReport, error) {
		*asked++
		if len(d.Others) != 1 || d.Others[0].Subject != "One" || d.Others[0].Owner != "alice" ||
			d.Others[0].Summary != "What alice did." || !strings.Contains(d.Others[0].Diff, "+one") ||
			d.Task.Subject != "Two" || d.Summary != "What bob did." || !strings.Contains(d.Diff.Text, "+two") ||
			!strings.HasPrefix(d.Task.Arbiter.Why, "check") {
			t.Errorf("the arbiter is told %+v", d)
		}
		gittest.Write(t, lane, map[string]string{"list": text})
		return landing.ArbiterReport{Model: "m/2", Text: "It is green, believe me."}, nil
	}}
}

// The third red check brings an arbiter, once. Its work lands by the check, whatever it says: where the check is red, the
// task is set aside as it stands.
func TestTheCheckDecidesAboutAnArbiter(t *testing.T) {
	tier.All(t)
	t.Parallel()
	for text, status := range map[string]muster.TaskStatus{"one\ntwo\n": muster.Completed, "two\n": muster.NeedsAttention} {
		w, two, lane := dispute(t)
		asked := 0
		v, err := w.tryWith(two, arbiter(t, &asked, lane, text))
		if err != nil || v.Task.Status != status || asked != 1 || v.Task.Arbiter == nil || v.Task.Arbiter.Model != "m/2" {
			t.Errorf("%q: %+v, %v, asked %d times", text, v, err, asked)
		}
		if hasLanded := status == muster.Completed; hasLanded != (w.show("list") == "one\ntwo") || gittest.Read(t, lane, "list") != text {
			t.Errorf("%q: on the target is %q", text, w.show("list"))
		}
		w.noRefs()
	}
}
