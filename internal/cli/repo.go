package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"muster"
	"muster/internal/board"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/landing"
	"muster/internal/mailbox"
	"muster/internal/outbox"
	"muster/internal/paths"
	"muster/internal/requests"
	"muster/internal/roster"
	"muster/internal/view"
	"muster/internal/worktree"
	"muster/journal"
	"muster/store/file"
)

// place is a repository and the rooms of its team, each opened when it is first asked for. A short command opens
// nothing that it does not need.
type place struct {
	app   *App
	home  paths.Dir
	store *file.Store

	repo     *git.Repo
	journal  *journal.Journal
	board    *board.Board
	roster   *roster.Roster
	post     *mailbox.Mail
	requests *requests.Requests
	lanes    *worktree.Lanes
}

// open finds the repository. It writes nothing.
func (a *App) open(ctx context.Context) (*place, error) {
	p := &place{app: a}
	root, ok := rootAbove(a.at())
	if !ok {
		repo, err := git.Open(ctx, a.at())
		if err != nil {
			return nil, err
		}
		root, p.repo = repo.Root(), repo
	}
	return p.at(ctx, root)
}

// openAt is open for a root that was found before: git is not asked again.
func (a *App) openAt(ctx context.Context, root string) (*place, error) {
	real, err := filepath.EvalSymlinks(root) // as git says it
	if err != nil {
		return nil, muster.Errorf(muster.NotFound, "there is no directory %s", root)
	}
	p := &place{app: a}
	return p.at(ctx, real)
}

// at opens the state at the root.
func (p *place) at(ctx context.Context, root string) (*place, error) {
	p.home = paths.Dir(root)
	s, err := file.Open(root)
	if err != nil {
		return nil, err
	}
	s.Logger = p.app.logger()
	p.store, p.journal = s, journal.New(s.Log())
	p.journal.Logger = p.app.logger()
	s.OnReject = func(box muster.Name, line []byte, why string) {
		// The line is set aside already; that it cannot be told is no reason to stop reading.
		_ = p.journal.Emit(context.WithoutCancel(ctx), muster.Event{Kind: journal.MailRejected, Member: box,
			Fields: map[string]any{"text": why + ": " + view.Cut(view.OneLine(string(line)), 120)}})
	}
	return p, nil
}

func (p *place) close() { p.store.Close() }

// rootAbove finds the main worktree's root without asking git: the plain case of a repository that has a team's state
// already. Everything else, and every refusal, is git's to say.
func rootAbove(dir string) (root string, ok bool) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", false
	}
	for ; ; dir = filepath.Dir(dir) {
		st, err := os.Lstat(filepath.Join(dir, ".git"))
		if err == nil {
			return dir, st.IsDir() && hasState(paths.Dir(dir)) && isFile(filepath.Join(dir, ".git", "HEAD"))
		}
		if filepath.Dir(dir) == dir {
			return "", false
		}
	}
}

// hasState reports whether a team or a board is here.
func hasState(d paths.Dir) bool {
	for _, dir := range []string{d.Team(), d.Tasks()} {
		if _, err := os.Stat(dir); err == nil {
			return true
		}
	}
	return false
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

// nobody is the answer of every command that only looks, where there is nothing to look at.
var nobody = muster.Errorf(muster.NotFound, "no team here yet").WithHint(`muster run "GOAL"`)

// lazy is how much memory a command that only looks may take before its garbage is collected as usual.
// The program and what the system counts besides come to it: together they stay under 200 MB on a board of 100,000 tasks.
const lazy = 144 << 20

// look opens the repository for a command that only reads and creates nothing. The error is nobody where there is no
// team yet.
func (a *App) look(ctx context.Context) (*place, error) {
	if a.brief { // a third of the time of a long list was the collector's
		debug.SetGCPercent(400)
		debug.SetMemoryLimit(lazy)
	}
	p, err := a.open(ctx)
	if err != nil {
		return nil, err
	}
	if !hasState(p.home) {
		p.close()
		return nil, nobody
	}
	return p, nil
}

// change opens the repository for a command that changes the team's state: refused under a tool of this very team.
func (a *App) change(ctx context.Context) (*place, error) {
	p, err := a.open(ctx)
	if err != nil {
		return nil, err
	}
	err = p.refuseUnder(ctx)
	if err == nil {
		err = p.refuseHalf()
	}
	if err == nil {
		err = p.exclude(ctx)
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// revoke takes a task from its owner. Its right to land goes first: a landing that is already done stays done.
func (p *place) revoke(ctx context.Context, id muster.TaskID, reason string) (muster.Task, error) {
	t, err := p.theBoard().Get(ctx, id)
	if err != nil {
		return t, err
	}
	if t.Worktree != "" && t.Claimed() {
		if err := p.revokeLanding(ctx, t); err != nil {
			return t, err
		}
	}
	return p.theBoard().Revoke(ctx, id, muster.User, reason)
}

// revokeLanding takes from a claim its right to land.
func (p *place) revokeLanding(ctx context.Context, t muster.Task) error {
	lanes, err := p.theLanes(ctx)
	if err != nil {
		return err
	}
	run, err := p.run(ctx)
	if err != nil {
		return err
	}
	l := landing.New(p.repo, lanes, p.theBoard(), p.journal, nil, landing.Options{Target: "refs/heads/" + run.Target})
	return l.Revoke(ctx, t.ID, t.Fence)
}

// exclude keeps the state out of the user's commits.
func (p *place) exclude(ctx context.Context) error {
	data, _ := os.ReadFile(filepath.Join(string(p.home), ".git", "info", "exclude"))
	missing := false
	for _, pattern := range paths.Excluded {
		missing = missing || !strings.Contains("\n"+string(data)+"\n", "\n"+pattern+"\n")
	}
	if !missing {
		return nil
	}
	repo, err := p.gitRepo(ctx)
	if err != nil {
		return err
	}
	return repo.Exclude(ctx, paths.Excluded)
}

// gitRepo is the repository as git has it.
func (p *place) gitRepo(ctx context.Context) (*git.Repo, error) {
	if p.repo == nil {
		repo, err := git.Open(ctx, string(p.home))
		if err != nil {
			return nil, err
		}
		p.repo = repo
	}
	return p.repo, nil
}

// run is the run's record, zero when there was none.
func (p *place) run(ctx context.Context) (r muster.Run, err error) {
	doc, err := p.store.Table(muster.TableTeam).Get(ctx, "run")
	if errors.Is(err, muster.ErrNotFound) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(doc.Data, &r)
	}
	if err != nil {
		return r, muster.Errorf(muster.Corrupt, "the run's record cannot be read: %w", err).WithHint("muster doctor")
	}
	return r, nil
}

// team is the team's name: the last run's, else the directory's.
func (p *place) team(ctx context.Context) muster.Name {
	if r, err := p.run(ctx); err == nil && r.Team != "" {
		return r.Team
	}
	return muster.FitName(filepath.Base(string(p.home)), "team")
}

func (p *place) theBoard() *board.Board {
	if p.board == nil {
		p.board = board.New(p.store, p.journal)
	}
	return p.board
}

func (p *place) theRoster(ctx context.Context) *roster.Roster {
	if p.roster == nil {
		p.roster = roster.New(p.store, p.journal, p.team(ctx))
	}
	return p.roster
}

func (p *place) thePost(ctx context.Context) *mailbox.Mail {
	if p.post == nil {
		p.post = mailbox.New(p.store, p.journal, p.theRoster(ctx).Known)
	}
	return p.post
}

func (p *place) theRequests(ctx context.Context) *requests.Requests {
	if p.requests == nil {
		p.requests = requests.New(p.store, p.thePost(ctx), p.journal)
	}
	return p.requests
}

func (p *place) theLanes(ctx context.Context) (*worktree.Lanes, error) {
	if p.lanes != nil {
		return p.lanes, nil
	}
	repo, err := p.gitRepo(ctx)
	if err != nil {
		return nil, err
	}
	set, err := p.app.settings(string(p.home), nil)
	if err != nil {
		return nil, err
	}
	p.lanes, err = worktree.Open(repo, durable.New(durable.OS{}), p.home, p.journal, p.store.Log(), worktree.Options{Dir: set.WorktreesDir, Inbox: p.store.Inbox(), Base: p.laneBase(ctx, repo)})
	return p.lanes, err
}

// laneBase is what a lane made by hand starts from: the target's tip, and HEAD while there is no target.
func (p *place) laneBase(ctx context.Context, repo *git.Repo) string {
	run, err := p.run(ctx)
	if err != nil || run.Target == "" {
		return ""
	}
	ref := "refs/heads/" + run.Target
	if at, err := repo.Ref(ctx, ref); err != nil || at == "" {
		return ""
	}
	return ref
}

// settling is the board of a command that ends tasks: what follows is told to the lead, and the lane archived, before
// the command returns.
func (p *place) settling(ctx context.Context) (*board.Board, error) {
	lanes, err := p.theLanes(ctx)
	if err != nil {
		return nil, err
	}
	b := p.theBoard()
	outbox.Register(b, p.thePost(ctx), lanes)
	return b, nil
}
