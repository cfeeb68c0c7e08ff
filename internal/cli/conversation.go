package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"muster"
	"muster/internal/chat"
	"muster/internal/config"
	"muster/internal/terminal"
	"muster/internal/text"
	"muster/internal/view"
	"muster/team"
)

// converse is the bare muster: a conversation with the lead. On a terminal it has a line editor and a line for each
// member. Otherwise each line of standard input is a message. Where nobody types and the pipe is empty it prints
// the help, so that a script that calls the program without arguments does not start a team.
func (a *App) converse(c *cobra.Command, args []string) error {
	if isAsked, _ := c.Flags().GetBool("version"); isAsked {
		return newVersionCommand(a).RunE(c, args)
	}
	if a.json {
		return &usageError{"muster", `the conversation is for people; for programs: muster run --json "GOAL"`}
	}
	piped := bufio.NewReader(a.Stdin)
	if a.terminalIn() == nil {
		// A pipe that stays empty must not open the workspace, because that would write to the repository.
		switch some, err := hasInput(c.Context(), piped); {
		case err != nil:
			return err
		case !some:
			return c.Help() // nobody is there, and nothing is said
		}
	}
	if a.terminalIn() != nil {
		if isDone, err := inForeground(a); isDone {
			return err
		}
	}
	o, err := a.change(c.Context())
	if err != nil {
		return err
	}
	defer o.close()
	t := &conversation{app: a, opened: o, piped: piped, flags: setFlags(c.Flags()), first: strings.Join(args, " ")}
	if t.changes, err = givenChanges(c.Flags(), c.CommandPath()); err != nil {
		return err
	}
	t.goesOn, _ = c.Flags().GetBool("continue")
	return t.run(c.Context())
}

// terminalIn returns standard input where it is a terminal, and nil otherwise. The editor of lines needs the file
// itself, so a reader that wraps a terminal does not count as one.
func (a *App) terminalIn() *os.File {
	if f, ok := a.Stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// hasInput waits for the first byte of a pipe, or for its end, and reports whether there is a byte. When ctx ends
// first, it returns its cause; the program ends then, so the read that still waits does no harm. It peeks, so the
// byte is still there for the conversation.
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

// conversation is a session with the lead, and the run behind it. It lives from the first prompt until the summary.
// Where the lead lives in another process, the conversation only writes mail to it and shows events, and there is
// no run of its own.
type conversation struct {
	app *App
	opened
	piped io.Reader
	flags map[string]string
	// first is said as if the user had typed it, and goesOn resumes at once what has stopped here.
	first   string
	goesOn  bool
	changes team.Changes // what becomes of the user's uncommitted changes in a run that begins
	// settings are those that the run would have, as they were when the conversation was opened.
	settings config.Settings

	terminal  *terminal.Terminal // nil: a pipe
	face      chat.Face
	progress  *view.Progress // what happens in the team, as lines above the prompt and a line for each member below
	paint     view.Paint     // of the progress
	commands  func() []chat.Command
	hasTitle  bool // the title of the window tells how the run stands
	isStopped bool // a run has stopped here, which can go on
	isNew     bool // no run has stopped here, and none goes on in another process
	hasNoTask bool // what goes on here is a run that stopped with no task open
	talk      *team.Conversation
	stop      context.CancelCauseFunc
	job       Job
	running   atomic.Pointer[team.Team] // that of the run in this process; nil: none has begun
	sum       team.Summary
	err       error // of the run
}

// run opens the conversation, and returns when the user or the run has ended it. First it finds out which of three
// cases holds: a lead lives in another process, a run has stopped here, or nothing has begun.
func (c *conversation) run(ctx context.Context) error {
	c.commands = sync.OnceValue(func() []chat.Command { return slashCommands(c.app) }) //nolint:contextcheck // Listed.
	ctx, c.stop = context.WithCancelCause(ctx)
	defer c.stop(nil)
	// A lead in another process owns the run, and this process must not start a second one.
	isRemote, err := c.Members().IsLeadAlive(ctx)
	if err != nil {
		return err
	}
	if c.isStopped, err = c.hasStopped(ctx); err == nil && !isRemote {
		err = c.checkStart(ctx, c.isStopped) // what cannot start is reported before anything is typed
	}
	c.isNew = !isRemote && !c.isStopped
	if err != nil {
		return err
	}
	// From here on the line editor controls the terminal, so everything is printed with c.face.
	if err := c.openFace(ctx); err != nil {
		return err
	}
	s, detach, err := c.openSession(ctx, isRemote)
	if err != nil {
		c.closeFace()
		return err
	}
	defer detach()
	defer c.addInput(s)()
	// The session returns when the user leaves, when the run is over, or when ctx ends.
	how, err := s.Run(ctx)
	return c.end(ctx, s, how, err)
}

// hasStopped reports whether a stopped run can go on here. On a terminal that is also one that stopped with no task
// open; what comes from a pipe begins a run of its own there, as muster run does. The board, which takes its time where
// tasks are many, is read only where the record of the run does not say enough.
func (c *conversation) hasStopped(ctx context.Context) (bool, error) {
	isTerminal := c.app.terminalIn() != nil
	if run, err := c.LastRun(ctx); err != nil || isTerminal && run.EndedAt == 0 {
		return run.StartedAt > 0, err
	}
	state, err := c.RunState(ctx)
	return state.IsStopped, err
}

// openSession returns the session, connected to the lead in another process or to one that the first words start. It
// shows the user where the conversation takes place, and what is open. The prompt stands by now, so it may read much.
func (c *conversation) openSession(
	ctx context.Context, isRemote bool,
) (s *chat.Session, detach func(), err error) {
	state, err := c.RunState(ctx)
	// A pipe cannot choose between going on and beginning anew, so the user must say it with a command.
	if err == nil && c.terminal == nil && c.isStopped && !isRemote && !c.goesOn {
		err = state.Err()
	}
	if err != nil {
		return nil, nil, err
	}
	c.hasNoTask = c.isStopped && !state.IsStopped
	s = c.newSession(ctx)
	s.Stopped, s.Remote, s.HasBegun = c.isStopped, isRemote, isRemote
	if isRemote {
		remote, err := c.attachTo(ctx, s, state.Run)
		if err != nil {
			return nil, nil, err
		}
		return s, remote.Detach, nil
	}
	// The run starts with the first words, so nothing is written for a user who only looks around.
	c.talk = team.NewConversation()
	s.Lead = c.talk
	s.Begin = func(words string) <-chan struct{} { return c.begin(ctx, s.Stopped, words) }
	if c.terminal != nil {
		c.welcome(ctx, s, state)
	}
	return s, func() {}, nil
}

// closeFace gives the terminal back.
func (c *conversation) closeFace() {
	if c.terminal != nil {
		_ = c.terminal.Close() // there is nothing to do when the terminal cannot be restored
	}
	c.progress.Close() // after the terminal, so that the last lines are not drawn over
}

// welcome shows a user who opens a conversation where that takes place and, to one who comes back, what was said and
// what is open.
func (c *conversation) welcome(ctx context.Context, s *chat.Session, state team.RunState) {
	lines := openingLines(ctx, c)
	if state.Run.StartedAt > 0 { // the user has read the rest before
		lines = lines[:2]
	} else {
		s.Teller = withoutRights{s.Teller}
	}
	// The terminal would wrap a long line to the first column, among the names of the lines.
	width, _ := view.TerminalWidth(c.app.Stdout)
	all := view.Hang(strings.Join(lines, "\n"), len("rights  "), width-1)
	c.face.Print("\n" + paintLabels(c.paint, all))
	if state.Run.StartedAt > 0 {
		c.recall(ctx, state.Run, false)
	}
	if s.Stopped {
		c.face.Print("\n" + view.Hang(stoppedHere(state, len(usersRequests(ctx, c.Team))), 4, width-1))
	}
}

// attachTo connects the session to the lead in another process, and says whose goal it works for. The caller detaches.
func (c *conversation) attachTo(ctx context.Context, s *chat.Session, run muster.Run) (*team.Attachment, error) {
	// What is typed becomes mail to the remote lead, and Over is closed when its process is gone.
	remote, err := c.Attach(ctx)
	if err != nil {
		return nil, err
	}
	s.Attach(remote)
	s.Events = func(ctx context.Context) <-chan team.Event {
		events := c.Subscribe(ctx)
		catchUp(ctx, c.Team, c.progress) // after it, so that no event is missed; one that comes twice does no harm
		return events
	}
	if settings, err := c.app.runSettings(ctx, c.opened, c.flags, true); err == nil { // else no budget is shown
		c.progress.SetSpent(settings.Budgets.Team, spentBefore(ctx, c.Team, true))
	}
	c.face.Print("a team is at work here, in another process: what you type is mail to its lead, " +
		"and it goes on when you leave")
	if goal := text.OneLine(run.Goal); goal != "" { // a conversation gets one with its first task
		c.face.Print("goal    " + text.CutColumns(goal, 160))
	}
	if c.terminal != nil {
		c.recall(ctx, run, true)
	}
	return remote, nil
}

func (c *conversation) newSession(ctx context.Context) *chat.Session {
	return &chat.Session{Face: c.face, Teller: c.progress, Events: c.Subscribe, Mail: c.takeMail, Command: c.command,
		OnLine: c.remember(ctx), WaitForLead: c.terminal == nil, First: c.first, GoesOn: c.goesOn,
		CanWorkOn: c.app.foreground != nil, Now: c.app.Now, Compact: c.Mail().Compact, Custom: c.customCommands,
		Open: c.openCall}
}

// checkStart asks what the user trusts of the repository's settings, and then reports what prevents a run. The words
// are not typed yet, so "-" stands for them.
func (c *conversation) checkStart(ctx context.Context, isStopped bool) error {
	if err := offerTrust(ctx, c.app, c.opened, c.flags, isStopped); err != nil {
		return err
	}
	j, err := c.prepare(ctx, isStopped, "-")
	if err == nil && !isStopped {
		c.changes, err = askChanges(ctx, c.app, j)
	}
	c.settings = j.Settings
	return err
}

// begin starts the run, or goes on with the one that stopped. The channel is closed when the run is over. When the
// run cannot begin, the error is kept in c.err and the channel is closed at once, so that the session ends and end
// reports it.
func (c *conversation) begin(ctx context.Context, isStopped bool, words string) <-chan struct{} {
	catchSIGPIPE()
	over := make(chan struct{})
	// The mail is written before the run goes on: the lead finds it in its inbox, and a crash in between loses nothing.
	j, err := c.prepare(ctx, isStopped, words)
	if err == nil && j.Resume && words != "" {
		_, err = c.Mail().Send(ctx, muster.Lead, words)
	}
	if err != nil {
		c.err = err
		close(over)
		return over
	}
	c.progress.SetSpent(j.Settings.Budgets.Team, spentBefore(ctx, c.Team, isStopped))
	if isStopped {
		catchUp(ctx, c.Team, c.progress)
		view.MarkStopped(c.progress, c.app.Now())
	}
	// What the model says is streamed to the face. Events reach the face through the journal, so only those that
	// the journal could not take are passed on here.
	speech := &chat.Speech{Face: c.face}
	j.Opened = c.running.Store
	j.Conversation, j.Emit = c.talk, func(member muster.Name, v any) {
		if e, ok := v.(muster.Event); ok {
			c.progress.Event(e) // the journal could not take it
		} else {
			speech.Emit(member, v)
		}
	}
	go func() {
		defer close(over)
		// Closing over publishes both fields: end reads them only after it has received from s.Over.
		if c.sum, c.err = c.app.Start(ctx, j); c.err != nil && !errors.Is(c.err, muster.CauseUser) {
			c.progress.Fail(c.app.Now(), c.err)
		}
	}()
	c.job = j
	return over
}

// prepare returns the job that the first words make. Its error says what prevents a run. It writes nothing, so it
// is also called before anything is typed, to report early that a model or a setting is missing.
func (c *conversation) prepare(ctx context.Context, isStopped bool, words string) (j Job, err error) {
	j = Job{Workspace: c.workspace, Goal: words, How: team.Start{Add: isStopped, Changes: c.changes},
		Resume: isStopped && (words == "" || c.hasNoTask)}
	// The model and the check of a stopped run hold, except for what the command line gives.
	if j.Settings, err = c.app.runSettings(ctx, c.opened, c.flags, isStopped); err != nil {
		return j, err
	}
	// The model itself is opened again by App.Start. Here only the error matters, such as a key that is not set.
	//nolint:contextcheck // What reads its key has a limit of its own.
	_, err = c.app.model(c.workspace, j.Settings.Model, j.Settings)
	return j, err
}

// end stops the run where the user has left, closes the terminal, and says what is left. err is the session's:
// muster.CauseUser where a signal has ended it, which makes the exit code that of an interruption. The order
// matters: the run ends first, then the terminal is restored, and only then is anything printed on it.
func (c *conversation) end(ctx context.Context, s *chat.Session, how chat.Outcome, err error) error {
	// The exit code depends on how the user left, so it is noted before how is changed below.
	isInterrupted := how == chat.Interrupted || errors.Is(err, muster.CauseUser)
	if how == chat.LeftWorking {
		// The terminal is restored before the shell comes back.
		_ = c.terminal.Close() // as below
		c.progress.Close()
		if c.workOn(ctx, s.Over) {
			return nil
		}
	}
	if s.HasBegun && how != chat.RunEnded {
		if _, done := s.Lead.Resting(); done { // nothing is open: the run ends by itself
			s.Lead.Close()
			how = chat.RunEnded
		} else {
			c.stop(muster.CauseUser)
		}
		if !s.Remote { // the last writes of the run must be over before the summary is read
			<-s.Over
		}
	}
	c.closeFace()
	// After an interruption ctx has ended, and the summary must still be read from the store.
	late := context.WithoutCancel(ctx)
	switch {
	case err != nil && !errors.Is(err, muster.CauseUser):
		return err
	// There was no run, so there is nothing to report.
	case !s.HasBegun:
		return err // nil where no signal has ended it
	case s.Remote && how == chat.RunEnded:
		return c.explainEnd(late, true, false)
	// The team of another process goes on, so there is nothing to resume.
	case s.Remote:
		explain(c.app.Stderr, "the team works on", comeBack)
		return err // nil where no signal has ended it
	// The run could not begin, or ended with an error of its own.
	case c.err != nil && !errors.Is(c.err, muster.CauseUser):
		return c.err
	case how == chat.RunEnded && c.err == nil:
		// Everything was said in the conversation, but how to go on.
		if c.sum.GoOn == "" && !slices.ContainsFunc(c.sum.Tasks, c.sum.Run.Has) {
			if c.terminal != nil {
				fmt.Fprintln(c.app.Stdout, c.paint.In(view.Faint, "come back: muster"))
			}
			return exitStatus(c.sum.Code)
		}
		if c.terminal != nil {
			fmt.Fprintln(c.app.Stdout) // the summary stands by itself
		}
		return c.app.finish(ctx, c.Team, c.job, c.sum)
	}
	return c.explainEnd(late, false, isInterrupted)
}

// explainEnd says how a run stands that this process no longer shows, and returns the exit code. The board is read
// again, because the run has changed it since the conversation began. Of a run in another process, the record tells
// one that has ended from one that has stopped, and only the second one leaves work.
func (c *conversation) explainEnd(ctx context.Context, isRemote, isInterrupted bool) error {
	state, err := c.RunState(ctx)
	if err != nil {
		return err
	}
	what, hint := "the state is kept; ", "go on: muster"
	switch {
	case isRemote && state.Run.EndedAt != 0:
		return showEnd(ctx, c.app, c.opened)
	case isRemote:
		what, hint = howStopped(ctx, c.opened, state.Run)+"; ", "go on: muster resume   or, with words of yours: muster"
	case c.terminal == nil: // a pipe cannot be asked what to do with a team that stopped
		hint = "go on: muster resume"
	}
	if n := len(usersRequests(ctx, c.Team)); n > 0 {
		what += text.Count(n, "question") + text.Plural(n, " waits", " wait") + " for you, "
	}
	explain(c.app.Stderr, what+openTasks(state.Open), hint)
	if isInterrupted {
		return exitStatus(exitInterrupted)
	}
	return exitStatus(exitLeft)
}
