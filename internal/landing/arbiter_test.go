package landing_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"muster"
	"muster/internal/landing"
	"muster/internal/testing/gittest"
	"muster/internal/testing/tier"
	"muster/internal/worktree"
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

// The third red check brings an arbiter, whose work lands by the check.
func TestAnArbiterGetsOneChance(t *testing.T) {
	tier.All(t)
	t.Parallel()
	w, two, lane := dispute(t)
	asked := 0
	v, err := w.tryWith(two, arbiter(t, &asked, lane, "one\ntwo\n"))
	if err != nil || v.Task.Landed == nil || asked != 1 || v.Task.Arbiter == nil || v.Task.Arbiter.Model != "m/2" ||
		v.Task.Owner != "bob" || v.Task.CompletedBy != "bob" || v.Task.Met != nil {
		t.Fatalf("%+v, %v, asked %d times", v, err, asked)
	}
	if w.show("list") != "one\ntwo" {
		t.Errorf("on the target is %q", w.show("list"))
	}
	w.noRefs()
}

// What an arbiter says is no proof: where the check is red, the task is set aside, and no other arbiter is asked.
func TestTheCheckDecidesAboutAnArbiter(t *testing.T) {
	tier.All(t)
	t.Parallel()
	w, two, lane := dispute(t)
	asked := 0
	v, err := w.tryWith(two, arbiter(t, &asked, lane, "two\n"))
	if err != nil || v.Task.Status != muster.NeedsAttention || asked != 1 || w.show("list") != "one" {
		t.Fatalf("%+v, %v, asked %d times", v, err, asked)
	}
	if gittest.Read(t, lane, "list") != "two\n" {
		t.Error("the lane is not as the arbiter has left it")
	}
}

// A task that has conflicted again and again brings its conflicts to the arbiter. Markers that it leaves do not land.
func TestAnArbiterResolvesConflicts(t *testing.T) {
	tier.All(t)
	t.Parallel()
	for name, leaves := range map[string]string{"resolved": "both\n", "unresolved": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "", map[string]string{"list": "base\n"})
			two, lane := w.task("Two", "bob", map[string]string{"list": "two\n"})
			var open []worktree.Conflict
			w.agents.Arbitrate = func(_ context.Context, d landing.Dispute) (landing.ArbiterReport, error) {
				if open = d.Conflicts; leaves != "" {
					gittest.Write(t, lane, map[string]string{"list": leaves})
				}
				return landing.ArbiterReport{}, nil
			}
			var v landing.Verdict
			for i := range 12 {
				text := fmt.Sprintf("%d\n", i)
				other, _ := w.task(fmt.Sprintf("Other %d", i), "alice", map[string]string{"list": text})
				w.lands(other)
				var err error
				if v, err = w.try(two); err != nil || i < 11 && v.Task.Status != muster.InProgress {
					t.Fatalf("round %d: %+v, %v", i, v, err)
				}
				if i < 11 {
					w.write(lane, map[string]string{"list": "two and " + text})
				}
			}
			want := map[string]muster.TaskStatus{"resolved": muster.Completed, "unresolved": muster.NeedsAttention}[name]
			if v.Task.Status != want || len(open) != 1 || open[0].File != "list" {
				t.Errorf("%+v after %v", v, open)
			}
			if shown := w.show("list"); shown != map[string]string{"resolved": "both", "unresolved": "11"}[name] {
				t.Errorf("on the target is %q", shown)
			}
		})
	}
}

// Red checks of a task that has met nobody's work bring no arbiter, and neither do landings without one.
func TestNoArbiterWithoutADispute(t *testing.T) {
	tier.All(t)
	t.Parallel()
	asked := 0
	w := newWorld(t, "! test -e bad", map[string]string{"a": "a\n"})
	w.state = "ok"
	task, lane := w.task("One", "alice", map[string]string{"bad": "x\n"})
	for range 3 {
		v, err := w.tryWith(task, arbiter(t, &asked, lane, ""))
		w.must(err)
		if v.Task.Returns == 3 && v.Task.Status != muster.NeedsAttention {
			t.Errorf("%+v", v.Task)
		}
	}
	w, two, _ := dispute(t)
	if v, err := w.try(two); err != nil || v.Task.Status != muster.NeedsAttention || asked != 0 {
		t.Errorf("%+v, %v, asked %d times", v, err, asked)
	}
}

// A process that dies while an arbiter works leaves it to the next one; one that dies after it has ended repeats
// nothing, and what the arbiter has done lands.
func TestACrashNeitherRepeatsNorSkipsAnArbiter(t *testing.T) {
	tier.All(t)
	t.Parallel()
	w, two, lane := dispute(t)
	asked := 0
	agents := arbiter(t, &asked, lane, "one\ntwo\n")
	ctx, die := context.WithCancelCause(w.ctx())
	dying := landing.Agents{Arbitrate: func(context.Context, landing.Dispute) (landing.ArbiterReport, error) {
		gittest.Write(t, lane, map[string]string{"half": "done\n"})
		die(muster.CauseUser)
		return landing.ArbiterReport{}, muster.CauseUser
	}}
	if _, err := w.land.LandWith(ctx, two.ID, two.Fence, "What bob did.", two.Owner, dying); !errors.Is(err, muster.CauseUser) {
		t.Fatal(err)
	}
	now, err := w.board.Get(w.ctx(), two.ID)
	if err != nil || !now.IsArbiterDue() || now.Owner != "bob" || now.Fence != two.Fence {
		t.Fatalf("%+v, %v", now, err)
	}
	// The next process dies in the check of what the arbiter has left.
	ctx, die = context.WithCancelCause(w.ctx())
	w.process("! grep -q two list || grep -q one list", func(o *landing.Options) {
		o.Hook = func(context.Context, muster.Task, string, []string) (string, error) {
			die(muster.CauseUser)
			return "", muster.CauseUser
		}
	})
	if _, err := w.land.LandWith(ctx, two.ID, two.Fence, "", two.Owner, agents); !errors.Is(err, muster.CauseUser) || asked != 1 {
		t.Fatalf("%v, asked %d times", err, asked)
	}
	w.process("! grep -q two list || grep -q one list")
	v, err := w.land.LandWith(w.ctx(), two.ID, two.Fence, "", two.Owner, agents)
	if err != nil || v.Task.Landed == nil || asked != 1 || w.show("list") != "one\ntwo" || w.show("half") != "done" {
		t.Fatalf("%+v, %v, asked %d times", v, err, asked)
	}
}

// An arbiter that cannot work takes nothing away: the task is set aside as it would have been without.
func TestAnArbiterThatCannotWork(t *testing.T) {
	tier.All(t)
	t.Parallel()
	w, two, _ := dispute(t)
	broken := landing.Agents{Arbitrate: func(context.Context, landing.Dispute) (landing.ArbiterReport, error) {
		return landing.ArbiterReport{}, errors.New("no model answers")
	}}
	v, err := w.tryWith(two, broken)
	if err != nil || v.Task.Status != muster.NeedsAttention || v.Task.Arbiter.Problem != "no model answers" {
		t.Fatalf("%+v, %v", v, err)
	}
}
