// Package chat is a conversation of the user with the lead. What the user types goes to the lead. What the lead says,
// and what happens in the team, is shown above the prompt. Lines that begin with a slash are commands.
//
// Session decides what happens when; it knows its surroundings only as values. A Face is where the user types and
// reads: a terminal, or a Pipe where there is none. A Lead is the other side: one in this process, or one in another
// process, to which Session.Attach connects. Speech shows the words of a lead in this process while they arrive.
//
// Leaving a conversation never loses state: the run can always be resumed. The package neither starts runs nor opens
// stores, and does not draw; the terminal itself is package terminal.
package chat

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/commands"
	"muster/internal/terminal"
	"muster/internal/view"
	"muster/journal"
	"muster/llm"
	"muster/team"
)

// Face is where the user types and reads. Its methods may be called from any goroutine, and do not wait for the user.
type Face interface {
	Events() <-chan terminal.Event
	Print(lines string)
	// Echo shows what the user has said.
	Echo(text string)
	Stream(text string)
	// Think shows a piece of what the lead thinks, which ends with the next Stream or Flush.
	Think(text string)
	Flush()
	Refresh()
	// Ask shows a question until the user presses one of its keys, and then sends terminal.Answer.
	Ask(terminal.Question)
}

// Lead is the other side of the conversation.
type Lead interface {
	// Say sends what the user says. It is durable when Say returns nil.
	Say(ctx context.Context, text string) error
	// Interrupt stops the lead's turn. It returns false if there is none that can be stopped from here.
	Interrupt() bool
	// Close says that the user says no more.
	Close()
	// Resting reports whether the lead waits for the user, and whether everything is done and nobody works.
	Resting() (resting, done bool)
	// Changed receives when the result of Resting may have changed.
	Changed() <-chan struct{}
}

// Teller shows events as lines.
type Teller interface {
	Event(muster.Event)
	// Notice takes an event that the session shows itself, and that the user may have to be told of.
	Notice(muster.Event)
	Tick(time.Time)
	// Test takes the test that a check of a task runs now, or has run last; 0 is the base.
	Test(task muster.TaskID, name string)
}

// Outcome is how a conversation ended.
type Outcome int

const (
	// RunEnded means that the run ended by itself.
	RunEnded Outcome = iota
	// UserLeft means that the user left and open work is kept. If HasBegun is false there is none.
	UserLeft
	// Interrupted means UserLeft by Ctrl-C.
	Interrupted
	// LeftWorking means that the user left and the team works on in this process.
	LeftWorking
)

// Session is one conversation. Face, Lead, Teller, Now and the functions must be set.
type Session struct {
	Face   Face
	Lead   Lead
	Teller Teller
	Events func(ctx context.Context) <-chan team.Event // what happens from now on
	Mail   func(ctx context.Context)                   // shows the user's mail, and takes it from the inbox
	// Waiting returns the requests that the user may answer, and those of them that are shown to the user.
	Waiting func(ctx context.Context) (all, shown []muster.Request)
	// Commands returns those of the command line that may be typed behind a slash, beside the builtin ones.
	Commands func() []Command
	// Members returns the names of the teammates.
	Members func(ctx context.Context) []muster.Name
	// Command runs a muster command. It returns what that prints, and whether it succeeds.
	Command func(ctx context.Context, args ...string) (printed string, ok bool)
	// Open returns a call of a tool of the lead by its number, or the last one, as it is printed.
	Open func(ctx context.Context, number string) string
	// Untaken says what has landed that the user has not taken. It is asked when nothing is left to do; nil: never.
	Untaken func(ctx context.Context) string
	// Compact has the lead's conversation shortened to a summary, which keeps focus above all.
	Compact func(ctx context.Context, focus string) error
	// Clear has the lead begin a new conversation.
	Clear func(ctx context.Context) error
	// Model shows the models, or sets the team's where no run has begun.
	Model func(ctx context.Context, name string) string
	// Share makes a file readable for the lead, and returns where it is then, or "" where the lead has it already; nil:
	// no file is shared.
	Share func(ctx context.Context, path string) (at string, err error)
	// Shell runs a command in the user's shell with what it prints going to out, and returns its exit status; nil: a
	// line that begins with ! is a message.
	Shell func(ctx context.Context, command string, out io.Writer) (exit int, err error)
	shell shell
	// Edit puts what was said before into the input; nil: there is none.
	Edit func(text string)
	// Fill puts the beginning of a line into the input; nil: there is none.
	Fill func(text string)
	edit edit
	said said
	// Custom finds the commands of the repository and of the user; nil: there are none.
	Custom func() []commands.Command
	// Begin starts the run with the user's first words, unless HasBegun. The channel receives when the run has ended.
	Begin    func(words string) (over <-chan struct{})
	HasBegun bool
	Over     <-chan struct{} // of a run that has begun
	// First is said as if the user had typed it. "" is nothing.
	First string
	// GoesOn resumes a team that has stopped here at once.
	GoesOn bool
	// CanWorkOn says that this process can go on without the terminal. Who leaves is then asked whether the team works
	// on.
	CanWorkOn bool
	// Stopped says that a team stopped here. The first words resume it, and may be empty.
	Stopped bool
	// OnLine is called with each line that the user enters, for the history.
	OnLine func(text string)
	// WaitForLead takes the next line only when the lead waits for the user. A script that pipes its lines in cannot
	// wait for answers itself.
	WaitForLead bool
	// Remote says that another process hosts the run, so leaving does not end it. Attach sets it.
	Remote  bool
	replies <-chan llm.Message // of a remote lead
	speech  Speech             // of a remote lead
	Now     func() time.Time

	leadRests     bool      // a remote lead, according to the last event of it
	lastInterrupt time.Time // when Ctrl-C was pressed last
	leaving       Outcome   // how the conversation ends if the user answers that the team stops
	asks          bool      // whether the team is to stop
	hasLanded     bool      // work has landed since Untaken was asked
}

// doubleInterruptWindow is how soon after the first Ctrl-C a second one leaves.
const doubleInterruptWindow = 2 * time.Second

// Run holds the conversation until the run ends or the user leaves. Ending a run that still goes on is left to the
// caller.
func (s *Session) Run(ctx context.Context) (Outcome, error) {
	following, stop := context.WithCancel(ctx)
	defer stop()
	events := s.Events(following) // before the run begins, so that none of its events is missed
	typed := s.Face.Events()
	tick := time.NewTicker(time.Second / 4)
	defer tick.Stop()
	defer s.endShell()
	s.Mail(ctx)
	s.open(ctx)
	for {
		// A nil channel never receives, so no line is taken while the lead works.
		in := typed
		// The lead is asked in each round, because Changed only says that the answer may be another one now.
		if resting, _ := s.Lead.Resting(); s.WaitForLead && s.HasBegun && !resting {
			in = nil
		}
		select {
		case <-ctx.Done():
			return UserLeft, context.Cause(ctx)
		case <-s.Over:
			// The journal may have events of the end that the watch has not brought yet.
			s.showRest(ctx, events)
			return RunEnded, nil
		case e := <-events:
			s.showEvent(ctx, e)
		case m := <-s.replies:
			s.showReply(m)
		case <-s.Lead.Changed():
			s.showResting(ctx)
		case <-tick.C:
			s.Teller.Tick(s.Now())
		case e, ok := <-in:
			// A pipe closes its channel at the end, which is the same as a terminal that is closed.
			if !ok {
				e = terminal.Closed{}
			}
			if _, is := e.(terminal.Closed); is && s.WaitForLead && s.HasBegun {
				typed = nil // the run goes on to its end
				s.Lead.Close()
				continue
			}
			if how, over := s.handle(ctx, e); over {
				return how, nil
			}
		}
	}
}

// open does what the command line has said, before anything is typed.
func (s *Session) open(ctx context.Context) {
	if s.GoesOn && s.First == "" {
		s.goOn()
	}
	if s.First != "" {
		s.Face.Echo(s.First)
		s.handleLine(ctx, s.First)
	}
}

// handle does what the user has done, and returns true if the conversation is over.
func (s *Session) handle(ctx context.Context, e terminal.Event) (how Outcome, over bool) {
	switch e := e.(type) {
	case terminal.Line:
		s.OnLine(e.Text)
		if s.handleLine(ctx, s.edit.replacing(e)) {
			return s.leave(UserLeft)
		}
	case terminal.Escape:
		s.escape(e.IsEmpty)
	case terminal.Interrupt:
		if s.interruptOrLeave() {
			return s.leave(Interrupted)
		}
	case terminal.Leave:
		return s.leave(UserLeft)
	case terminal.Answer:
		if e.ID == leaveQuestion {
			return s.answerLeave(e.Key)
		}
		s.answers().Key(ctx, e)
		s.Face.Refresh()
	case terminal.Closed:
		return UserLeft, true
	}
	return how, false
}

// answers returns what answers questions in this conversation.
func (s *Session) answers() *Answers {
	return &Answers{Waiting: s.Waiting, Command: s.Command, Print: s.Face.Print, Fill: s.Fill, Answered: s.goOn}
}

// goOn resumes a team that has stopped here.
func (s *Session) goOn() {
	if s.Stopped && !s.HasBegun {
		s.beginRun("") // no words: the lead goes on where it was
	}
}

// showRest shows the events that were written before the run ended but had not arrived yet.
func (s *Session) showRest(ctx context.Context, events <-chan team.Event) {
	for quiet := time.After(time.Second / 5); events != nil; {
		select {
		case e, ok := <-events:
			if !ok {
				return
			}
			s.showEvent(ctx, e)
		case m := <-s.replies:
			s.showReply(m)
		case <-quiet:
			return
		}
	}
}

// showReply shows what a remote lead says.
func (s *Session) showReply(m llm.Message) { s.speech.reply(plainText(m)) }

// showEvent shows a change of the team's state. It leaves out mail between the user here and the lead, which the
// conversation shows itself (what was typed elsewhere is shown), and what cannot be read, which muster doctor tells of.
func (s *Session) showEvent(ctx context.Context, event team.Event) {
	if turn, ok := event.(team.TurnEvent); ok && s.Remote && turn.Member == muster.Lead {
		s.speech.event(turn.Event)
	}
	if check, ok := event.(team.CheckEvent); ok {
		s.Teller.Test(check.Task, check.Test)
		s.Face.Refresh()
	}
	state, ok := event.(team.StateEvent)
	if !ok {
		return
	}
	e := state.Entry.Event
	switch {
	case e.Kind == journal.MailSent && e.Text("to") == string(muster.User):
		s.Mail(ctx)
		s.Teller.Notice(e)
	case e.Kind == journal.MailSent && s.said.is(e):
	default:
		s.Teller.Event(e)
	}
	s.hasLanded = s.hasLanded || e.Kind == journal.TaskCompleted
	if e.Member == muster.Lead {
		s.leadRests = e.Kind == journal.MemberIdle || s.leadRests && e.Kind != journal.TurnStarted
	}
	if e.Kind == journal.MemberIdle && e.Member == muster.Lead {
		s.showResting(ctx)
	}
	s.Face.Refresh()
}

// showResting shows that the lead waits for the user and, where nothing is left to do, what the user can take. The
// journal says only that the lead waits.
func (s *Session) showResting(ctx context.Context) {
	if resting, done := s.Lead.Resting(); resting && !s.Remote {
		if done && s.hasLanded && s.Untaken != nil {
			s.hasLanded = false
			if said := s.Untaken(ctx); said != "" {
				s.Face.Print(said)
			}
		}
		s.Teller.Event(muster.Event{Kind: journal.MemberIdle, Member: muster.Lead, At: muster.UnixTime(s.Now()),
			Fields: map[string]any{"reason": view.WaitsForYou}})
	}
	s.Face.Refresh()
}

// handleLine handles a line that the user entered: a command, the words that begin the run, or words for the lead. It
// returns true if the user leaves.
func (s *Session) handleLine(ctx context.Context, text string) (over bool) {
	trimmed := strings.TrimSpace(text)
	switch {
	case strings.HasPrefix(text, "/"):
		return s.runCommand(ctx, trimmed)
	case strings.HasPrefix(text, "!") && s.Shell != nil:
		s.runShell(ctx, strings.TrimSpace(trimmed[1:]))
	case trimmed == "":
	case s.mailMember(ctx, trimmed):
	default:
		s.edit.said = strings.TrimPrefix(text, insteadOf)
		s.say(ctx, s.withMentions(ctx, text, text))
	}
	return false
}

// mailMember sends words that begin with @ and the name of a teammate to that teammate, and reports whether they do.
func (s *Session) mailMember(ctx context.Context, words string) bool {
	name, rest, _ := strings.Cut(words, " ")
	if rest = strings.TrimSpace(rest); !strings.HasPrefix(name, "@") || rest == "" || s.Members == nil {
		return false
	}
	if !slices.Contains(s.Members(ctx), muster.Name(name[1:])) {
		return false
	}
	s.printCommand(ctx, "mail", "send", name[1:], "--", rest)
	return true
}

// printCommand runs a muster command and prints what it prints.
func (s *Session) printCommand(ctx context.Context, args ...string) {
	printed, _ := s.Command(ctx, args...)
	s.Face.Print(strings.TrimRight(printed, "\n"))
}

// say says words to the lead: they begin the run, or are mail.
func (s *Session) say(ctx context.Context, text string) {
	text = s.withShell(text)
	if !s.HasBegun {
		s.beginRun(strings.TrimSpace(text))
		return
	}
	s.said.add(text)
	if err := s.Lead.Say(ctx, text); err != nil {
		// What was said is not lost: it stands above the message, and can be entered again from the history.
		text := muster.PlainText(err)
		if hint := muster.HintOf(err); hint != "" {
			text += "\n  " + strings.ReplaceAll(hint, "\n", "\n  ")
		}
		s.Face.Print(text)
	}
}

// beginRun starts the run with the user's first words.
func (s *Session) beginRun(words string) {
	s.said.add(words) // where a team goes on, they are mail too
	s.Over, s.HasBegun = s.Begin(words), true
}

// interruptOrLeave stops what runs: a command of the user's, or else the lead's turn. It reports whether the user
// leaves, by a second Ctrl-C soon after the first one.
func (s *Session) interruptOrLeave() (over bool) {
	if s.stopShell() {
		return false
	}
	if s.Now().Sub(s.lastInterrupt) < doubleInterruptWindow {
		return true
	}
	s.lastInterrupt = s.Now()
	s.interrupt()
	return false
}

// interrupt stops the lead's turn, or says why it cannot.
func (s *Session) interrupt() {
	switch {
	// The text says each time what a second Ctrl-C does, so that nobody is caught.
	case s.Remote:
		s.interruptRemote("Ctrl-C again leaves, the team goes on")
	case !s.HasBegun:
		s.Face.Print("nothing runs yet (Ctrl-C again leaves)")
	case s.Lead.Interrupt():
		s.Face.Print("stopped: the lead waits for you, the team works on (Ctrl-C again leaves)")
	default:
		s.Face.Print("nothing to stop: the lead waits (Ctrl-C again leaves, the state is kept)")
	}
}

// Hint tells below an empty input what may be typed beside words for the lead.
const Hint = "/help · @ file · ! command"
