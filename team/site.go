package team

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"syscall"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/clock"
	"muster/internal/delivery"
	"muster/internal/detect"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/hooks"
	"muster/internal/instructions"
	"muster/internal/landing"
	"muster/internal/localfiles"
	"muster/internal/mailbox"
	"muster/internal/paths"
	"muster/internal/ports"
	"muster/internal/proc"
	"muster/internal/redact"
	"muster/internal/requests"
	"muster/internal/roster"
	"muster/internal/setup"
	"muster/internal/teammate"
	"muster/internal/text"
	"muster/internal/workspace"
	"muster/internal/worktree"
	"muster/journal"
	"muster/llm"
)

// site is what a process works with in the repository of a team. The API, the run, the host of members and the
// operations of people are given one; it knows none of them. That of a Team has neither lanes and lander nor what
// follows them below: forRun returns one that has.
type site struct {
	config     Config // the team's, with the name, the check and the set-up of the run
	branch     string // the target, without refs/heads/
	into       string // the user's branch that is moved forward to the target at the end; "": none
	repository repository
	workspace  *workspace.Workspace
	secrets    *redact.Secrets // nil: there are none
	local      *localfiles.Set // the files of the user's that lanes and checks get; nil: none
	texts      *instructions.Files
	log        *slog.Logger // never nil
	listeners  *subscribers
	helper     *gitHelper
	trust      workspace.Trust // what the user has said about the repository
	launch     func(context.Context) (proc.Launcher, error)

	// The services of the workspace.
	runs     *workspace.Runs
	journal  *journal.Journal
	board    *board.Board
	roster   *roster.Roster
	post     *mailbox.Mail
	requests *requests.Requests
	lanes    teammate.Lanes
	lander   teammate.Lander
	hooks    *hooks.Runner // nil: there are none
	setups   *setup.Store  // nil: there is no git
	environ  []string      // of the programs that are started for the team
}

// forRun opens what a run, or a landing without a run, works with. The name and the target of last hold, and its check
// and set-up where the configuration has none. The zero Run stands for a run that begins.
func (s site) forRun(ctx context.Context, last muster.Run) (*site, error) {
	opened, c := s.workspace, &s.config
	s.branch = cmp.Or(last.Target, s.branch)
	var err error
	if s.repository, err = s.openRepository(ctx); err != nil {
		return nil, err
	}
	if err := s.chooseTarget(ctx, last); err != nil {
		return nil, err
	}
	if _, isGit := s.repository.(gitRepository); isGit {
		if s.local, err = s.trust.LocalFiles(ctx); err != nil {
			return nil, err
		}
		s.secrets = s.secrets.With(s.local.Keys()...)
	}
	// The record of the run is a claim: work lands on no branch that only the record names.
	if last.Target != "" {
		if err := workspace.ConfirmTarget(ctx, opened, cmp.Or(last.Team, c.Name), last.Target, c.Land); err != nil {
			return nil, err
		}
	}
	// The name belongs to the state that is there already; check and set-up may be mended by whoever goes on.
	c.Name, c.Setup = cmp.Or(last.Team, c.Name), cmp.Or(c.Setup, last.Setup)
	c.Directory = cmp.Or(c.Directory, last.Directory)
	if c.Check == "" {
		c.Check, c.Checks = last.Check, last.Checks
	}
	c.Review, c.Budgets.Team = cmp.Or(c.Review, last.Review), cmp.Or(c.Budgets.Team, last.Budget)
	root := s.repository.Root()
	all, errHooks := s.trust.Hooks(c.Home)
	if err := cmp.Or(c.checkBudgets(), errHooks, c.checkReviewer(paths.Dir(root))); err != nil {
		return nil, err
	}
	s.hooks, s.environ = hooks.NewRunner(all, root, s.secrets), c.environ()
	if g, isGit := s.repository.(gitRepository); isGit {
		s.setups = setup.Open(g.Repo, c.CacheDir, s.log)
	}
	w, err := opened.ForRun(workspace.RunOptions{Name: c.Name, Target: s.branch, WorktreesDir: c.WorktreesDir,
		Ports: ports.Open(c.CacheDir), PortCount: c.Ports, Landing: s.landingOptions(), Secrets: s.secrets, Log: s.log})
	if err != nil {
		return nil, err
	}
	if s.lanes, s.lander, err = s.repository.OpenLanes(ctx, w); err != nil {
		return nil, err
	}
	s.workspace, s.texts = w, &instructions.Files{Root: string(w.Paths()), Home: c.Home, Config: c.UserDir,
		Directory: c.Directory}
	s.runs, s.journal, s.board, s.roster = w.Runs(), w.Journal(), w.Board(), w.Roster(ctx)
	s.post, s.requests = w.Mail(ctx), w.Requests(ctx)
	for _, note := range slices.Concat(s.local.Left(), hooks.Warnings(all), s.trust.PermissionNotes()) {
		s.note(ctx, "", note)
	}
	return &s, nil
}

// openRepository returns the repository. Only tests have another than the one of the workspace.
func (s *site) openRepository(ctx context.Context) (repository, error) {
	if s.repository != nil {
		return s.repository, nil
	}
	repo, err := s.workspace.Repo(ctx)
	return gitRepository{repo, &firstCheckout{}}, err
}

func (s *site) landingOptions() landing.Options {
	c := &s.config
	o := c.checkOptions()
	o.Environ, o.Secrets, o.Setups, o.Hook = c.checkEnviron(), s.secrets, s.setups, s.landingHook()
	o.Local = s.local
	o.Landing = c.Landing
	o.Jobs = cmp.Or(c.Jobs, landing.DefaultJobs())
	o.OnTest = func(id muster.TaskID, test string) {
		e := CheckEvent{Task: id, Test: s.secrets.String(test)}
		s.publish(e, muster.System, e)
	}
	return o
}

// copyLocalFiles copies the files of the user's that .worktreeinclude names into a lane in which no command runs, and
// says to its owner which these are.
func (s *site) copyLocalFiles(ctx context.Context, lane muster.Lane) string {
	lanes, isGit := s.lanes.(*worktree.Lanes)
	names := s.local.Names()
	if !isGit || len(names) == 0 {
		return ""
	}
	err := lanes.SetLocal(ctx, lane.Name, names)
	if err == nil {
		_, err = s.local.Put(lane.Path)
	}
	logDropped(ctx, s.log, "copying local files into a lane", err)
	return "Copied here from the user's checkout, and never to be committed: " + text.List(names, 5)
}

// landingHook returns what asks the hooks whether a merged tree may land, and nil where there are none for that.
func (s *site) landingHook() func(ctx context.Context, t muster.Task, dir string, env []string) (string, error) {
	if !s.hooks.Has(hooks.Landing) {
		return nil
	}
	return func(ctx context.Context, t muster.Task, dir string, env []string) (string, error) {
		o, err := s.hooks.Run(ctx, hooks.Moment{Event: hooks.Landing, Dir: dir, Env: env, Member: t.Owner,
			Team: s.config.Name, Task: t.ID,
			Fields: map[string]any{"task_subject": t.Subject, "task_description": t.Description}})
		return o.Reason, err
	}
}

// chooseTarget lets a run land on the team's own branch if the user has the branch that they have named checked out
// where they stand: a landing must not change files under their hands. At the end the branch is moved forward to the
// target. A checkout with uncommitted changes is refused here, before anything is written.
func (s *site) chooseTarget(ctx context.Context, last muster.Run) error {
	r, isGit := s.repository.(gitRepository)
	if s.into = last.Into; !isGit || s.into != "" {
		if s.into != "" {
			// The record is a claim: no branch is moved that only the record names.
			return workspace.ConfirmTarget(ctx, s.workspace, "", s.into, "")
		}
		return nil
	}
	land := s.config.Land
	if land == "" || last.Target != "" {
		return nil
	}
	path, err := r.CheckedOut(ctx, "refs/heads/"+land)
	if err != nil || path != r.Here() {
		return err // what is checked out elsewhere is refused with the other branches on which nothing can land
	}
	// The team's own branch starts at HEAD, which is where the user's branch is: so it can be moved forward afterwards.
	own := "muster/" + string(s.config.Name)
	if land == own {
		return nil
	}
	if _, err := delivery.OpenClean(ctx, r.Repo, land, own); err != nil {
		return err
	}
	s.into, s.branch, s.config.Land = land, own, ""
	return nil
}

func (s *site) target() string { return "refs/heads/" + s.branch }

// note tells the user something about the run, or about a member; "" is none.
func (s *site) note(ctx context.Context, member muster.Name, text string) {
	s.emit(ctx, journal.RunNote, member, map[string]any{"text": text})
}

// maxLeftOut is how many lines a run begins with about what members do not read.
const maxLeftOut = 8

// noteLeftOut tells the user which instructions and skills no member reads.
func (s *site) noteLeftOut(ctx context.Context) {
	var lines []string
	for _, line := range s.texts.News(s.texts.Read().Left) {
		lines = append(lines, "instructions: "+line)
	}
	for _, skill := range s.config.skills(s.workspace.Paths()) {
		if skill.Problem != "" && !skill.IsSecond {
			lines = append(lines, fmt.Sprintf("skills: %s is not used: %s", skill.Place, skill.Problem))
		}
	}
	for _, line := range lines[:min(len(lines), maxLeftOut)] {
		s.note(ctx, "", line)
	}
	if n := len(lines) - maxLeftOut; n > 0 {
		s.note(ctx, "", fmt.Sprintf("%d more instructions or skills are not read", n))
	}
}

// emit writes an event to the journal. A journal that cannot be written stops nobody, because nothing depends on it:
// the event then goes to those who listen in this process.
func (s *site) emit(ctx context.Context, kind string, member muster.Name, fields map[string]any) {
	e := muster.Event{Kind: kind, Member: member, Fields: fields, At: muster.UnixTime(time.Now())}
	// An event tells what has been done already, so it is written also when ctx has ended.
	if s.journal.Emit(context.WithoutCancel(ctx), e) != nil {
		s.publish(StateEvent{journal.Entry{Event: e}}, member, e)
	}
}

// publish gives what happens while it happens to the listeners of this process, and as v to Config.Emit.
func (s *site) publish(e Event, member muster.Name, v any) {
	s.listeners.publish(e)
	if s.config.Emit != nil {
		s.config.Emit(member, v)
	}
}

// wait waits for d; false: ctx has ended before.
func wait(ctx context.Context, d time.Duration) bool { return clock.Sleep(ctx, d) == nil }

// settle does what steps have left to follow. What cannot be done now is said and left for the next time: news that is
// late, or a lane that is not archived, is no reason to stop a team.
func (s *site) settle(ctx context.Context) error {
	err := s.board.Settle(ctx)
	if err == nil || !board.OnlyUnsettled(err) {
		return err
	}
	logDropped(ctx, s.log, "settling what steps have left", err)
	s.note(ctx, "", "left for later: "+muster.PlainText(err))
	return nil
}

func propose(ctx context.Context, w *workspace.Workspace) (detect.Proposal, error) {
	repo, err := w.Repo(ctx)
	if err != nil {
		return detect.Proposal{}, err
	}
	head, err := repo.Head(ctx)
	if err != nil {
		return detect.Proposal{}, err
	}
	return setup.Propose(ctx, repo, head)
}

// logDropped logs an error that stops nobody: whoever comes by does again what has failed. An error that only says that
// ctx has ended is not worth a line.
func logDropped(ctx context.Context, log *slog.Logger, what string, err error) {
	if err == nil || context.Cause(ctx) != nil && errors.Is(err, context.Cause(ctx)) {
		return
	}
	log.WarnContext(ctx, "error dropped", "what", what, "err", causeText(err))
}

// causeText returns an error as the log has it. Of a model's error that is its kind and status: the provider's words
// may quote the request.
func causeText(err error) string {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return slog.GroupValue(slog.String("kind", string(e.Kind)), slog.Int("status", e.Status)).String()
	}
	if err == nil {
		return ""
	}
	return err.Error()
}

// A member restarts up to maxRestarts times after transient failures, with a pause of one, two and four seconds
// before it. healthyTime without a failure resets a member's count. While the disk is full there is no limit, and
// the longest pause is maxPause: each try may cost a request.
const (
	maxRestarts = 3
	healthyTime = 5 * time.Minute
	maxPause    = time.Minute
)

// isTransient reports whether a retry is worthwhile, because something outside failed: a file could not be written, or
// git was killed.
func isTransient(err error) bool {
	if errors.Is(err, durable.ErrEnded) { // this process can write nothing any more
		return false
	}
	_, isGit := errors.AsType[*git.ExitError](err)
	return isGit || errors.Is(err, muster.ErrUnavailable)
}

// isDiskFull reports whether the disk is full, which only the user can change.
func isDiskFull(err error) bool {
	// Git writes files of its own, and tells of a full disk in words only.
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return true
	}
	e, isGit := errors.AsType[*git.ExitError](err)
	return isGit && strings.Contains(strings.ToLower(e.Stderr), syscall.ENOSPC.Error())
}

// runWithRestarts calls run until it succeeds, fails for a lasting cause, or has failed too often. what is the subject
// of the notes that tell the user each failure, but a full disk only once. member is who runs; "" is nobody. A member
// that is shut down during a pause ends with its own error, so that its claims are released.
func (s *site) runWithRestarts(ctx context.Context, what string, member muster.Name, run func() error) error {
	tries, pause, isFullReported := 0, time.Second, false
	for {
		began := time.Now()
		err := run()
		// What failed after so long is a new failure, and not the same one again.
		if member != "" && time.Since(began) >= healthyTime {
			tries, pause, isFullReported = 0, time.Second, false
		}
		if err == nil || ctx.Err() != nil || !isTransient(err) {
			return err
		}
		isFull, when := isDiskFull(err), "when there is room"
		if !isFull {
			when = "after an error"
			if tries++; tries > maxRestarts {
				return err
			}
		}
		s.log.Warn("restart", "what", what, "cause", causeText(err), "wait", pause)
		if !isFull || !isFullReported {
			s.note(ctx, member, what+" goes on "+when+": "+mailbox.Short(muster.PlainText(err)))
		}
		isFullReported = isFullReported || isFull
		if !wait(ctx, pause) {
			// Whoever is shut down while it waits has claims that nobody else gives back: its caller tells that by
			// the error.
			if errors.Is(context.Cause(ctx), muster.CauseShutdown) {
				return err
			}
			return context.Cause(ctx)
		}
		pause = min(2*pause, maxPause)
	}
}
