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
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/landing"
	"muster/internal/paths"
	"muster/internal/proc"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/worktree"
	"muster/journal"
	"muster/store/mem"
)

// world is a team's state on a real repository, with a plain shell for the checks.
type world struct {
	t       *testing.T
	root    string
	store   muster.Store
	repo    *git.Repo
	journal *journal.Journal
	board   *board.Board
	lanes   *worktree.Lanes
	land    *landing.Lander
	before  string
	review  landing.Reviewer // of try

	mu     sync.Mutex
	state  string // of the base
	unread error  // why the state cannot be read
}

func TestMain(m *testing.M) { gittest.Main(m) }

const target = "refs/heads/muster/demo"

func launch() (proc.Launcher, error) { return proc.New(context.Background()) }

func newWorld(t *testing.T, check string, files map[string]string, change ...func(*landing.Options)) *world {
	t.Helper()
	root := gittest.Repo(t, files)
	w := &world{t: t, root: root, store: mem.New()}
	w.process(check, change...)
	require.NoError(t, w.repo.Exclude(w.ctx(), paths.Excluded))
	require.NoError(t, fault(landing.PrepareTarget(w.ctx(), w.repo, "muster/demo", false, false)))
	w.before = gittest.Checkout(t, root)
	t.Cleanup(func() {
		equal(t, "the user's checkout has changed", gittest.Checkout(t, root), w.before)
	})
	return w
}

// process gives the world new services on the same state, as another process has them.
func (w *world) process(check string, change ...func(*landing.Options)) {
	w.t.Helper()
	var err error
	w.repo, err = git.Open(w.t.Context(), w.root)
	w.must(err)
	w.journal = journal.New(w.store.Log())
	w.board = board.New(w.store, w.journal)
	w.lanes, err = worktree.Open(w.repo, durable.New(durable.OS{}), paths.Dir(w.root), w.journal, w.store.Log(),
		worktree.Options{})
	w.must(err)
	w.land = w.lander(check, launch, change...)
}

// lander makes a Lander of the world's services.
func (w *world) lander(check string, launch func() (proc.Launcher, error), change ...func(*landing.Options)) *landing.Lander {
	o := landing.Options{Target: target, Check: landing.Check{Command: check}, Outputs: paths.Dir(w.root).Outputs(),
		CheckState: func(_ context.Context, said string) (string, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			before := w.state
			switch {
			case w.unread != nil:
			case said == "forget":
				w.state = ""
			case said != "" && before != "ok":
				w.state = said
			}
			return before, w.unread
		}}
	for _, f := range change {
		f(&o)
	}
	return landing.New(w.repo, w.lanes, w.board, w.journal, launch, o)
}

// ctx is for one operation, which fails rather than hang. A landing waits for all that come before it.
func (w *world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Minute)
	w.t.Cleanup(cancel)
	return ctx
}

func (w *world) git(args ...string) string { w.t.Helper(); return gittest.Git(w.t, w.root, args...) }

// task makes a task, claims it for the owner and gives it a lane with the files in it ("" removes one).
func (w *world) task(subject string, owner muster.Name, files map[string]string) (muster.Task, string) {
	w.t.Helper()
	t, err := w.board.Create(w.ctx(), board.Draft{Subject: subject, CreatedBy: muster.Lead})
	w.must(err)
	return w.claim(t.ID, owner, files)
}

func (w *world) claim(id muster.TaskID, owner muster.Name, files map[string]string) (muster.Task, string) {
	w.t.Helper()
	t, err := w.board.Claim(w.ctx(), id, board.Claim{Owner: owner})
	w.must(err)
	tip, err := w.land.Target(w.ctx())
	w.must(err)
	return w.lane(t, tip, files)
}

// lane gives a claimed task a lane with the files in it.
func (w *world) lane(t muster.Task, tip string, files map[string]string) (muster.Task, string) {
	w.t.Helper()
	lane, err := w.lanes.Create(w.ctx(), muster.LaneName(t.ID, t.Subject)+muster.Name("-"+string(t.Owner)), t.ID, tip)
	w.must(err)
	t, err = w.board.SetLane(w.ctx(), t.ID, t.Fence, lane.Name, lane.Base)
	w.must(err)
	w.write(lane.Path, files)
	return t, lane.Path
}

func (w *world) write(dir string, files map[string]string) {
	w.t.Helper()
	for name, text := range files {
		if text == "" {
			w.must(os.Remove(filepath.Join(dir, name)))
			delete(files, name)
		}
	}
	gittest.Write(w.t, dir, files)
}

func (w *world) try(t muster.Task) (landing.Verdict, error) {
	return w.tryWith(t, w.review)
}

// lands fails the test unless the task lands.
func (w *world) lands(t muster.Task) landing.Verdict {
	w.t.Helper()
	v, err := w.try(t)
	if err != nil || v.Task.Landed == nil || v.Task.Status != muster.Completed {
		w.t.Fatalf("task %d did not land: %+v, %v", t.ID, v, err)
	}
	equal(w.t, fmt.Sprint("the target after task ", t.ID), w.git("rev-parse", target), v.Task.Landed.Commit)
	return v
}

// landed fails the test unless a landing has ended with the work on the target.
func (w *world) landed(v landing.Verdict, err error) landing.Verdict {
	w.t.Helper()
	if err != nil || v.Task.Landed == nil || v.Task.Status != muster.Completed {
		w.t.Errorf("task %d: %+v, %v", v.Task.ID, v, err)
	}
	return v
}

// back fails the test unless the task comes back.
func (w *world) back(t muster.Task) landing.Verdict {
	w.t.Helper()
	tip := w.git("rev-parse", target)
	v, err := w.try(t)
	if err != nil || v.Task.Landed != nil || v.Task.Status == muster.Completed || v.Text == "" {
		w.t.Fatalf("task %d did not come back: %+v, %v", t.ID, v, err)
	}
	equal(w.t, "the target has moved", w.git("rev-parse", target), tip)
	w.noRefs()
	return v
}

// log is the path of a check's log.
func (w *world) log(name string) string {
	return filepath.Join(paths.Dir(w.root).Outputs(), "landing", name)
}

// red is what the text for the owner begins with when the check failed or could not run.
const red = "The check "

// noRefs checks that no ref of a landing is left.
func (w *world) noRefs() {
	w.t.Helper()
	equal(w.t, "left over", w.git("for-each-ref", "refs/muster/landing"), "")
}

// show is a file on the target.
func (w *world) show(name string) string { w.t.Helper(); return w.git("show", target+":"+name) }

// has fails the test unless the files are on the target, with what they have.
func (w *world) has(files map[string]string) {
	w.t.Helper()
	for name, text := range files {
		equal(w.t, name+" on the target", w.show(name), text)
	}
}

// said is what a field has in the events of a kind, of those that have the text in it.
func (w *world) said(kind, field, text string) (all []string) {
	w.t.Helper()
	for e, err := range w.journal.Read(w.ctx(), 0) {
		w.must(err)
		if e.Kind == kind && strings.Contains(e.Text(field), text) {
			all = append(all, e.Text(field))
		}
	}
	return all
}

// kinds are the events of a task, in order.
func (w *world) kinds(id muster.TaskID) string {
	w.t.Helper()
	var all []string
	for e, err := range w.journal.Read(w.ctx(), 0) {
		w.must(err)
		if e.Task == id && strings.HasPrefix(e.Kind, "task.") {
			k := strings.TrimPrefix(e.Kind, "task.")
			if e.Kind == journal.TaskReturned {
				k += "(" + e.Text("reason") + ")"
			}
			all = append(all, k)
		}
	}
	return strings.Join(all, " ")
}

// fault is the error of what returns something else, too.
func fault(_ any, err error) error { return err }

func wants(t *testing.T, err error, code *muster.Error, says string) {
	t.Helper()
	if !errors.Is(err, code) || !strings.Contains(err.Error(), says) {
		t.Errorf("error %v, want %s saying %q", err, code.Code, says)
	}
}

// is fails the test unless err is want.
func is(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// equal fails the test unless both are the same.
func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// says fails the test unless a text has all the parts.
func says(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in: %s", part, text)
		}
	}
}
