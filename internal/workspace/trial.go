package workspace

import (
	"cmp"
	"context"
	"crypto/rand"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"muster"
	"muster/internal/clock"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/paths"
	"muster/internal/worktree"
	"muster/journal"
)

// Trial is a lane in which something is tried as a member would do it. It has a state of its own, which lies with the
// lane in the repository's git directory: nothing of it is seen in the user's checkout or by a team that works.
type Trial struct {
	Lanes *worktree.Lanes
	Lane  muster.Lane
	State paths.Dir

	repo    *git.Repo
	release func() error // of the lock, by which others know that the trial is not abandoned
}

// trialsDir has the trials, below the repository's common directory. Each has a lock beside it, which comes first and
// goes last, and its name is also that of its lane.
const (
	trialsDir   = "muster"
	trialPrefix = "trial-"
	lockSuffix  = ".lock"
)

// OpenTrial makes a lane at a commit. Close it. The error is Unavailable where no lane can be made.
func OpenTrial(ctx context.Context, repo *git.Repo, commit string) (*Trial, error) {
	name := trialPrefix + strings.ToLower(rand.Text()[:10])
	t, err := lockTrial(repo, name)
	if err != nil {
		return nil, err
	}
	if t.Lane, err = t.Lanes.Create(ctx, muster.Name(name), 0, commit); err != nil {
		_ = t.Close(ctx) // the error of the lane says what is wrong here
		return nil, err
	}
	return t, nil
}

// lockTrial returns the trial of a name, which may be there. The error is Held while another process has it.
func lockTrial(repo *git.Repo, name string) (t *Trial, err error) {
	files, dir := durable.New(durable.OS{}), filepath.Join(repo.CommonDir(), trialsDir, name)
	t = &Trial{State: paths.Dir(dir), repo: repo}
	if t.release, err = files.TryLock(dir + lockSuffix); err != nil {
		return nil, err
	}
	t.Lanes, err = worktree.Open(repo, files, t.State, journal.New(noLog{}), noLog{}, worktree.Options{})
	if err != nil {
		_ = t.release()
	}
	return t, err
}

// Close removes the lane with all that is in it, and all that was made for it. What cannot be removed, RemoveTrials of
// a later process removes.
func (t *Trial) Close(ctx context.Context) error {
	ctx, cancel := clock.Detach(ctx)
	defer cancel()
	if t.Lane.Name != "" {
		_ = t.Lanes.Remove(ctx, t.Lane.Name, false) // with its directory for temporary files
	}
	err := t.remove(ctx)
	return cmp.Or(err, t.release())
}

// remove removes what is there of the trial: all of it, or what a killed process has made.
func (t *Trial) remove(ctx context.Context) error {
	name := filepath.Base(string(t.State))
	tree, ref := filepath.Join(t.State.Worktrees(), name), worktree.BranchPrefix+name
	if _, err := t.Lanes.CheckDirs.RemoveAbandoned(); err != nil {
		return err
	}
	if err := durable.RemoveAll(tree); err != nil {
		return err
	}
	if err := t.repo.UndoWorktree(ctx, tree); err != nil {
		return err
	}
	if err := git.RemovePlace(t.repo, tree); err != nil {
		return err
	}
	tip, err := t.repo.Ref(ctx, ref)
	if err == nil && tip != "" {
		err = t.repo.UpdateRefs(ctx, []git.RefUpdate{{Ref: ref, Old: tip}})
	}
	if err != nil {
		return err
	}
	if err := durable.RemoveAll(string(t.State)); err != nil {
		return err
	}
	if err := os.Remove(string(t.State) + lockSuffix); err != nil {
		return err
	}
	// A team that works may be about to use these directories.
	if dir := filepath.Dir(string(t.State)); !exists(paths.Dir(t.repo.Root()).Team()) {
		for _, empty := range []string{"places/.worktrees", "places", "."} {
			_ = os.Remove(filepath.Join(dir, filepath.FromSlash(empty)))
		}
	}
	return nil
}

// RemoveTrials removes the trials of processes that were killed. Every command calls it. What fails is left for the
// next one.
func RemoveTrials(ctx context.Context, w *Workspace) {
	if w.common == "" {
		return // there is no git
	}
	for _, lock := range durable.Glob(filepath.Join(w.common, trialsDir), trialPrefix+"*"+lockSuffix) {
		repo, err := w.Repo(ctx)
		if err != nil {
			return
		}
		t, err := lockTrial(repo, strings.TrimSuffix(filepath.Base(lock), lockSuffix))
		if err == nil {
			err = t.Close(ctx)
		}
		if err != nil && w.options.Log != nil {
			w.options.Log.InfoContext(ctx, "trial of a dead process not removed", "lock", lock, "err", err)
		}
	}
}

// noLog keeps nothing: what is tried is no part of what has happened in a team.
type noLog struct{}

func (noLog) Append(context.Context, string, muster.Pos, ...[]byte) (muster.Pos, error) {
	return 0, nil
}

func (noLog) Read(context.Context, string, muster.Pos) iter.Seq2[muster.Record, error] {
	return func(func(muster.Record, error) bool) {}
}

func (noLog) Tail(context.Context, string, int) (muster.Pos, error) { return 0, nil }
func (noLog) Trim(context.Context, string, muster.Pos) error        { return nil }
func (noLog) Watch(ctx context.Context, _ string) <-chan struct{}   { return nil }
