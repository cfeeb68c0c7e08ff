package landing_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/landing"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/testing/wait"
	"muster/journal"
)

// dispute makes a world in which two tasks want the same line, one has landed, and the other has come back twice with
// red checks since it conflicted: the next red one is the last. The check wants both words together.
func dispute(t *testing.T) (w *world, two muster.Task, lane string) {
	t.Helper()
	w = newWorld(t, "! grep -q two list || grep -q one list", map[string]string{"list": "base\n"})
	w.state = "ok"
	one, err := w.board.Create(w.ctx(), board.Draft{Subject: "One", Description: "Lists one.", CreatedBy: "lead"})
	w.must(err)
	one, _ = w.claim(one.ID, "alice", map[string]string{"list": "one\n"})
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

// arbiter writes a text into the lane, "" if it cannot work, and counts how often it was asked.
func arbiter(t *testing.T, asked *int, lane, text string) landing.Agents {
	return landing.Agents{Arbitrate: func(_ context.Context, d landing.Dispute) (landing.ArbiterReport, error) {
		*asked++
		if len(d.Others) != 1 || d.Others[0].Subject != "One" || d.Others[0].Owner != "alice" ||
			d.Others[0].Summary != "What alice did." || !strings.Contains(d.Others[0].Diff, "+one") ||
			d.Task.Subject != "Two" || d.Branch != "muster/demo" ||
			d.Summary != "What bob did." || !strings.Contains(d.Diff.Text, "+two") ||
			d.Others[0].Description != "Lists one." || !strings.HasPrefix(d.Task.Arbiter.Why, "check") {
			t.Errorf("the arbiter is told %+v", d)
		}
		if text == "" {
			return landing.ArbiterReport{}, errors.New("no model")
		}
		gittest.Write(t, lane, map[string]string{"list": text})
		return landing.ArbiterReport{Model: "m/2", Text: "It is green, believe me."}, nil
	}}
}

// The third red check brings an arbiter, once. Its work lands by the check, whatever it says: where the check is red, the
// task is set aside as it stands, and where no arbiter can work, too.
func TestTheCheckDecidesAboutAnArbiter(t *testing.T) {
	t.Parallel()
	for text, status := range map[string]muster.TaskStatus{
		"one\ntwo\n": muster.Completed, "two\n": muster.NeedsAttention, "": muster.NeedsAttention,
	} {
		model, problem, left := "m/2", "", text
		if text == "" {
			model, problem, left = "", "no model", "two\n"
		}
		w, two, lane := dispute(t)
		asked := 0
		ctx, stop := context.WithCancelCause(w.ctx()) // the run ends while the first one works: another one goes on
		_, err := w.land.LandWith(ctx, two.ID, two.Fence, "What bob did.", two.Owner, landing.Agents{
			Arbitrate: func(context.Context, landing.Dispute) (landing.ArbiterReport, error) {
				stop(muster.CauseUser)
				return landing.ArbiterReport{}, ctx.Err()
			}})
		v, errAgain := w.tryWith(two, arbiter(t, &asked, lane, text))
		if !errors.Is(err, muster.CauseUser) || errAgain != nil || v.Task.Status != status || asked != 1 ||
			v.Task.Arbiter == nil || v.Task.Arbiter.Model != model || v.Task.Arbiter.Problem != problem ||
			len(w.said(journal.ArbiterStarted, "role", landing.DefaultArbiter)) != 2 {
			t.Errorf("%q: %v, then %+v, %v, asked %d times", text, err, v, errAgain, asked)
		}
		equal(t, text+": it has landed", w.show("list") == "one\ntwo", status == muster.Completed)
		equal(t, text+": in the lane", gittest.Read(t, lane, "list"), left)
		w.noRefs()
	}
}

// publish has the owner of a task publish a check.
func (w *world) publish(t muster.Task, name, command string) {
	w.t.Helper()
	w.must(fault(board.Publish(w.ctx(), w.board, t.ID, t.Fence, muster.PublishedCheck{Name: name, Command: command})))
}

// TestContract checks that a published check holds for its own landing and each later one, with and without a check of
// the run, and that one that breaks it hears whose it is, until it is retired.
func TestContract(t *testing.T) {
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
		require.NoError(t, fault(board.Retire(w.ctx(), w.board, api.ID, "api", muster.Lead)))
		w.lands(breaks)
		w.lands(other)
		// To take it back needs neither a review nor what it has published.
		undo, err := w.board.Create(w.ctx(), board.Draft{Subject: "Undo", CreatedBy: muster.User, Review: true,
			Undoes: []muster.TaskID{other.ID}})
		w.must(err)
		undo, _ = w.lane(undo, w.git("rev-parse", target), map[string]string{"c": ""})
		w.lands(undo)
		// What the user has taken off the target is not there to be checked.
		fixed, _ := w.task("Fixed", "carol", map[string]string{"d": "d\n"})
		w.publish(fixed, "fixed", "test -e d")
		w.lands(fixed)
		w.git("update-ref", target, fixed.Base)
		w.landFiles("More", "bob", map[string]string{"e": "e\n"})
	}
}

// While nobody waits, the commits that landed covered are checked one by one: of a green one there is a receipt, of a
// red one people are told, and nothing is undone. Who queues meanwhile does not wait for that.
func TestCoveredCommitsAreCheckedWhenIdle(t *testing.T) {
	t.Parallel()
	h, receipts := newHold(t), t.TempDir()
	// The files tell the position in the stack. The lowest hangs until it is ended, and the second is red by itself.
	check := h.check(`case $(ls | grep -c file-) in
1) test -e ` + h.dir + `/go || { touch ` + h.dir + `/hangs; exec sleep 300; };;
2) exit 1;;
esac`)
	on := func(o *landing.Options) { o.CheckCovered, o.Receipts = true, receipts }
	w := newWorld(t, check, nil, on)
	verdicts := w.queued(h, w.many(4)...)
	tip := w.git("rev-parse", target)
	for _, v := range verdicts {
		w.landed(v, nil)
	}
	wait.For(t, "the check of a covered commit", func() bool { _, err := os.Stat(filepath.Join(h.dir, "hangs")); return err == nil })
	// Somebody queues: that check ends at once, and its commit is checked later.
	require.NoError(t, os.WriteFile(filepath.Join(h.dir, "go"), nil, 0o600))
	late, _ := w.task("Late", "eve", map[string]string{"late": "1\n"})
	w.lands(late)
	wait.For(t, "the red one to be told", func() bool {
		return len(w.said(journal.RunNote, "text", "is red by itself: exit 1")) == 1
	})
	// Three that were covered, and three whose check has run before they landed.
	wait.For(t, "the receipts", func() bool { files, _ := filepath.Glob(receipts + "/*"); return len(files) == 6 })
	equal(t, "the target has lost what had landed", w.git("merge-base", tip, target), tip)
}

// A check that has only just begun is given up for those who come then: one check proves them all.
func TestNewcomersJoinAYoungCheck(t *testing.T) {
	t.Parallel()
	h := newHold(t)
	w := newWorld(t, h.check("true"), map[string]string{"a.txt": "a\n"})
	w.state = landing.BaseGreen
	landing.SetCheckTook(w.land, time.Hour)
	tasks := w.many(3)
	var all sync.WaitGroup
	land := func(task muster.Task) {
		all.Go(func() { w.landed(w.try(task)) })
	}
	land(tasks[0])
	// Nothing opens it: it would be held for ever.
	wait.For(t, "the first check", func() bool { _, err := os.Stat(filepath.Join(h.dir, "held")); return err == nil })
	land(tasks[1])
	land(tasks[2])
	all.Wait()
	if n := h.runs(t); n > 3 {
		t.Errorf("%d checks", n)
	}
	if first, err := w.board.Get(w.ctx(), tasks[0].ID); err != nil || first.Landed.Receipt != muster.ReceiptCovered {
		t.Errorf("%+v, %v", first.Landed, err)
	}
	w.noRefs()
}

// The search looks in the middle, and higher up where a red check ends sooner than a green one, which is cheaper then.
func TestTheSearchFollowsTheTimesOfChecks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		green, red         time.Duration
		n, lowest, highest int
	}{
		{0, 0, 2, 1, 1}, {0, 0, 40, 20, 20}, {1, 1, 512, 256, 256}, {8, 1, 40, 26, 35}, {1, 8, 40, 5, 14}, {1000, 1, 3, 1, 2}, {1000, 1, 40, 30, 39},
	} {
		if at := landing.Search(c.green, c.red)(c.n); at < c.lowest || at > c.highest {
			t.Errorf("green %d, red %d: of %d it looks after %d", c.green, c.red, c.n, at)
		}
	}
}
