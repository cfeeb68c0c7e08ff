package team

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"

	"muster"
	"muster/internal/delivery"
	"muster/internal/git"
	"muster/internal/landing"
	"muster/internal/paths"
	"muster/internal/teammate"
	"muster/internal/text"
	"muster/internal/workspace"
	"muster/internal/worktree"
)

// repository is what a team works on. It is git, except in tests of whole teams in simulated time, of which a thousand
// take no time. A target is a ref: refs/heads/...
type repository interface {
	Root() string
	// Prepare makes the target ready for a new run; what cannot be used is refused before anything is written. chosen:
	// the user named it. fresh: one that has diverged is archived and starts again.
	Prepare(ctx context.Context, target string, chosen, fresh bool) (note string, err error)
	// TrackedFiles returns the paths of the files of the commit at which Prepare would leave the target. It writes
	// nothing.
	TrackedFiles(ctx context.Context, target string, chosen, fresh bool) ([]string, error)
	// ForgetRevoked removes what is kept of claims that no board with these tasks can have made.
	ForgetRevoked(ctx context.Context, tasks []muster.Task) error
	// ValidateTarget refuses to go on with a target that is gone, or checked out anywhere.
	ValidateTarget(ctx context.Context, target string) error
	// Resolve returns the commit of a ref.
	Resolve(ctx context.Context, ref string) (commit string, err error)
	// MissingCommits returns those of the commits that are neither on the target, which may be gone, nor in HEAD. heads
	// are those of them from which all others can be reached.
	MissingCommits(ctx context.Context, target string, commits []string) (lost, heads []string, err error)
	// Checkout returns how the user's checkout stood when it was first asked: what the user does later concerns no
	// lane, and all members that this process starts read the same.
	Checkout(ctx context.Context) (git.CheckoutState, error)
	// LandedFiles returns the files that a landed commit has changed.
	LandedFiles(ctx context.Context, commit string) ([]string, error)
	// OpenLanes returns the lanes and the lander of the workspace of a run.
	OpenLanes(ctx context.Context, w *workspace.Workspace) (teammate.Lanes, teammate.Lander, error)
}

// gitRepository is a git repository.
type gitRepository struct {
	*git.Repo
	first *firstCheckout
}

// firstCheckout is the checkout as it stood when it was first asked about; nil before that.
type firstCheckout struct {
	sync.Mutex
	state *git.CheckoutState
}

// Checkout asks git once. An error is not remembered.
func (r gitRepository) Checkout(ctx context.Context) (git.CheckoutState, error) {
	r.first.Lock()
	defer r.first.Unlock()
	if r.first.state == nil {
		s, err := git.Checkout(ctx, r.Repo)
		if err != nil {
			return s, err
		}
		r.first.state = &s
	}
	return *r.first.state, nil
}

// Prepare makes the target ready, and keeps the team's files out of the user's commits.
func (r gitRepository) Prepare(ctx context.Context, target string, chosen, fresh bool) (note string, err error) {
	if err := worktree.CheckBranchNames(ctx, r.Repo); err != nil {
		return "", err
	}
	// Lanes and checks are made of the target, which is or becomes one of these two.
	head, err := r.Head(ctx)
	if err != nil {
		return "", err
	}
	at, err := r.Ref(ctx, target)
	if err := cmp.Or(err, r.CheckComplete(ctx, head), r.CheckComplete(ctx, at)); err != nil {
		return "", err
	}
	note, err = landing.PrepareTarget(ctx, r.Repo, target, chosen, fresh)
	if err != nil {
		return "", err
	}
	if more := r.missingFilesNote(ctx, target); more != "" {
		note = strings.TrimSuffix(more+"; "+note, "; ")
	}
	return note, r.Exclude(ctx, paths.Excluded)
}

// TrackedFiles asks git for the files of a commit.
func (r gitRepository) TrackedFiles(ctx context.Context, target string, chosen, fresh bool) ([]string, error) {
	tip, err := landing.PlannedTip(ctx, r.Repo, target, chosen, fresh)
	if err != nil {
		return nil, err
	}
	out, err := r.Run(ctx, r.CommonDir(), "ls-tree", "-r", "-z", "--name-only", "--full-tree", tip)
	return strings.FieldsFunc(out, func(c rune) bool { return c == 0 }), err
}

// missingFilesNote tells a user whose lanes will have pointers of git-lfs in the place of files. It is "" too where git
// cannot tell: it is only a note.
func (r gitRepository) missingFilesNote(ctx context.Context, target string) string {
	n, err := git.MissingFiles(ctx, r.Repo, target)
	if err != nil || n == 0 {
		return ""
	}
	return fmt.Sprintf("git-lfs lacks %s, and lanes have pointers in their place: git lfs fetch", text.Count(n, "file"))
}

// describeCheckout says to the models how the user's checkout stood, and whether the target has a snapshot of it. It is
// "" where git cannot tell.
func describeCheckout(ctx context.Context, r repository, target string) string {
	s, err := r.Checkout(ctx)
	if err != nil || s.Head == "" {
		return ""
	}
	said := fmt.Sprintf("branch %s at %.7s, ", cmp.Or(s.Branch, "none (detached)"), s.Head)
	if s.Behind > 0 {
		said += behind(s) + ", "
	}
	if s.Changed == 0 {
		return said + "clean"
	}
	said += fmt.Sprintf("with uncommitted changes in %d paths, ", s.Changed)
	if g, isGit := r.(gitRepository); isGit {
		if snapshot, isSame := g.snapshotIn(ctx, s.Head, target); isSame {
			return said + fmt.Sprintf("of which lanes have a snapshot, the commit %.7s", snapshot)
		} else if snapshot != "" {
			return said + fmt.Sprintf("and lanes have an earlier state, the snapshot %.7s", snapshot)
		}
	}
	return said + "which are in no lane"
}

// behind says how many commits a checkout lacks of those that its branch follows.
func behind(s git.CheckoutState) string {
	return fmt.Sprintf("%s behind %s as last fetched", text.Count(s.Behind, "commit"), s.Upstream)
}

// snapshotIn returns the snapshot that the target has and head lacks, "" where there is none or git cannot tell. isSame
// reports whether the checkout is still as the snapshot.
func (r gitRepository) snapshotIn(ctx context.Context, head, target string) (commit string, isSame bool) {
	commit, _, err := landing.SnapshotIn(ctx, r.Repo, head, target)
	if err != nil || commit == "" {
		return "", false
	}
	isSame, err = delivery.IsSnapshot(ctx, r.Repo, commit)
	return commit, isSame && err == nil
}

// LandedFiles returns the paths of the files that a landed commit has changed on the target.
func (r gitRepository) LandedFiles(ctx context.Context, commit string) ([]string, error) {
	out, err := r.Run(ctx, r.CommonDir(), "diff-tree", "-r", "-z", "--no-renames", "--name-only",
		"--ignore-submodules=none", commit+"^1", commit)
	return strings.FieldsFunc(out, func(c rune) bool { return c == 0 }), err
}

// ForgetRevoked removes the refs of claims that no board with these tasks can have made.
func (r gitRepository) ForgetRevoked(ctx context.Context, tasks []muster.Task) error {
	return landing.ForgetRevoked(ctx, r.Repo, tasks)
}

// ValidateTarget refuses a target that is gone, because the work that has landed would be gone with it, and one that is
// checked out, because a landing would change files under the user's hands.
func (r gitRepository) ValidateTarget(ctx context.Context, target string) error {
	if err := worktree.CheckBranchNames(ctx, r.Repo); err != nil {
		return err
	}
	branch := strings.TrimPrefix(target, "refs/heads/")
	at, err := r.Ref(ctx, target)
	if err == nil && at == "" {
		err = muster.Errorf(muster.NotFound, "the branch %s, on which this team's work lands, is gone", branch).
			WithHint("bring it back: git branch %s COMMIT", text.ShellQuote(branch))
	}
	return cmp.Or(err, r.CheckComplete(ctx, at), landing.CheckTarget(ctx, r.Repo, branch))
}

// MissingCommits asks git once for all commits. What is excluded are the target and HEAD, with all that can be reached
// from them, so a commit that is listed is on neither.
func (r gitRepository) MissingCommits(
	ctx context.Context, target string, commits []string,
) (lost, heads []string, err error) {
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
	out, err := r.Do(ctx, git.Call{Dir: r.CommonDir(), Stdin: in,
		Args: []string{"rev-list", "--parents", "--stdin"}})
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

// OpenLanes returns the lanes and the lander of the workspace.
func (r gitRepository) OpenLanes(
	ctx context.Context, w *workspace.Workspace,
) (teammate.Lanes, teammate.Lander, error) {
	lanes, errLanes := w.Lanes(ctx)
	lander, errLander := w.Lander(ctx)
	return lanes, lander, cmp.Or(errLanes, errLander)
}
