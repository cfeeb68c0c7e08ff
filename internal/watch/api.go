package watch

import (
	"context"
	"errors"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"muster"
	"muster/internal/view"
	"muster/team"
)

// teamAPI is what the screen asks of a team on behalf of its user. All of it runs in commands, beside the screen. It is
// an interface so that tests of the screen need no repository.
type teamAPI interface {
	// Said returns what a member has said after a position of its transcript.
	Said(ctx context.Context, name muster.Name, after muster.Pos) ([]team.Said, error)
	Diff(ctx context.Context, id muster.TaskID) (string, error)
	Request(ctx context.Context, id muster.RequestID) (muster.Request, error)
	Answer(ctx context.Context, id muster.RequestID, approve bool, text string) (muster.Request, bool, error)
	Send(ctx context.Context, to muster.Name, text string) error
	Retry(ctx context.Context, id muster.TaskID) error
	// Mail returns what waits for the user. With take it is removed from the inbox.
	Mail(ctx context.Context, take bool) ([]muster.Message, error)
}

// api is a team as teamAPI.
type api struct{ t *team.Team }

// Said leaves out what cannot be read, as muster log does: it hides nothing else, and muster doctor counts it.
func (a api) Said(ctx context.Context, name muster.Name, after muster.Pos) (all []team.Said, err error) {
	for said, e := range a.t.Members().Conversation(ctx, name, after) {
		if e != nil && !errors.Is(e, muster.ErrCorrupt) { // what cannot be read hides nothing else
			return all, e
		}
		if e == nil {
			all = append(all, said)
		}
	}
	return all, ctx.Err()
}

// Diff returns the text of git diff; what the lane holds and nobody has committed is in it.
func (a api) Diff(ctx context.Context, id muster.TaskID) (string, error) {
	d, err := a.t.Tasks().Diff(ctx, id)
	return d.Text, err
}

// Request returns a request that may have been decided.
func (a api) Request(ctx context.Context, id muster.RequestID) (muster.Request, error) {
	return a.t.Requests().Get(ctx, id)
}

// Answer decides a request as the user. It reports whether nobody was faster.
func (a api) Answer(
	ctx context.Context, id muster.RequestID, approve bool, text string,
) (muster.Request, bool, error) {
	return a.t.Requests().Answer(ctx, id, approve, text)
}

// Send writes mail as the user.
func (a api) Send(ctx context.Context, to muster.Name, text string) error {
	_, err := a.t.Mail().Send(ctx, to, text)
	return err
}

// Retry makes a task that was given up pending again.
func (a api) Retry(ctx context.Context, id muster.TaskID) error {
	_, err := a.t.Tasks().Change(ctx, id, team.TaskChange{Retry: true})
	return err
}

// Mail returns the mail of the user. With take it is removed after it was read, so none is lost by an error.
func (a api) Mail(ctx context.Context, take bool) (all []muster.Message, err error) {
	if !take {
		return a.t.Mail().Pending(ctx, muster.User)
	}
	// What came in meanwhile is taken too, so what is returned is what is shown.
	err = a.t.Mail().Take(ctx, func(taken []muster.Message) error { all = taken; return nil })
	return all, err
}

type (
	// toldMsg is what the user is told in the lines above the help, until the next key. bad is for what did not happen
	// as it was asked.
	toldMsg struct {
		text string
		bad  bool
	}
	// The following answer what was asked for the right side. They name what they are about: the user may have gone
	// on to something else meanwhile.
	saidMsg struct {
		key   string
		after muster.Pos
		said  []team.Said
		err   error
	}
	textMsg struct {
		key     string
		diff    *string
		request *muster.Request
		mail    []muster.Message
		isTaken bool // the mail is not in the inbox any more
		err     error
	}
)

// told returns the message for the outcome of what the user did: the text, or what went wrong and what to do about it.
func told(err error, format string, args ...any) toldMsg {
	if err == nil {
		return toldMsg{text: fmt.Sprintf(format, args...)}
	}
	text := err.Error()
	if e := (*muster.Error)(nil); errors.As(err, &e) && e.Hint != "" {
		text = e.Message + ": " + e.Hint
	}
	return toldMsg{text: view.OneLine(text), bad: true}
}

// answer decides a request. Where somebody else was first, in another face or the lead itself, that decision stands,
// and the user is told whose it was and what it said. Nothing is shown as decided before the record says so: the list
// is made of the next overview, which the event of the decision brings.
func (m *model) answer(r muster.Request, approve bool, text string) tea.Cmd {
	now := m.o.Now
	return m.ask(func(ctx context.Context, t teamAPI) tea.Msg {
		got, isFirst, err := t.Answer(ctx, r.ID, approve, strings.TrimSpace(text))
		asked := view.Question(r) + " of " + view.OneLine(string(r.From))
		if err != nil || isFirst {
			return told(err, "%s is %s", asked, got.Status)
		}
		s := told(nil, "%s", view.DecidedBefore(got, now))
		s.bad = approve != (got.Status == muster.RequestApproved)
		return s
	})
}
