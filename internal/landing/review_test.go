package landing_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"muster"
	"muster/internal/board"
	"muster/internal/landing"
	"muster/internal/spend"
)

// judges is a reviewer that answers with a function, and counts how often it was asked.
type judges struct {
	mu    sync.Mutex
	asked int
	say   func(landing.ReviewRequest) (landing.ReviewVerdict, error)
}

func (j *judges) review(_ context.Context, r landing.ReviewRequest) (landing.ReviewVerdict, error) {
	j.mu.Lock()
	j.asked++
	j.mu.Unlock()
	return j.say(r)
}

func approve(landing.ReviewRequest) (landing.ReviewVerdict, error) {
	return landing.ReviewVerdict{Approved: true, Model: "m/1"}, nil
}

// reviewed are the options of landings that are all reviewed, and whose checks have receipts.
func reviewed(dir string) func(*landing.Options) {
	return func(o *landing.Options) { o.Review, o.Receipts = "reviewer", dir }
}

func (w *world) tryWith(t muster.Task, review landing.Reviewer) (landing.Verdict, error) {
	return w.land.LandWith(w.ctx(), t.ID, t.Fence, "What "+string(t.Owner)+" did.", t.Owner, landing.Owner{Review: review})
}

func runs(t *testing.T, file string) int {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(data), "x")
}

// An approval is in the commit and on the board, and costs no second check of the same tree.
func TestApprovedWorkLands(t *testing.T) {
	t.Parallel()
	count := filepath.Join(t.TempDir(), "runs")
	w := newWorld(t, "echo x >> "+count, map[string]string{"a.txt": "a\n"}, reviewed(t.TempDir()))
	j := &judges{say: func(r landing.ReviewRequest) (landing.ReviewVerdict, error) {
		if r.Role != "reviewer" || r.Summary != "What alice did." || r.Checked.Receipt != muster.ReceiptGreen ||
			len(r.Diff.Files) != 1 || !strings.Contains(r.Diff.Text, "+one") {
			t.Errorf("the reviewer is told %+v", r)
		}
		if text, err := r.Line(t.Context(), "one", 1); text != "one" || err != nil {
			t.Errorf("the line is %q, %v", text, err)
		}
		equal(t, "the target has moved before the review", w.git("rev-parse", target), w.git("rev-parse", "main"))
		return approve(r)
	}}
	task, _ := w.task("One", "alice", map[string]string{"one": "one\n"})
	v, err := w.tryWith(task, j.review)
	if err != nil || v.Task.Landed == nil || v.Task.Landed.Review != "approved by reviewer (m/1)" || j.asked != 1 {
		t.Fatalf("%+v, %v, asked %d times", v, err, j.asked)
	}
	equal(t, "checks", runs(t, count), 1)
	message := w.git("log", "-1", "--format=%B", target)
	if _, landed, ok := landing.Trailers(message); !ok || landed.Review != v.Task.Landed.Review || landed.Check == "" {
		t.Errorf("the commit says %s", message)
	}
}

// A task that asks for a review has one, and others do not.
func TestATaskAsksForItsReview(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
	j := &judges{say: approve}
	asks, err := w.board.Create(w.ctx(), board.Draft{Subject: "Two", CreatedBy: muster.Lead, Review: true})
	w.must(err)
	asks, _ = w.claim(asks.ID, "bob", map[string]string{"two": "2\n"})
	plain, _ := w.task("One", "alice", map[string]string{"one": "1\n"})
	for task, want := range map[*muster.Task]int{&plain: 0, &asks: 1} {
		j.asked = 0
		w.landed(w.tryWith(*task, j.review))
		equal(t, fmt.Sprintf("reviews of task %d", task.ID), j.asked, want)
	}
}

// Returned work comes with its comments, counts, and is reviewed anew when it has changed.
func TestReturnedWorkIsReviewedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "true", map[string]string{"a.txt": "a\n"}, reviewed(t.TempDir()))
	j := &judges{say: func(r landing.ReviewRequest) (landing.ReviewVerdict, error) {
		if strings.Contains(r.Diff.Text, "+better") {
			return approve(r)
		}
		return landing.ReviewVerdict{Comments: []landing.ReviewComment{{File: "one", Line: 2, Text: "Do better."},
			{File: "gone", Text: "Was it of use?"}}, Text: "Nearly."}, nil
	}}
	task, lane := w.task("One", "alice", map[string]string{"one": "first\nsecond\n"})
	v, err := w.tryWith(task, j.review)
	if err != nil || v.Task.Status != muster.InProgress || v.Task.Returns != 1 ||
		v.Task.Returned != "review: one:2: Do better. (and 1 more)" {
		t.Fatalf("%+v, %v", v, err)
	}
	says(t, v.Text, "The reviewer returns your work", "Nearly.", "one:2: second\nDo better.\n", "\ngone\nWas it of use?")
	w.noRefs()
	w.write(lane, map[string]string{"one": "better\n"})
	w.landed(w.tryWith(task, j.review))
	equal(t, "reviews", j.asked, 2)
	says(t, w.kinds(task.ID), "returned(review)")
}

// Without a verdict nothing lands. The lead is told, and in the end the task is set aside with its work.
func TestWorkWithoutAVerdictNeverLands(t *testing.T) {
	t.Parallel()
	told := ""
	w := newWorld(t, "true", map[string]string{"a.txt": "a\n"}, reviewed(t.TempDir()), func(o *landing.Options) {
		o.TellLead = func(_ context.Context, text string) error { told = text; return nil }
	})
	tip := w.git("rev-parse", target)
	j := &judges{say: func(landing.ReviewRequest) (landing.ReviewVerdict, error) {
		return landing.ReviewVerdict{Approved: true}, errors.New("it has used all its turns")
	}}
	task, lane := w.task("One", "alice", map[string]string{"one": "1\n"})
	ctx, stop := context.WithCancelCause(w.ctx()) // the run ends while it is reviewed, which counts not
	ends := judges{say: func(landing.ReviewRequest) (v landing.ReviewVerdict, err error) {
		stop(muster.CauseUser)
		return v, ctx.Err()
	}}
	if _, err := w.land.LandWith(ctx, task.ID, task.Fence, "", task.Owner, landing.Owner{Review: ends.review}); !errors.Is(err, muster.CauseUser) || told != "" {
		t.Errorf("%v; the lead is told %q", err, told)
	}
	spent := judges{say: func(landing.ReviewRequest) (landing.ReviewVerdict, error) {
		return landing.ReviewVerdict{}, &spend.Exceeded{}
	}}
	if v, err := w.tryWith(task, spent.review); err != nil || v.Task.Landed != nil || v.Task.Returns != 0 {
		t.Errorf("a spent budget counts: %+v, %v", v, err)
	}
	for i, review := range []landing.Reviewer{j.review, nil, j.review} {
		v, err := w.tryWith(task, review)
		if err != nil || v.Task.Landed != nil || v.Text == "" || !strings.Contains(told, "has given no verdict") {
			t.Fatalf("%+v, %v; the lead is told %q", v, err, told)
		}
		equal(t, fmt.Sprint("is it set aside after try ", i+1), v.Task.Status == muster.NeedsAttention, i == 2)
	}
	if w.git("rev-parse", target) != tip || w.git("-C", lane, "show", "HEAD:one") != "1" {
		t.Error("the target has moved, or the work is gone")
	}
}

// The reviews of several tasks of a stack run side by side.
func TestReviewsRunSideBySide(t *testing.T) {
	t.Parallel()
	h := newHold(t)
	w := newWorld(t, h.check("true"), map[string]string{"a.txt": "a\n"}, reviewed(t.TempDir()))
	const n = 3
	var all sync.WaitGroup
	all.Add(n)
	j := &judges{say: func(r landing.ReviewRequest) (landing.ReviewVerdict, error) {
		if r.Task.Subject != "First" {
			all.Done()
			all.Wait() // hangs where one review waits for another
		}
		return approve(r)
	}}
	w.review = j.review
	verdicts := w.queued(h, w.many(n)...)
	for _, v := range verdicts {
		equal(t, "the review", w.landed(v, nil).Task.Landed.Review, "approved by reviewer (m/1)")
	}
	if got := w.isGreenEverywhere(); got != n+1 || j.asked != n+1 {
		t.Errorf("%d commits after %d reviews", got, j.asked)
	}
}

// An approval holds for the very work that was reviewed: for a process that goes on after a crash and for a target that
// has moved, and for no other difference and no other role.
func TestAnApprovalIsOfOneDifference(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t, "true", map[string]string{"a.txt": "a\n"}, reviewed(dir))
	j := &judges{say: approve}
	one, _ := w.task("One", "alice", map[string]string{"one": "1\n"})
	two, _ := w.task("Two", "bob", map[string]string{"two": "2\n"})
	// The process dies when the approval is written and the work is about to land.
	ctx, die := context.WithCancelCause(w.ctx())
	w.process("true", reviewed(dir), func(o *landing.Options) {
		o.Hook = func(context.Context, muster.Task, string, []string) (string, error) {
			if j.asked > 0 {
				die(muster.CauseUser)
				return "", muster.CauseUser
			}
			return "", nil
		}
	})
	_, err := w.land.LandWith(ctx, one.ID, one.Fence, "", one.Owner, landing.Owner{Review: j.review})
	is(t, "the process dies", err, muster.CauseUser)
	w.process("true", reviewed(dir))
	w.landed(w.tryWith(two, j.review)) // the target moves
	equal(t, "reviews", j.asked, 2)
	w.process("true", reviewed(dir), func(o *landing.Options) { o.Review = "security" })
	denies := judges{say: func(landing.ReviewRequest) (v landing.ReviewVerdict, err error) { return v, nil }}
	w.must(fault(w.tryWith(one, denies.review)))
	equal(t, "reviews by another role", denies.asked, 1)
	w.process("true", reviewed(dir))
	none := func(context.Context, landing.ReviewRequest) (landing.ReviewVerdict, error) {
		t.Error("it was reviewed again")
		return landing.ReviewVerdict{}, nil
	}
	equal(t, "the review", w.landed(w.tryWith(one, none)).Task.Landed.Review, "approved by reviewer (m/1)")
}

// Work that has changed after its approval is reviewed again; work that is red after it comes back.
func TestAChangeAfterTheApprovalIsReviewed(t *testing.T) {
	t.Parallel()
	red := filepath.Join(t.TempDir(), "red")
	w := newWorld(t, "test ! -e "+red, map[string]string{"a.txt": "a\n"}, func(o *landing.Options) { o.Review = "reviewer" })
	w.state = "ok"
	j := &judges{say: func(r landing.ReviewRequest) (landing.ReviewVerdict, error) {
		if strings.Contains(r.Diff.Text, "+first") { // from now on the check is red
			w.must(os.WriteFile(red, nil, 0o600))
		}
		return approve(r)
	}}
	task, lane := w.task("One", "alice", map[string]string{"one": "first\n"})
	v, err := w.tryWith(task, j.review)
	if err != nil || v.Task.Status != muster.InProgress || !strings.Contains(v.Text, red) || j.asked != 1 {
		t.Fatalf("%+v, %v, asked %d times", v, err, j.asked)
	}
	w.must(os.Remove(red))
	w.write(lane, map[string]string{"one": "2\n"})
	w.landed(w.tryWith(task, j.review))
	equal(t, "reviews", j.asked, 2)
}

// While work is reviewed the target moves to a part of it: the approval was of another difference.
func TestThePartThatIsLeftIsReviewed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "true", map[string]string{"a.txt": "a\n"}, func(o *landing.Options) { o.Review = "reviewer" })
	task, lane := w.task("One", "alice", map[string]string{"one": "1\n"})
	w.git("-C", lane, "add", "-A")
	w.git("-C", lane, "commit", "-qm", "one")
	w.write(lane, map[string]string{"two": "2\n"})
	j := &judges{}
	j.say = func(r landing.ReviewRequest) (landing.ReviewVerdict, error) {
		w.git("update-ref", target, w.git("-C", lane, "rev-parse", "HEAD~"))
		return approve(r)
	}
	w.landed(w.tryWith(task, j.review))
	equal(t, "reviews", j.asked, 2)
}

// The owner of a lane that holds nothing is asked before its task is completed, and may have it stay as it is.
func TestAnOwnerIsAskedAboutALaneThatHoldsNothing(t *testing.T) {
	w := newWorld(t, "true", map[string]string{"a": "a\n"})
	asked, answer := 0, muster.Errorf(muster.Invalid, "wait")
	owner := landing.Owner{Unchanged: func(context.Context) error { asked++; return answer }}
	task, _ := w.task("one", "ann", map[string]string{})
	for range 2 {
		v, err := w.land.LandWith(w.ctx(), task.ID, task.Fence, "", "ann", owner)
		wants(t, err, answer, "wait")
		equal(t, "status", v.Task.Status, muster.InProgress)
	}
	owner.Unchanged = func(context.Context) error { asked++; return nil }
	v, err := w.land.LandWith(w.ctx(), task.ID, task.Fence, "", "ann", owner)
	w.must(err)
	equal(t, "status", v.Task.Status, muster.Completed)
	other, _ := w.task("two", "ann", map[string]string{"b": "b\n"})
	v, err = w.land.LandWith(w.ctx(), other.ID, other.Fence, "", "ann", owner)
	w.must(err)
	if v.Task.Landed == nil || asked != 3 {
		t.Errorf("asked %d times, %+v", asked, v.Task)
	}
}
