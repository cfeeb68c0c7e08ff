// Package talk is a conversation of the user with the lead: what the user types goes to the lead, what the lead says and
// what happens in the team is shown above the prompt, and lines that begin with a slash are commands.
//
// Read in this order: talk.go (the session: what happens when), commands.go (what a slash does), complete.go (what Tab
// offers), speech.go (the lead's words as they stream), remote.go (a lead that lives in another process), pipe.go
// (a conversation without a terminal), history.go. The terminal itself is internal/terminal.
package chat

import (
	"context"
	"errors"
	"strings"
	"time"

	"muster"
	"muster/internal/terminal"
	"muster/journal"
)

// Face is where the user types and reads. Its methods may be called from any goroutine and do not wait for the user.
type Face interface {
	Events() <-chan terminal.Event
	Print(lines string)
	Stream(text string)
	Flush()
	Refresh()
}

// Lead is the other side.
type Lead interface {
	// Say sends what the user says; durable on nil.
	Say(ctx context.Context, text string) error
	// Interrupt stops the lead's turn and reports whether it had one that can be stopped from here.
	Interrupt() bool
	// Close says that no more is said.
	Close()
	// Resting reports whether the prompt is the user's; done: nothing is open and nobody works.
	Resting() (resting, done bool)
	// Changed receives when Resting may say something else.
	Changed() <-chan struct{}
}

// Teller shows events as lines.
type Teller interface {
	Event(muster.Event)
	Tick(time.Time)
}

// Outcome is how a conversation ended.
type Outcome int

const (
	Over        Outcome = iota // the run is over by itself
	Nobody                     // nothing was begun
	Left                       // the user left; what is open is kept
	Interrupted                // the same, by Ctrl-C
)

// Session is one conversation. Face, Lead, Teller, Now and the functions must be set.
type Session struct {
	Face   Face
	Lead   Lead
	Teller Teller
	Events func(ctx context.Context) <-chan journal.Entry // what happens from now on
	Mail   func(ctx context.Context) []string             // the user's mail as lines, taken from the inbox
	// Command runs a muster command and returns what it prints.
	Command func(ctx context.Context, args ...string) string
	// Begin starts the run with the first words, unless Begun; over receives when it has ended.
	Begin func(words string) (over <-chan struct{})
	Begun bool
	Over  <-chan struct{} // of a run that has begun
	// Stopped says that a team stopped here: the first words go on with it, and may be none.
	Stopped bool
	// Typed is told each line, for the history.
	Typed func(text string)
	// OneByOne takes the next line only when the lead rests: nobody sits there who could wait for an answer.
	OneByOne bool
	// Remote says that the run is another process's: leaving does not end it.
	Remote bool
	Now    func() time.Time
}

// twice is how soon a second Ctrl-C leaves.
const twice = 2 * time.Second

// Run talks until the run is over or the user leaves. The caller ends what goes on then.
func (s *Session) Run(ctx context.Context) (Outcome, error) {
	following, stop := context.WithCancel(ctx)
	defer stop()
	entries := s.Events(following)
	typed := s.Face.Events()
	tick := time.NewTicker(time.Second / 4)
	defer tick.Stop()
	var stopped time.Time // when Ctrl-C came last
	s.mail(ctx)
	for {
		in := typed
		if resting, _ := s.Lead.Resting(); s.OneByOne && s.Begun && !resting {
			in = nil
		}
		select {
		case <-ctx.Done():
			return s.left(Left), context.Cause(ctx)
		case <-s.Over:
			s.rest(ctx, entries)
			return Over, nil
		case e, ok := <-entries:
			if !ok {
				entries = nil
				continue
			}
			s.tell(ctx, e.Event)
		case <-s.Lead.Changed():
			s.resting()
		case <-tick.C:
			s.Teller.Tick(s.Now())
		case e, ok := <-in:
			if !ok {
				e = terminal.Closed{}
			}
			switch e := e.(type) {
			case terminal.Line:
				s.Typed(e.Text)
				if over, err := s.line(ctx, e.Text); err != nil || over {
					return s.left(Left), err
				}
			case terminal.Interrupt:
				if s.Now().Sub(stopped) < twice {
					return s.left(Interrupted), nil
				}
				stopped = s.Now()
				s.interrupt()
			case terminal.Closed:
				if !s.OneByOne || !s.Begun {
					return s.left(Left), nil
				}
				typed = nil // the run goes on to its end
				s.Lead.Close()
			}
		}
	}
}

// rest tells what has happened until the run was over.
func (s *Session) rest(ctx context.Context, entries <-chan journal.Entry) {
	for quiet := time.After(time.Second / 5); entries != nil; {
		select {
		case e, ok := <-entries:
			if !ok {
				return
			}
			s.tell(ctx, e.Event)
		case <-quiet:
			return
		}
	}
}

// left is how the conversation ended that the user leaves.
func (s *Session) left(how Outcome) Outcome {
	if !s.Begun {
		return Nobody
	}
	return how
}

// tell shows an event. What the user wrote, and what is written to the user, stands there already, or does at once.
func (s *Session) tell(ctx context.Context, e muster.Event) {
	switch {
	case e.Kind == journal.MailSent && e.Text("to") == string(muster.User):
		s.mail(ctx)
	case e.Kind == journal.MailSent && e.Member == muster.User && e.Text("to") == string(muster.Lead) && !s.Remote:
	default:
		s.Teller.Event(e)
	}
	if e.Kind == journal.MemberIdle && e.Member == muster.Lead {
		s.resting()
	}
	s.Face.Refresh()
}

// resting shows for whom a resting lead waits: the journal knows only that it does.
func (s *Session) resting() {
	if resting, _ := s.Lead.Resting(); resting && !s.Remote {
		s.Teller.Event(muster.Event{Kind: journal.MemberIdle, Member: muster.Lead, At: muster.Stamp(s.Now()), Fields: map[string]any{"reason": "waits for you"}})
	}
	s.Face.Refresh()
}

// mail shows what was written to the user.
func (s *Session) mail(ctx context.Context) {
	for _, lines := range s.Mail(ctx) {
		s.Face.Print(lines)
	}
}

// line does what the user typed. over: they leave.
func (s *Session) line(ctx context.Context, text string) (over bool, err error) {
	trimmed := strings.TrimSpace(text)
	switch {
	case strings.HasPrefix(text, "/"):
		return s.command(ctx, trimmed)
	case trimmed == "":
		return false, nil
	case !s.Begun:
		s.begin(trimmed)
		return false, nil
	}
	if err := s.Lead.Say(ctx, text); err != nil {
		s.Face.Print(refusal(err))
	}
	return false, nil
}

// begin starts the run with the first words.
func (s *Session) begin(words string) { s.Over, s.Begun = s.Begin(words), true }

// refusal is an error as the user reads it: what happened, what to do.
func refusal(err error) string {
	text := err.Error()
	if e, ok := errors.AsType[*muster.Error](err); ok && e.Hint != "" {
		text += "\n  " + strings.ReplaceAll(e.Hint, "\n", "\n  ")
	}
	return text
}

// interrupt stops the lead's turn, or says why not.
func (s *Session) interrupt() {
	switch {
	case s.Remote:
		s.Face.Print("the team runs in another process and goes on (Ctrl-C again leaves)")
	case !s.Begun:
		s.Face.Print("nothing runs yet (Ctrl-C again leaves)")
	case s.Lead.Interrupt():
		s.Face.Print("stopped: the lead waits for you, the team works on (Ctrl-C again leaves)")
	default:
		s.Face.Print("nothing to stop: the lead waits (Ctrl-C again leaves, the state is kept)")
	}
}

// Welcome is what the user reads before anything runs: the open tasks of a team that stopped, as lines.
func Welcome(open []string) string {
	if len(open) == 0 {
		return "say what you want; /help lists the commands"
	}
	return "a team stopped here with this open:\n" + strings.Join(open, "\n") +
		"\ngo on: /resume, or say what you want   put it aside: /archive   leave: /quit"
}
