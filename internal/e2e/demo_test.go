//go:build linux

package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster"
	"muster/internal/testing/tier"
	"muster/internal/text"
)

// TestDemo runs the demo to its end and holds it to all that it says it shows.
func TestDemo(t *testing.T) {
	tier.All(t)
	t.Parallel()
	w := newWorld(t)
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
	var red, conflicts, early, covered, rejected, approved, refused, granted, mails []muster.Event
	held := map[muster.TaskID]bool{} // tasks in somebody's hand
	most, returned := 0, map[muster.TaskID]bool{}
	kinds := map[string]string{} // of requests
	for _, e := range w.events() {
		switch e.Kind {
		case "task.claimed":
			held[e.Task] = true
			most = max(most, len(held))
		case "lane.collides":
			if pair := []int{int(e.Task), int(e.Number("with"))}; slices.Equal(pair, []int{4, 5}) && e.Fields["over"] == nil {
				early = append(early, e)
			}
		case "task.completed":
			if e.Text("receipt") == "covered" {
				covered = append(covered, e)
			}
			delete(held, e.Task)
			delete(returned, e.Task)
		case "task.returned":
			returned[e.Task] = true
			if e.Text("reason") == "check" {
				red = append(red, e)
			} else {
				conflicts = append(conflicts, e)
			}
		case "request.created":
			kinds[e.Text("request_id")] = e.Text("kind")
		case "request.decided":
			switch kinds[e.Text("request_id")] + " " + e.Text("status") {
			case "plan_approval rejected":
				rejected = append(rejected, e)
				if len(approved) > 0 {
					t.Error("the plan was rejected after it was approved")
				}
			case "plan_approval approved":
				approved = append(approved, e)
			case "shutdown rejected":
				refused = append(refused, e)
			case "shutdown approved":
				granted = append(granted, e)
			}
		case "mail.sent":
			if e.Text("type") == "message" && slices.Contains([]muster.Name{"alice", "bob"}, e.Member) && slices.Contains([]string{"alice", "bob"}, e.Text("to")) {
				mails = append(mails, e)
			}
		}
	}
	for what, n := range map[string][2]int{
		"red checks": {len(red), 1}, "conflicts": {len(conflicts), 1}, "rejected plans": {len(rejected), 1}, "approved plans": {len(approved), 1},
		"refused shutdowns": {len(refused), 1}, "granted shutdowns": {len(granted), 1}, "mails between teammates": {len(mails), 1},
	} {
		if n[0] != n[1] {
			t.Errorf("%s: %d, want %d", what, n[0], n[1])
		}
	}
	if len(early) == 0 || len(covered) == 0 {
		t.Errorf("%d early warnings and %d tasks that landed with others", len(early), len(covered))
	}
	if len(returned) > 0 {
		t.Errorf("returned and never landed: %v", returned)
	}
	if most < 2 {
		t.Error("the lanes were never at work at the same time")
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
