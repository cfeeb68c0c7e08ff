package workspace

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"muster"
	"muster/internal/trust"
)

// FoundState is a team's state that somebody else may have made, as the user sees it before it is taken over. Its
// texts are what the records say.
type FoundState struct {
	Dirs    []string      `json:"dirs"` // relative to the root
	Tasks   int           `json:"tasks"`
	Members []muster.Name `json:"members"`
	// Owners are the members that have claimed tasks in lanes and have no record. Adopt gives them one.
	Owners []muster.Name `json:"owners"`
	Lanes  []muster.Name `json:"lanes"`
	// Lost are the lanes of a team whose state is gone: see Workspace.Lost. Adopt makes them lanes again, or archives
	// their commits.
	Lost  []muster.Name `json:"lost"`
	Run   muster.Run    `json:"run"`
	IsOwn bool          `json:"own"` // muster made it here for this user already
}

// Unverified is a repository with state that may not be the user's own, for those with which the user decides what
// becomes of it.
type Unverified struct{ w *Workspace }

// OpenUnverified is Open with whatever state is there.
func OpenUnverified(ctx context.Context, dir string, o Options) (*Unverified, error) {
	o.isUnverified = true
	w, err := Open(ctx, dir, o)
	if err != nil {
		return nil, err
	}
	return &Unverified{w}, nil
}

// Close closes what was opened.
func (u *Unverified) Close() error { return u.w.Close() }

// Find looks at the state. It writes nothing. Errors: ErrNoTeam where there is no state, and Invalid for state that
// nobody may take over, because git tracks it or it lies behind a symbolic link.
func (u *Unverified) Find(ctx context.Context) (f FoundState, err error) {
	w := u.w
	if f.Dirs, err = trust.Present(w.root); err != nil {
		return f, err
	}
	if f.Lost, err = w.Lost(ctx); err != nil {
		return f, err
	}
	if len(f.Dirs) == 0 {
		if len(f.Lost) == 0 {
			return f, ErrNoTeam
		}
		f.IsOwn = true // git has them here only
		return f, nil
	}
	if err := trust.CheckTracked(repositoryOf(w), f.Dirs); err != nil {
		return f, err
	}
	mark, err := w.options.Registry.Look(w.common)
	if err != nil {
		return f, err
	}
	f.IsOwn = mark.IsOwn()
	if f.Run, err = w.runs.Look(ctx); err != nil {
		return f, err
	}
	if w.HasLanes() {
		if err := findLanes(ctx, w, &f); err != nil {
			return f, err
		}
	}
	return f, findOwners(ctx, w, &f)
}

// findLanes lists the lanes.
func findLanes(ctx context.Context, w *Workspace, f *FoundState) error {
	lanes, err := w.Lanes(ctx)
	if err != nil {
		return err
	}
	all, err := lanes.List(ctx)
	for _, lane := range all {
		f.Lanes = append(f.Lanes, lane.Name)
	}
	return err
}

// findOwners counts the tasks, and lists the members and the owners without a record. Who has claimed a task without a
// lane is somebody outside of the team, for whom no member may start.
func findOwners(ctx context.Context, w *Workspace, f *FoundState) error {
	tasks, err := w.Board().List(ctx)
	if err != nil {
		return err
	}
	f.Tasks = len(tasks)
	members, err := w.Roster(ctx).List(ctx)
	if err != nil {
		return err
	}
	for _, m := range members {
		f.Members = append(f.Members, m.Name)
	}
	for _, t := range tasks {
		known := slices.Contains(f.Members, t.Owner) || slices.Contains(f.Owners, t.Owner)
		if t.Claimed() && t.Worktree != "" && !known && muster.CheckName(t.Owner) == nil {
			f.Owners = append(f.Owners, t.Owner)
		}
	}
	return nil
}

// Adopt takes over the state that Find has found, as the user has decided: from now on it counts as what muster
// made. Owners without a record get one, so that the next run goes on with their tasks in their lanes.
func (u *Unverified) Adopt(ctx context.Context, f FoundState) error {
	w := u.w
	if err := w.CheckOutsideTools(ctx); err != nil {
		return err
	}
	if _, err := w.options.Registry.Mark(ctx, w.common, w.root); err != nil {
		return err
	}
	if err := w.PrepareChange(ctx); err != nil {
		return err
	}
	if len(f.Lost) > 0 {
		if err := w.adoptLost(ctx); err != nil {
			return err
		}
	}
	tasks, err := w.Board().List(ctx)
	if err != nil {
		return err
	}
	for _, owner := range f.Owners {
		if err := adoptOwner(ctx, w, owner, tasks); err != nil {
			return err
		}
	}
	return w.Roster(ctx).Project(ctx)
}

// adoptOwner records the member who owns tasks. It has no host, so the next run starts it. Its prompt is another one
// each time: a member whose conversation has the prompt of this start already is told nothing, and waits.
func adoptOwner(ctx context.Context, w *Workspace, owner muster.Name, tasks []muster.Task) error {
	m := muster.Member{Name: owner, Status: muster.Idle, IdleReason: muster.IdleTasks, StartedBy: muster.User,
		Prompt: "The user has taken over the team's state (" + w.options.Clock.Now().UTC().Format(time.RFC3339Nano) +
			"). Your record was lost. Go on with the tasks that you have claimed."}
	for _, t := range tasks {
		if t.Owner == owner && t.Claimed() {
			m.Role, m.Task = cmp.Or(m.Role, t.ClaimRole), cmp.Or(m.Task, t.ID)
		}
	}
	m.Role = cmp.Or(m.Role, "teammate")
	_, err := w.Roster(ctx).Add(ctx, m)
	if errors.Is(err, muster.ErrHeld) {
		return nil // another program has brought it back meanwhile
	}
	return err
}

// PutAside moves state that is not the user's own out of the way, into git's common directory, and returns where it is.
// None of it is read or carried out. Interrupted anywhere, it has moved some of the directories, and moves the others
// when it is called again. Errors are those of Find.
func (u *Unverified) PutAside(ctx context.Context) (dir string, err error) {
	w := u.w
	if err := w.CheckOutsideTools(ctx); err != nil {
		return "", err
	}
	dirs, err := trust.Present(w.root)
	if err == nil {
		err = trust.CheckTracked(repositoryOf(w), dirs)
	}
	if err != nil {
		return "", err
	}
	dirs = trust.OfTeam(repositoryOf(w), dirs) // the user's own worktrees stay where git has them
	now := w.options.Clock.Now().Local().Format("20060102-150405")
	dir = freePath(filepath.Join(w.common, "muster", "aside", now))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", muster.Errorf(muster.Unavailable, "nothing is put aside: %w", err)
	}
	for _, d := range dirs {
		if err := os.Rename(filepath.Join(w.root, d), filepath.Join(dir, d)); err != nil {
			return "", muster.Errorf(muster.Unavailable, "%s cannot be put aside: %w", d, err).
				WithHint("mv %s SOMEWHERE", d)
		}
	}
	return dir, nil
}
