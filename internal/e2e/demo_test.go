//go:build linux

package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster/internal/testing/tier"
	"muster/internal/text"
)

// TestDemo runs the demo to its end and holds it to all that it says it shows. It runs alone: what it shows depends on what
// is finished at the same time.
func TestDemo(t *testing.T) {
	tier.All(t)
	w := newWorld(t)
	// The user's own rules are not for the demo, in which no one could answer.
	w.write(filepath.Join(w.base, "home", ".config", "muster", "config.yaml"), "permissions: {ask: [bash]}\nbudget.team: 0.01\n")
	out := w.muster(0, "demo", "--keep", filepath.Join(w.base, "demo"))
	if list := w.git("status", "--porcelain", "--ignored"); list != "" {
		t.Errorf("the demo wrote into the repository where it was started:\n%s", list)
	}
	w.root = filepath.Join(w.base, "demo")
	w.has("stderr", out.stderr, "the model's words are scripted", "a real model: muster run --model")
	w.has("stdout", out.stdout, "7 of 7 tasks landed on muster/demo in ", "checked with go test ./...: ",
		" by the check of a later one", "returned and fixed: 1 red check, 1 conflict (",
		"receipts:   7 of 7 hold, by ", "git -C "+text.ShellQuote(w.root)+" log --oneline muster/demo",
		"muster -C "+text.ShellQuote(w.root)+" merge")

	w.landedOnce("muster/demo", "1", "2", "3", "4", "5", "6", "7")
	w.untouched()
	if left := w.processes(); len(left) > 0 {
		t.Errorf("still running:\n%s", strings.Join(left, "\n"))
	}

	// What the table says is what happened.
	did, asked, rejectedAt, approvedAt := map[string]int{}, map[string]string{}, 0, 0
	for i, e := range w.events() {
		switch e.Kind {
		case "lane.collides":
			if pair := []int{int(e.Task), int(e.Number("with"))}; slices.Equal(pair, []int{4, 5}) && e.Fields["over"] == nil {
				did["early warning"] = 1
			}
		case "task.completed":
			did[e.Text("receipt")]++
		case "task.returned":
			did["back: "+e.Text("reason")]++
		case "request.created":
			asked[e.Text("request_id")] = e.Text("kind")
		case "request.decided":
			switch what := asked[e.Text("request_id")] + " " + e.Text("status"); what {
			case "plan_approval rejected":
				rejectedAt = i
			case "plan_approval approved":
				approvedAt = i
			default:
				did[what]++
			}
		case "mail.sent":
			if mates := []string{"alice", "bob"}; e.Text("type") == "message" && slices.Contains(mates, string(e.Member)) && slices.Contains(mates, e.Text("to")) {
				did["mail between teammates"]++
			}
		}
	}
	for _, what := range []string{"back: check", "back: conflict", "shutdown rejected", "shutdown approved",
		"mail between teammates", "early warning"} {
		if did[what] != 1 {
			t.Errorf("%s: %d, want 1", what, did[what])
		}
	}
	if did["covered"] == 0 || rejectedAt == 0 || approvedAt < rejectedAt {
		t.Errorf("%d tasks landed with others; a plan was rejected by event %d, and approved by %d", did["covered"], rejectedAt, approvedAt)
	}
	if t.Failed() {
		t.Log(w.told(), out)
	}

	// What landed holds in a checkout of its own.
	fresh := filepath.Join(w.base, "fresh")
	w.git("clone", "-q", "-b", "muster/demo", w.root, fresh)
	if out, err := w.command(fresh, "go", "test", "./...").CombinedOutput(); err != nil {
		t.Errorf("go test on what landed: %v\n%s", err, out)
	}
	// The team is gone, and says so.
	w.has("status", w.muster(0, "status").stdout, "BOARD   7 landed", "ended")
	w.has("receipts", w.muster(0, "receipts", "--verify").stdout, "covered", "ok")
	w.has("resume", w.muster(1, "resume").stderr, "the last run has ended")
}
