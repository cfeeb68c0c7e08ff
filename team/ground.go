package team

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"muster"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/landing"
	"muster/internal/paths"
	"muster/internal/proc"
	"muster/internal/teammate"
	"muster/internal/worktree"
)

// ground is what a team works on: a git repository. Tests of whole teams in simulated time have one without git, a thousand
// of which take no time. A target is a ref: refs/heads/...
type ground interface {
	Root() string
	// Prepare makes the target ready for a new run; what cannot be used is refused before anything is written. chosen: the
	// user named it. fresh: one that has diverged is archived and starts again.
	Prepare(ctx context.Context, target string, chosen, fresh bool) (note string, err error)
	// Forget removes what is kept of claims that no board with these tasks can have made.
	Forget(ctx context.Context, tasks []muster.Task) error
	// Landable refuses to go on with a target that is gone, or checked out anywhere.
	Landable(ctx context.Context, target string) error
	// Tip is the target's commit.
	Tip(ctx context.Context, target string) (commit string, err error)
	// Lost are those of the commits that are neither on the target, which may be gone, nor in HEAD; heads of them are the ones
	// from which all of them can be reached.
	Lost(ctx context.Context, target string, commits []string) (lost, heads []string, err error)
	// Dirty reports changes in the user's checkout that are not committed.
	Dirty(ctx context.Context) (bool, error)
	// Lay opens the lanes, and returns how a lander is made that runs checks through a launcher; nil: it runs none.
	Lay(r teammate.Services, o worktree.Options, l landing.Options) (teammate.Lanes, func(proc.Launcher) teammate.Lander, error)
}

// repository is a git repository.
type repository struct{ *git.Repo }

func (r repository) Prepare(ctx context.Context, target string, chosen, fresh bool) (note string, err error) {
	if err := worktree.CheckBranchNames(ctx, r.Repo); err != nil {
		return "", err
	}
	note, err = landing.PrepareTarget(ctx, r.Repo, target, chosen, fresh)
	if err != nil {
		return "", err
	}
	if aside := r.aside(ctx, target, chosen); aside != "" {
		note = strings.TrimSuffix(aside+"; "+note, "; ")
	}
	return note, r.Exclude(ctx, paths.Excluded)
}

// aside tells a user who stands in a linked worktree, at another commit, that a run begins at the main one's HEAD; "" too where it
// begins at a branch of their choice, or where git cannot tell: it is only a note.
func (r repository) aside(ctx context.Context, target string, chosen bool) string {
	dir := r.Linked()
	if dir == "" {
		return ""
	}
	here, err1 := r.ResolveIn(ctx, dir, "HEAD")
	head, err2 := r.Head(ctx)
	base, err3 := r.Ref(ctx, target)
	if errors.Join(err1, err2, err3) != nil || here == head || chosen && base != head {
		return ""
	}
	return fmt.Sprintf("the team builds on HEAD of %s, not of this worktree, which is at %.7s", r.Root(), here)
}

func (r repository) Forget(ctx context.Context, tasks []muster.Task) error {
	return landing.ForgetRevoked(ctx, r.Repo, tasks)
}

func (r repository) Landable(ctx context.Context, target string) error {
	if err := worktree.CheckBranchNames(ctx, r.Repo); err != nil {
		return err
	}
	branch := strings.TrimPrefix(target, "refs/heads/")
	if at, err := r.Ref(ctx, target); err != nil {
		return err
	} else if at == "" {
		return muster.Errorf(muster.NotFound, "the branch %s, on which this team's work lands, is gone", branch).
			WithHint("bring it back: git branch %s COMMIT", branch)
	}
	path, err := r.CheckedOut(ctx, target)
	if err == nil && path != "" {
		err = muster.Errorf(muster.Held, "%s is checked out at %s, and work cannot land on a branch that somebody has checked out", branch, path).
			WithHint("git -C %s switch ANOTHER-BRANCH", path)
	}
	return err
}

func (r repository) Tip(ctx context.Context, target string) (string, error) {
	return r.Resolve(ctx, target)
}

func (r repository) Lost(ctx context.Context, target string, commits []string) (lost, heads []string, err error) {
	in := strings.Join(commits, "\n") + "\n"
	at, err := r.Ref(ctx, target)
	if err != nil {
		return nil, nil, err
	}
	if at != "" {
		in += "^" + at + "\n"
	}
	if head, err := r.Head(ctx); err == nil { // what the user has taken is not lost
		in += "^" + head + "\n"
	}
	// One git for all of them: what it lists can be reached from the commits only.
	out, err := r.Do(ctx, git.Call{Dir: r.CommonDir(), Stdin: in, Args: []string{"rev-list", "--parents", "--stdin"}})
	if err != nil {
		return nil, nil, err
	}
	listed, parent := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(out) {
		ids := strings.Fields(line)
		listed[ids[0]] = true
		for _, p := range ids[1:] {
			parent[p] = true
		}
	}
	for _, c := range commits {
		if listed[c] {
			lost = append(lost, c)
			if !parent[c] {
				heads = append(heads, c)
			}
		}
	}
	return lost, heads, nil
}

func (r repository) Dirty(ctx context.Context) (bool, error) { return r.Status(ctx, r.Root()) }

func (r repository) Lay(rooms teammate.Services, o worktree.Options, l landing.Options) (teammate.Lanes, func(proc.Launcher) teammate.Lander, error) {
	lanes, err := worktree.Open(r.Repo, durable.New(durable.OS{}), rooms.Home, rooms.Journal, rooms.Store.Log(), o)
	if err != nil {
		return nil, nil, err
	}
	return lanes, func(launcher proc.Launcher) teammate.Lander {
		launch := func() (proc.Launcher, error) { return launcher, nil }
		return landing.New(r.Repo, lanes, rooms.Board, rooms.Journal, launch, l)
	}, nil
}
