package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"muster"
	"muster/internal/chat"
	"muster/internal/git"
	"muster/internal/terminal"
	"muster/internal/view"
	"muster/team"
)

// talk is the bare muster: a conversation with the lead. On a terminal it has a line editor and a line for each member;
// otherwise each line of standard input is a message.
func (a *App) talk(c *cobra.Command, _ []string) error {
	if a.json {
		return &usageError{"muster", `the conversation is for people; for programs: muster run --json "GOAL"`}
	}
	piped := bufio.NewReader(a.Stdin)
	if _, err := a.terminalIn(); err != nil {
		switch some, err := hasInput(c.Context(), piped); {
		case err != nil:
			return err
		case !some:
			return c.Help() // nobody is there, and nothing is said
		}
	}
	p, err := a.change(c.Context())
	if err != nil {
		return err
	}
	defer p.close()
	t := &conversation{app: a, place: p, piped: piped, flags: given(c.Flags())}
	return t.run(c.Context())
}

// hasInput waits for the first byte of a pipe, or for its end, and reports whether there is a byte. When ctx ends
// first, it returns its cause; the program ends then, so that the read that still waits does no harm.
func hasInput(ctx context.Context, piped *bufio.Reader) (bool, error) {
	read := make(chan error, 1)
	go func() {
		_, err := piped.Peek(1)
		read <- err
	}()
	select {
	case err := <-read:
		return err == nil, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// conversation is a session, and the run behind it.
type conversation struct {
	app   *App
	place *place
	piped io.Reader
	flags map[string]string

	terminal *terminal.Terminal // nil: a pipe
	face     chat.Face
	shown    *shown
	from     muster.Pos // where the events begin that concern it
	bare     bool       // what goes on here is a run that stopped with no task open
	talk     *team.Conversation
	stop     context.CancelCauseFunc
	job      Job
	sum      team.Summary
	err      error
}

func (c *conversation) run(ctx context.Context) error {
	p := c.place
	p.theBoard() // the terminal's own goroutines ask for what is in the rooms
	p.theRequests(ctx)
	elsewhere, err := p.leadLives(ctx)
	if err != nil {
		return err
	}
	open, stopped, err := p.left(ctx)
	if err != nil {
		return err
	}
	run, err := p.run(ctx)
	if err != nil {
		return err
	}
	if _, err := c.app.terminalIn(); err == nil { // a pipe's words begin a run of their own there, as muster run's do
		c.bare = !stopped && run.StartedAt > 0 && run.EndedAt == 0
		stopped = stopped || c.bare
	}
	if c.from, err = p.journal.Tail(ctx, 0); err != nil {
		return err
	}
	if !elsewhere { // what cannot start is said before anything is typed
		if _, err := c.prepare(ctx, stopped, "-"); err != nil {
			return err
		}
	}
	ctx, c.stop = context.WithCancelCause(git.With(ctx, p.repo)) // as the user stands in it
	defer c.stop(nil)
	if err := c.open(ctx); err != nil {
		return err
	}
	if c.terminal == nil && stopped && !elsewhere {
		return team.RefuseStopped(open)
	}
	s := &chat.Session{Face: c.face, Teller: c.shown, Events: c.events, Mail: c.mail, Command: c.command, OnLine: c.typed(),
		WaitForLead: c.terminal == nil, Stopped: stopped, Remote: elsewhere, HasBegun: elsewhere, Now: c.app.Now}
	if elsewhere {
		remote := chat.Attach(ctx, p.store, p.thePost(ctx), c.face, func() bool { return !p.over(ctx) })
		defer remote.Detach()
		s.Lead, s.Over, s.WaitForLead = remote, remote.Over(), false
		c.face.Print("a team is at work here, in another process: what you type is mail to its lead, and it goes on when you leave")
	} else {
		c.talk = team.NewConversation()
		s.Lead = local{c}
		s.Begin = func(words string) <-chan struct{} { return c.begin(ctx, s.Stopped, words) }
		if c.terminal != nil {
			c.face.Print(chat.Welcome(leftLines(run, open, stopped)))
		}
	}
	how, err := s.Run(ctx)
	return c.end(ctx, s, how, err)
}

// terminalIn is standard input where it is a terminal.
func (a *App) terminalIn() (*os.File, error) {
	if f, ok := a.Stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f, nil
	}
	return nil, terminal.ErrNoTerminal
}

// open opens the terminal, or the pipe.
func (c *conversation) open(ctx context.Context) error {
	a := c.app
	pt, _ := a.screen(a.Stdout)
	in, noIn := a.terminalIn()
	if out, ok := a.Stdout.(*os.File); ok && noIn == nil {
		names := chat.Names{Members: func() []string { return c.place.names(ctx) }, Requests: func() []string { return c.place.pending(ctx) }}
		c.shown = newShown(c, pt) // before its rows are asked for
		var err error
		c.terminal, err = terminal.Open(ctx, terminal.Options{In: in, Out: out, Prompt: "> ", History: c.history().Lines(),
			Complete: names.Complete, Status: func(width int) []string { return c.shown.rows(width) }, Colour: bool(pt)})
		if err == nil {
			c.face = c.terminal
			return nil
		}
		if !errors.Is(err, terminal.ErrNoTerminal) {
			return err
		}
	}
	pt, _ = a.screen(a.Stderr)
	c.face, c.shown = chat.NewPipe(c.piped, a.Stdout, a.Stderr), newShown(c, pt)
	return nil
}

// begin starts the run, or goes on with the one that stopped. The channel is closed when it is over.
func (c *conversation) begin(ctx context.Context, stopped bool, words string) <-chan struct{} {
	unattended()
	over := make(chan struct{})
	j, err := c.prepare(ctx, stopped, words)
	if err == nil && j.Resume && words != "" {
		_, err = c.place.thePost(ctx).Send(ctx, muster.Message{Type: muster.MailMessage, From: muster.User, To: muster.Lead, Content: words})
	}
	if err != nil {
		c.err = err
		close(over)
		return over
	}
	speech := &chat.Speech{Face: c.face}
	j.Conversation, j.Emit = c.talk, func(member muster.Name, v any) {
		if e, ok := v.(muster.Event); ok {
			c.shown.Event(e) // the journal could not take it
		} else {
			speech.Emit(member, v)
		}
	}
	go func() {
		defer close(over)
		c.sum, c.err = c.app.Start(ctx, j)
	}()
	c.job = j
	return over
}

// prepare is the job that the first words make.
func (c *conversation) prepare(ctx context.Context, stopped bool, words string) (Job, error) {
	a, p := c.app, c.place
	j := Job{Dir: string(p.home), Store: p.store, Goal: words, Resume: stopped && (words == "" || c.bare), How: team.Start{Add: stopped}}
	var err error
	if j.Settings, err = a.settings(j.Dir, c.flags); err != nil {
		return j, err
	}
	if stopped {
		run, err := p.run(ctx)
		if err != nil {
			return j, err
		}
		if err := goOn(run, c.flags, &j.Settings); err != nil {
			return j, err
		}
	}
	_, err = a.model(j.Settings.Model, j.Settings)
	return j, err
}

// end ends what goes on, leaves the terminal, and says what is left. err is the session's: muster.CauseUser where a
// signal has ended it, which makes the exit code that of an interruption.
func (c *conversation) end(ctx context.Context, s *chat.Session, how chat.Outcome, err error) error {
	a := c.app
	interrupted := how == chat.Interrupted || errors.Is(err, muster.CauseUser)
	if how == chat.UserLeft || how == chat.Interrupted {
		if _, done := s.Lead.Resting(); done { // nothing is open: it is over
			s.Lead.Close()
			how = chat.RunEnded
		} else {
			c.stop(muster.CauseUser)
		}
		if !s.Remote {
			<-s.Over
		}
	}
	if c.terminal != nil {
		_ = c.terminal.Close()
	}
	c.shown.close()
	late := context.WithoutCancel(ctx)
	switch {
	case err != nil && !errors.Is(err, muster.CauseUser):
		return err
	case how == chat.NotBegun:
		return err // nothing was begun; nil where no signal has ended it
	case s.Remote && how == chat.RunEnded:
		return c.gone(late)
	case s.Remote:
		explain(a.Stderr, "the team works on", "come back: muster   watch it: muster log -f")
		return err // nil where no signal has ended it
	case c.err != nil && !errors.Is(c.err, muster.CauseUser):
		return c.err
	case how == chat.RunEnded && c.err == nil:
		if !c.landed() { // all was said already
			return status(c.sum.Code)
		}
		return a.conclude(late, c.place, c.job, c.sum)
	}
	open, _, err := c.place.left(late)
	if err != nil {
		return err
	}
	hint := "go on: muster"
	if c.terminal == nil { // a pipe cannot be asked what to do with a team that stopped
		hint = "go on: muster resume"
	}
	explain(a.Stderr, "the state is kept; "+areOpen(open), hint)
	if interrupted {
		return status(exitInterrupted)
	}
	return status(exitLeft)
}

// gone says what has become of a team in another process when that process is gone.
func (c *conversation) gone(ctx context.Context) error {
	run, err := c.place.run(ctx)
	if err != nil {
		return err
	}
	if run.EndedAt != 0 {
		explain(c.app.Stderr, "the team has ended", "see: muster status   go on: muster")
		return nil
	}
	open, _, err := c.place.left(ctx)
	if err != nil {
		return err
	}
	explain(c.app.Stderr, "the team's process has died or was stopped; "+areOpen(open), "go on: muster   or: muster resume")
	return status(exitLeft)
}

func areOpen(tasks []muster.Task) string {
	return view.Count(len(tasks), "task") + map[bool]string{true: " is open", false: " are open"}[len(tasks) == 1]
}

// landed reports whether the run had any task.
func (c *conversation) landed() bool {
	for _, t := range c.sum.Tasks {
		if c.sum.Run.Has(t) {
			return true
		}
	}
	return false
}

// local is a lead that lives in this process.
type local struct{ *conversation }

func (l local) Say(ctx context.Context, text string) error { return l.talk.Say(ctx, text) }
func (l local) Interrupt() bool                            { return l.talk.Interrupt() }
func (l local) Close()                                     { l.talk.Close() }
func (l local) Resting() (resting, done bool)              { return l.talk.Resting() }
func (l local) Changed() <-chan struct{}                   { return l.talk.Changed() }

// leadLives reports whether a lead lives in another process.
func (p *place) leadLives(ctx context.Context) (bool, error) {
	members, err := p.members(ctx)
	for _, m := range members {
		if m.Name == muster.Lead {
			return m.alive && m.Status != muster.Shutdown, err
		}
	}
	return false, err
}

// over reports whether the lead of another process is gone, and the process has said all that it had to say: how a run ended
// is written after its lead has shut down, while the lease is still held.
func (p *place) over(ctx context.Context) bool {
	if alive, err := p.leadLives(ctx); alive || err != nil {
		return false
	}
	held, err := p.store.Leases().Held(ctx, team.LeadLease)
	return !held && err == nil
}

// left are the open tasks, and whether they are those of a run that stopped.
func (p *place) left(ctx context.Context) (open []muster.Task, stopped bool, err error) {
	run, err := p.run(ctx)
	if err != nil {
		return nil, false, err
	}
	tasks, err := p.theBoard().List(ctx)
	open, stopped = run.Left(tasks)
	return open, stopped, err
}
