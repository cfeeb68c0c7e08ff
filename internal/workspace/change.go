package workspace

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/board"
	"muster/internal/durable"
	"muster/internal/outbox"
	"muster/internal/paths"
	"muster/internal/proc"
	"muster/internal/roster"
)

// The leases by which a start and an archive exclude each other. A process that brings a team to life holds LeadLease,
// and so does one that archives a team: of those that start at one moment only one goes on. The latter holds
// ArchiveLease too. While it moves the state, or after it was killed in between, the file paths.Dir.Moving names where
// the state goes.
const (
	LeadLease    = "lead"
	ArchiveLease = "archive"
	UndoLease    = "undo" // of a process that takes back landed tasks
)

// PrepareChange must be called before a command changes the team's state. It refuses a change by one of the team's own
// tools and a change of state that is being archived. It writes .git/info/exclude, which keeps the state out of the
// user's commits. It notes in the registry where the repository is.
func (w *Workspace) PrepareChange(ctx context.Context) error {
	if err := w.CheckOutsideTools(ctx); err != nil {
		return err
	}
	if err := w.CheckNotArchiving(ctx); err != nil {
		return err
	}
	if err := exclude(ctx, w); err != nil || w.common == "" || !w.HasState() {
		return err
	}
	// A repository that was moved is remembered where it is now. A copy of it is told from it by that, and what the
	// user trusts in it is not forgotten with the old place.
	_, err := w.options.Registry.Mark(ctx, w.common, w.root)
	return err
}

// CheckOutsideTools refuses a command that would change this team from inside one of its own tools: an agent that could
// approve its own plan by calling muster would need no approval. Who calls is read from the process tree.
func (w *Workspace) CheckOutsideTools(ctx context.Context) error {
	if !exists(w.Paths().Hosts()) {
		return nil // no process of this team ever lived
	}
	hosts, err := w.Roster(ctx).Hosts(ctx)
	if err != nil {
		return err
	}
	// Only the kernel is asked, because a tool can change its environment and its arguments.
	for pid := proc.Parent(os.Getpid()); pid > 1; pid = proc.Parent(pid) {
		// The host is above its guard.
		isHost := func(h roster.HostRecord) bool { return h.PID == pid }
		if slices.ContainsFunc(hosts, isHost) {
			return muster.Errorf(muster.Invalid, "this command would change the team from inside one of its own tools").
				WithHint("members act with their own tools: task_create, complete_task, send_message, ...")
		}
	}
	return nil
}

// EndTools kills what processes of the team that have died have left of their tools, and returns how many of those it
// has found. Every command calls it. What fails is left for the next one.
func EndTools(ctx context.Context, w *Workspace) (killed int) {
	if !exists(w.Paths().Hosts()) {
		return 0 // no process of this team ever lived
	}
	killed, err := w.Roster(ctx).EndTools(ctx)
	if w.options.Log != nil && (killed > 0 || err != nil) {
		w.options.Log.InfoContext(ctx, "tools of dead processes killed", "processes", killed, "err", err)
	}
	return killed
}

// CheckNotArchiving refuses to work on state that an archive is moving, or of which an interrupted one has moved a
// part.
func (w *Workspace) CheckNotArchiving(ctx context.Context) error {
	files, note := stateFiles(w), w.Paths().Moving()
	data, _, err := files.ReadFile(note)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return muster.Errorf(muster.Unavailable, "whether the last team is being put aside cannot be told: %w",
			durable.Unreadable(files.FS(), note, err))
	}
	// The note alone does not tell an archive under way from one that was killed. The lease does, because the kernel
	// frees it.
	if busy, err := w.store.Leases().Held(ctx, ArchiveLease); err != nil || busy {
		return cmp.Or(err, ErrArchiving())
	}
	name := strings.TrimSpace(string(data))
	if t, err := readArchived(files, w.Paths(), name); err == nil && t.Restoring {
		return errRestoreInterrupted(name)
	}
	return muster.Errorf(muster.Invalid, "putting the last team aside (%s) was interrupted", name).
		WithHint("muster archive --yes")
}

func errRestoreInterrupted(name string) error {
	return muster.Errorf(muster.Invalid, "bringing the archived team %s back was interrupted", name).
		WithHint("muster archive restore %s", name)
}

// ErrArchiving returns the error for a start while another process archives the team.
func ErrArchiving() error {
	return muster.Errorf(muster.Held, "the team is being put aside right now by another process").
		WithHint("try again in a moment")
}

// exclude keeps the state out of the user's commits. In the plain case it asks git nothing.
func exclude(ctx context.Context, w *Workspace) error {
	// A file that cannot be read, or is elsewhere, is git's to find.
	data, _, _ := stateFiles(w).ReadFile(filepath.Join(w.root, ".git", "info", "exclude"))
	lines := strings.Split(string(data), "\n")
	isMissing := func(pattern string) bool { return !slices.Contains(lines, pattern) }
	if !slices.ContainsFunc(paths.Excluded, isMissing) {
		return nil
	}
	repo, err := w.Repo(ctx)
	if err != nil {
		return err
	}
	return repo.Exclude(ctx, paths.Excluded)
}

// registerEffects makes the board's process one that carries out what follows from the end of a task: mail, archived
// lanes, and the end of a claim's right to land. The services are opened when an effect first needs them.
func registerEffects(w *Workspace, b *board.Board) {
	// Each service is opened by the effect that needs it: a command that completes a task without a lane asks git
	// nothing.
	send := func(ctx context.Context, m muster.Message) (muster.Message, error) { return w.Mail(ctx).Send(ctx, m) }
	outbox.Register(b, send, func(ctx context.Context, t muster.Task) (ref string, err error) {
		lanes, err := w.Lanes(ctx)
		if err != nil {
			return "", err
		}
		return lanes.ArchiveCompleted(ctx, t)
	})
	b.OnRevoke(func(ctx context.Context, t muster.Task) error { return revokeLanding(ctx, w, t) })
}

// revokeLanding ends the right of a task's claim to land.
func revokeLanding(ctx context.Context, w *Workspace, t muster.Task) error {
	lander, err := w.Lander(ctx)
	if err != nil {
		return err
	}
	return lander.Revoke(ctx, t.ID, t.Fence)
}

// RevokeTask ends the claim of t and puts the task back on the board. The claim's right to land ends first, so what
// has landed stays landed: the error is Held then. It is Fenced when the task was claimed again since t was read.
func (w *Workspace) RevokeTask(ctx context.Context, t muster.Task, by muster.Name, reason string) (muster.Task, error) {
	// First the right to land and then the claim. The other way round the work could land in between, for a task that
	// is on the board again.
	if t.Worktree != "" && t.Claimed() {
		if err := revokeLanding(ctx, w, t); err != nil {
			return t, err
		}
	}
	return w.Board().Revoke(ctx, t.ID, t.Fence, by, reason)
}
