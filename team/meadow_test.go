package team_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"muster"
	"muster/internal/board"
	realgit "muster/internal/git"
	"muster/internal/landing"
	"muster/internal/outbox"
	"muster/internal/teammate"
	"muster/internal/workspace"
	"muster/internal/worktree"
	"muster/journal"
)

// meadow stands in for a git repository: lanes are directories, and the target is a list of what landed. It outlives the
// processes of a test, as a repository does, and keeps its promises about lanes, landings and revoked claims. It starts
// no process.
type meadow struct {
	root string
	// check decides about the nth landing, whose lane has these files: it takes its time, and returns "" or why the task
	// goes back, "check" or "conflict". If nil, every landing succeeds at once.
	check func(n int, files map[string]string) (takes time.Duration, returns string)

	prepared bool // a run has made the target ready

	mu      sync.Mutex
	lanes   map[muster.Name]muster.Lane
	landing map[string]bool // claims ("TASK-FENCE") that have a landing under way
	revoked map[string]bool // claims that land no more
	landed  []landedWork
	tries   int
	target  map[string]string            // the files that have landed
	kept    map[string]map[string]string // the files of each archive
	journal *journal.Journal
}

type landedWork struct{ claim, subject, commit string }

func newMeadow(root string) *meadow {
	return &meadow{root: root, lanes: map[muster.Name]muster.Lane{}, landing: map[string]bool{}, revoked: map[string]bool{},
		target: map[string]string{}, kept: map[string]map[string]string{}}
}

func (g *meadow) Root() string { return g.root }
func (g *meadow) Prepare(context.Context, string, bool, bool) (string, error) {
	g.prepared = true
	return "", nil
}
func (g *meadow) ForgetRevoked(context.Context, []muster.Task) error { return nil }
func (g *meadow) ValidateTarget(context.Context, string) error       { return nil }

// TrackedFiles names no file.
func (g *meadow) TrackedFiles(context.Context, string, bool, bool) ([]string, error) { return nil, nil }

// LandedFiles names no file: a landing here has none.
func (g *meadow) LandedFiles(context.Context, string) ([]string, error) { return nil, nil }

func (g *meadow) Checkout(context.Context) (realgit.CheckoutState, error) {
	return realgit.CheckoutState{}, nil
}

func (g *meadow) Resolve(context.Context, string) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.tip(), nil
}

func (g *meadow) MissingCommits(_ context.Context, _ string, commits []string) (lost, heads []string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range commits {
		if !slices.ContainsFunc(g.landed, func(l landedWork) bool { return l.commit == c }) {
			lost, heads = append(lost, c), append(heads, c)
		}
	}
	return lost, heads, nil
}

func (g *meadow) tip() string { return fmt.Sprintf("%040x", len(g.landed)) }

func (g *meadow) OpenLanes(
	ctx context.Context, w *workspace.Workspace,
) (teammate.Lanes, teammate.Lander, error) {
	lanes, lander := meadowLanes{g}, &meadowLander{meadow: g, board: w.Board()}
	g.mu.Lock()
	g.journal = w.Journal()
	g.mu.Unlock()
	// In place of what the workspace has registered: that works on a git repository.
	outbox.Register(w.Board(), w.Mail(ctx).Send, lanes.ArchiveCompleted)
	w.Board().OnRevoke(func(ctx context.Context, t muster.Task) error { return lander.Revoke(ctx, t.ID, t.Fence) })
	return lanes, lander, nil
}

func (g *meadow) subjects() (all []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, l := range g.landed {
		all = append(all, l.subject)
	}
	return all
}

type meadowLanes struct{ *meadow }

func (g meadowLanes) find(name muster.Name) (muster.Lane, error) {
	l, ok := g.lanes[name]
	if !ok {
		return l, muster.Errorf(muster.NotFound, "there is no lane %s", name)
	}
	return l, nil
}

func (g meadowLanes) Bind(_ context.Context, name muster.Name, task muster.TaskID) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	l, err := g.find(name)
	if l.TaskID = task; err == nil {
		g.lanes[name] = l
	}
	return err
}

func (g meadowLanes) Create(ctx context.Context, name muster.Name, task muster.TaskID, base string) (muster.Lane, error) {
	l, err := g.create(name, task, base)
	if err == nil {
		g.emit(ctx, journal.LaneCreated, l, "")
	}
	return l, err
}

func (g meadowLanes) create(name muster.Name, task muster.TaskID, base string) (muster.Lane, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.lanes[name]; ok {
		return muster.Lane{}, muster.Errorf(muster.Held, "there is a lane %s", name)
	}
	l := muster.Lane{Name: name, Path: filepath.Join(g.root, ".worktrees", string(name)), Branch: "wt/" + string(name), TaskID: task,
		Status: muster.LaneActive, Base: base, CreatedAt: muster.UnixTime(time.Now())}
	g.lanes[name] = l
	return l, os.MkdirAll(l.Path, 0o755)
}

// emit tells of a lane, as worktree.Lanes do. Nobody has the lock: it takes time.
func (g meadowLanes) emit(ctx context.Context, kind string, l muster.Lane, ref string) {
	g.mu.Lock()
	to := g.journal // that of the process which has opened the lanes last
	g.mu.Unlock()
	_ = to.Emit(context.WithoutCancel(ctx), muster.Event{Kind: kind, Task: l.TaskID,
		Fields: map[string]any{"lane": string(l.Name), "ref": ref}})
}

func (g meadowLanes) Get(_ context.Context, name muster.Name) (muster.Lane, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.find(name)
}

func (g meadowLanes) List(context.Context) ([]muster.Lane, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Values(g.lanes)), nil
}

func (g meadowLanes) Status(ctx context.Context, name muster.Name) (string, error) {
	l, err := g.Get(ctx, name)
	return "?? " + strings.Join(slices.Sorted(maps.Keys(filesOf(l.Path))), "\n?? ") + "\n", err
}

func (g meadowLanes) Enter(_ context.Context, name muster.Name) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l, err := g.find(name)
	if err == nil {
		l.Status = muster.LaneActive
		g.lanes[name] = l
	}
	return l.Path, err
}

func (g meadowLanes) Workdir(ctx context.Context, name muster.Name) (string, error) {
	l, err := g.Get(ctx, name)
	return l.Path, err
}

func (g meadowLanes) Scratch(_ context.Context, who muster.Name, _ string) (string, error) {
	dir := g.scratch(who)
	return dir, os.MkdirAll(dir, 0o755)
}

func filesOf(dir string) map[string]string {
	files := map[string]string{}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			data, _ := os.ReadFile(path)
			rel, _ := filepath.Rel(dir, path)
			files[rel] = string(data)
		}
		return nil
	})
	return files
}

// unlanded are the files that the target does not have. The caller has the lock.
func (g *meadow) unlanded(files map[string]string) (names []string) {
	for name, text := range files {
		if g.target[name] != text {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (g *meadow) scratch(who muster.Name) string {
	return filepath.Join(g.root, ".scratch", string(who))
}

func (g meadowLanes) ScratchChanges(_ context.Context, who muster.Name, _ []string) ([]string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.unlanded(filesOf(g.scratch(who))), nil
}

// Unlanded has the rules of worktree.Lanes.
func (g meadowLanes) Unlanded(_ context.Context, _ []string, archived []worktree.Archived) (all []worktree.Leftover, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	dirs, _ := os.ReadDir(filepath.Join(g.root, ".scratch"))
	for _, d := range dirs {
		who := muster.Name(d.Name())
		if names := g.unlanded(filesOf(g.scratch(who))); len(names) > 0 {
			ref := g.archive("scratch-"+who, g.scratch(who))
			all = append(all, worktree.Leftover{Member: who, Ref: ref, Files: names})
		}
	}
	for _, l := range g.lanes {
		if names := g.unlanded(filesOf(l.Path)); len(names) > 0 {
			all = append(all, worktree.Leftover{Lane: l.Name, Task: l.TaskID, Files: names})
		}
	}
	for _, a := range archived {
		if names := g.unlanded(g.kept[a.Ref]); len(names) > 0 {
			all = append(all, worktree.Leftover{Lane: a.Lane, Task: a.Task, Ref: a.Ref, Files: names})
		}
	}
	return all, nil
}

// archive keeps the files of a directory and removes it. The caller has the lock.
func (g *meadow) archive(name muster.Name, dir string) (ref string) {
	if files := filesOf(dir); len(files) > 0 {
		ref = fmt.Sprintf("refs/muster/archive/%s-%d", name, len(g.kept)+1)
		g.kept[ref] = files
	}
	_ = os.RemoveAll(dir)
	return ref
}

func (g meadowLanes) Changed(ctx context.Context, name muster.Name) (bool, error) {
	l, err := g.Get(ctx, name)
	if err != nil {
		return false, err
	}
	files, err := os.ReadDir(l.Path)
	return len(files) > 0, err
}

func (g meadowLanes) Fingerprint(ctx context.Context, name muster.Name) (string, error) {
	l, err := g.Get(ctx, name)
	if files := filesOf(l.Path); len(files) > 0 && err == nil {
		return fmt.Sprint(files), nil
	}
	return "", err
}

func (g meadowLanes) Keep(ctx context.Context, name muster.Name) error { return g.Release(ctx, name) }
func (g meadowLanes) Release(_ context.Context, name muster.Name) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	l, err := g.find(name)
	if err == nil {
		l.Status = muster.LaneKept
		g.lanes[name] = l
	}
	return err
}

func (g meadowLanes) Remove(ctx context.Context, name muster.Name, _ bool) error {
	_, err := g.Archive(ctx, name)
	return err
}

func (g meadowLanes) Archive(ctx context.Context, name muster.Name) (string, error) {
	g.mu.Lock()
	l, err := g.find(name)
	ref := ""
	if err == nil {
		delete(g.lanes, name)
		ref = g.archive(name, l.Path)
	}
	g.mu.Unlock()
	if err != nil {
		return "", err
	}
	if ref != "" {
		g.emit(ctx, journal.LaneArchived, l, ref)
	}
	return ref, nil
}

// Ignored is nothing: a meadow has no .gitignore.
func (g meadowLanes) Ignored(context.Context, muster.Name) ([]string, error) { return nil, nil }

func (g meadowLanes) ArchiveCompleted(ctx context.Context, t muster.Task) (string, error) {
	ref, err := g.Archive(ctx, t.Worktree)
	if errors.Is(err, muster.ErrNotFound) {
		err = nil
	}
	return ref, err
}

func (g meadowLanes) Occupy(_ context.Context, name muster.Name, was, who worktree.Occupant) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	l, err := g.find(name)
	if err == nil {
		l, err = worktree.SetOccupant(l, was, who)
	}
	if err == nil {
		g.lanes[name] = l
	}
	return err
}

func (g meadowLanes) Recover(context.Context) error { return nil }

type meadowLander struct {
	*meadow
	board *board.Board
}

func claimOf(id muster.TaskID, fence int) string { return fmt.Sprintf("%d-%d", id, fence) }

func (g meadowLander) Target(ctx context.Context) (string, error) { return g.Resolve(ctx, "") }

func (g meadowLander) CheckBase(context.Context) (landing.CheckResult, error) {
	return landing.CheckResult{}, nil
}

func (g meadowLander) late(t muster.Task, fence int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.landing, claimOf(t.ID, fence))
	return muster.Errorf(muster.Fenced, "task %d is no longer yours", t.ID)
}

// Land has the steps of landing.Lander, in the same order.
func (g meadowLander) LandWith(ctx context.Context, id muster.TaskID, fence int, summary string, by muster.Name, _ landing.Owner) (v landing.Verdict, err error) {
	t, err := g.board.Get(ctx, id)
	if err != nil {
		return v, err
	}
	v.Task = t
	claim := claimOf(id, fence)
	switch {
	case t.Fence != fence, t.Status != muster.Completed && t.Status != muster.InProgress && t.Status != muster.Landing:
		return v, g.late(t, fence)
	case t.Status == muster.Completed:
		return v, nil
	}
	if t.Status == muster.Landing && t.Landing != nil && summary == "" {
		summary = t.Landing.Summary
	}
	if done := g.find(claim); done != nil {
		return g.completed(ctx, v, done, summary, by)
	}
	changed := false
	if t.Worktree != "" {
		if changed, err = (meadowLanes{g.meadow}).Changed(ctx, t.Worktree); err != nil {
			return v, err
		}
	}
	if !changed {
		return g.completed(ctx, v, nil, summary, by)
	}
	g.mu.Lock()
	revoked := g.revoked[claim]
	if !revoked {
		g.landing[claim] = true
	}
	g.tries++
	tip, takes, returns := g.tip(), time.Duration(0), ""
	if g.check != nil {
		takes, returns = g.check(g.tries, filesOf(g.lanes[t.Worktree].Path))
	}
	g.mu.Unlock()
	if revoked {
		return v, g.late(t, fence)
	}
	if t.Status == muster.InProgress {
		if v.Task, err = g.board.BeginLanding(ctx, id, fence, muster.PendingLanding{Head: claim, Onto: tip, Summary: summary}); err != nil {
			if errors.Is(err, muster.ErrFenced) || errors.Is(err, muster.ErrNotFound) {
				err = g.late(t, fence)
			}
			return v, err
		}
	}
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return v, context.Cause(ctx)
	}
	if returns != "" {
		return g.comeBack(ctx, v, fence, returns)
	}
	if t, err = g.board.Get(ctx, id); err != nil {
		return v, err
	}
	if t.Fence != fence || t.Status != muster.Landing {
		return v, g.late(t, fence)
	}
	g.mu.Lock()
	under := g.landing[claim]
	if under {
		delete(g.landing, claim)
		maps.Copy(g.target, filesOf(g.lanes[t.Worktree].Path))
		g.landed = append(g.landed, landedWork{claim: claim, subject: t.Subject, commit: fmt.Sprintf("%040x", len(g.landed)+1)})
	}
	g.mu.Unlock()
	if done := g.find(claim); done != nil {
		return g.completed(ctx, v, done, summary, by)
	}
	return v, g.late(t, fence)
}

func (g *meadow) find(claim string) *muster.Landed {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, l := range g.landed {
		if l.claim == claim {
			return &muster.Landed{Commit: l.commit, Receipt: muster.ReceiptUnchecked}
		}
	}
	return nil
}

func (g meadowLander) completed(ctx context.Context, v landing.Verdict, landed *muster.Landed, summary string, by muster.Name) (landing.Verdict, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	t, err := g.board.Complete(ctx, v.Task.ID, v.Task.Fence, board.Outcome{Landed: landed, Result: summary, By: by})
	if t.ID != 0 {
		v.Task = t
	}
	return v, err
}

func (g meadowLander) comeBack(ctx context.Context, v landing.Verdict, fence int, why string) (landing.Verdict, error) {
	claim := claimOf(v.Task.ID, fence)
	g.mu.Lock()
	delete(g.landing, claim)
	revoked := g.revoked[claim]
	g.mu.Unlock()
	if revoked {
		return v, g.late(v.Task, fence)
	}
	t, err := g.board.Return(ctx, v.Task.ID, fence, why, board.Details{Text: "simulated"})
	if errors.Is(err, muster.ErrFenced) {
		return v, g.late(v.Task, fence)
	}
	if t.ID != 0 {
		v.Task = t
	}
	v.Text = "It came back: " + why + "."
	return v, err
}

func (g meadowLander) Revoke(ctx context.Context, id muster.TaskID, fence int) error {
	claim := claimOf(id, fence)
	g.mu.Lock()
	g.revoked[claim] = true
	delete(g.landing, claim)
	g.mu.Unlock()
	t, err := g.board.Get(ctx, id)
	if errors.Is(err, muster.ErrNotFound) {
		return nil
	}
	done := g.find(claim)
	if err != nil || t.Fence != fence || t.Status != muster.Landing || done == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if _, err := g.board.Complete(ctx, id, fence, board.Outcome{Landed: done, Result: t.Landing.Summary, By: t.Owner}); err != nil {
		return err
	}
	return muster.Errorf(muster.Held, "task %d has just landed", id)
}
