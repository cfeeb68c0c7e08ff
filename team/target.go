package team

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"muster"
	"muster/internal/delivery"
	"muster/internal/git"
	"muster/internal/landing"
	"muster/internal/workspace"
)

// TargetState is where the target is, and where landings left it.
type TargetState = landing.TargetState

// Target is the branch on which the work of a team lands: of the run under way, or of the last one.
type Target struct{ now func() operations }

// Get returns where the target is. It changes nothing.
func (s Target) Get(ctx context.Context) (TargetState, error) {
	_, l, err := s.last(ctx)
	if err != nil {
		return TargetState{}, err
	}
	return l.State(ctx)
}

// Accept makes a commit the one from which landings go on, and moves the target there. It is for a user who has
// moved the target on purpose: landings put back, or wait for, a target that is not where they left it.
func (s Target) Accept(ctx context.Context, commit string) (TargetState, error) {
	if err := s.now().workspace.PrepareChange(ctx); err != nil {
		return TargetState{}, err
	}
	_, l, err := s.last(ctx)
	if err != nil {
		return TargetState{}, err
	}
	return l.Accept(ctx, commit)
}

// last returns the last run and its lander. The error is NotFound when there was none.
func (s Target) last(ctx context.Context) (run muster.Run, l *landing.Lander, err error) {
	if run, err = s.now().lastRun(ctx, "there is no target"); err == nil {
		l, err = s.now().workspace.Lander(ctx)
	}
	return run, l, err
}

// How the work came to the user's branch: Merged.How.
const (
	NothingToMerge      = delivery.Nothing
	MergedByFastForward = delivery.FastForward
	MergedByCommit      = delivery.MergeCommit
)

// Merged is what came from the target to the user's branch.
type Merged struct {
	delivery.Merged
	Tasks []muster.Task `json:"tasks"` // that came, by id
	Open  int           `json:"open"`  // tasks of the run that are open still
}

// Merge takes what has landed to the branch of the user's checkout: by a fast-forward, or else by a merge that their
// own git makes. What would lose something is refused, and nothing is left half done.
func (s Target) Merge(ctx context.Context) (m Merged, err error) {
	w := s.now().workspace
	if err := w.PrepareChange(ctx); err != nil {
		return m, err
	}
	run, l, err := s.last(ctx)
	if err != nil {
		return m, err
	}
	// The record of the run is a claim: nothing is taken from a branch that only the record names.
	if err := workspace.ConfirmTarget(ctx, w, run.Team, run.Target, ""); err != nil {
		return m, err
	}
	repo, err := w.Repo(ctx)
	if err != nil {
		return m, err
	}
	c, err := delivery.Open(ctx, repo, run.Target)
	if err != nil {
		return m, err
	}
	// The tip is read once. What lands from here on comes with the next call.
	state, err := l.State(ctx)
	if err != nil {
		return m, err
	}
	if err := checkLanded(ctx, repo, state, c.Head); err != nil {
		return m, err
	}
	if c.Snapshot, _, err = landing.SnapshotIn(ctx, repo, c.Head, state.Tip); err != nil {
		return m, err
	}
	if m.Merged, err = delivery.Merge(ctx, c, run.Target, state.Tip, false); err != nil {
		return m, err
	}
	tasks, err := w.Board().List(context.WithoutCancel(ctx)) // the merge is done
	m.Tasks = landedIn(tasks, m.Commits)
	open, _ := run.Left(tasks)
	m.Open = len(open)
	return m, err
}

// Untaken is what Merge would take, and where to.
type Untaken struct {
	Branch  string `json:"branch"` // the user's
	Target  string `json:"target"`
	Commits int    `json:"commits"`
	// IsClear says that nothing is in the way of a merge. Only Target.Mergeable looks.
	IsClear bool `json:"-"`
	commits []string
}

// Untaken returns how many commits have landed that the branch of the user's checkout lacks. It changes nothing.
// Whether they can be merged only Merge finds out. Errors: NotFound where no run was, and those of a checkout that has
// no branch of the user's to take them to.
func (s Target) Untaken(ctx context.Context) (u Untaken, err error) { return s.untaken(ctx, false) }

// Mergeable is Untaken, and looks whether Merge would succeed: IsClear says so.
func (s Target) Mergeable(ctx context.Context) (u Untaken, err error) { return s.untaken(ctx, true) }

// UntakenTasks is Untaken, with the tasks of these commits.
func (s Target) UntakenTasks(ctx context.Context) (u Untaken, landed []muster.Task, err error) {
	if u, err = s.untaken(ctx, false); err != nil || u.Commits == 0 {
		return u, nil, err
	}
	tasks, err := s.now().workspace.Board().List(ctx)
	return u, landedIn(tasks, u.commits), err
}

func (s Target) untaken(ctx context.Context, looks bool) (u Untaken, err error) {
	run, l, err := s.last(ctx)
	if err != nil {
		return u, err
	}
	repo, err := s.now().workspace.Repo(ctx)
	if err != nil {
		return u, err
	}
	// What landings left is counted, and not what somebody has put on the branch beside them.
	state, err := l.State(ctx)
	if err != nil {
		return u, err
	}
	c, err := delivery.Open(ctx, repo, run.Target)
	if err != nil {
		return u, err
	}
	commits, err := c.Missing(ctx, state.Tip)
	u = Untaken{Branch: c.Branch, Target: run.Target, Commits: len(commits), commits: commits}
	if err != nil || !looks || errDisplaced(state) != nil {
		return u, err
	}
	if c.Snapshot, _, err = landing.SnapshotIn(ctx, repo, c.Head, state.Tip); err == nil {
		u.IsClear, err = c.MayMerge(ctx, run.Target, state.Tip)
	}
	return u, err
}

// checkLanded refuses a target that is not where landings left it: what it has may be checked by nobody. What the
// user's branch has already was taken, whatever became of the target.
func checkLanded(ctx context.Context, repo *git.Repo, s landing.TargetState, head string) error {
	err := errDisplaced(s)
	if err != nil {
		if has, errGit := repo.IsAncestor(ctx, s.Tip, head); errGit != nil || has {
			return errGit
		}
	}
	return err
}

// errDisplaced is the error of a target that is not where landings left it; nil for one that is.
func errDisplaced(s landing.TargetState) error {
	if s.At == s.Tip && s.Link == "" {
		return nil
	}
	is := "is gone"
	if s.At != "" {
		is = fmt.Sprintf("is at %.7s", s.At)
	}
	return muster.Errorf(muster.Held, "%s %s, and landings left it at %.7s", s.Branch, is, s.Tip).
		WithHint("put it back:          muster target --accept %.12s\ngo on from elsewhere: muster target --accept %s",
			s.Tip, cmp.Or(fmt.Sprintf("%.12s", s.At), "COMMIT"))
}

func landedIn(tasks []muster.Task, commits []string) []muster.Task {
	return slices.DeleteFunc(slices.Clone(tasks), func(t muster.Task) bool {
		return t.Landed == nil || !slices.Contains(commits, t.Landed.Commit)
	})
}
