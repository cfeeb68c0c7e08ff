package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"muster"
	"muster/internal/text"
	"muster/internal/view"
	"muster/team"
)

// teamAPI is what the screen asks of a team on behalf of its user. All of it runs in commands, beside the screen. It is
// an interface so that tests of the screen need no repository.
type teamAPI interface {
	// Said returns what a member has said after a position of its transcript.
	Said(ctx context.Context, name muster.Name, after muster.Pos) ([]team.Said, error)
	Diff(ctx context.Context, id muster.TaskID) (team.Diff, error)
	// Comment says something about a line of a task's work, and returns who got it.
	Comment(ctx context.Context, id muster.TaskID, at place, text string) (muster.Name, error)
	Request(ctx context.Context, id muster.RequestID) (muster.Request, error)
	Answer(ctx context.Context, id muster.RequestID, approve bool, scope muster.RequestScope, text string) (
		muster.Request, bool, error)
	Send(ctx context.Context, to muster.Name, text string) error
	Retry(ctx context.Context, id muster.TaskID) error
	// Mail returns the mail of the user and of the lead, what waits first.
	Mail(ctx context.Context) ([]letter, error)
	// Take removes what waits for the user from the inbox, and returns it.
	Take(ctx context.Context) ([]muster.Message, error)
	// Window returns what fills the context of a member's model.
	Window(ctx context.Context, name muster.Name) (view.Window, error)
	// Halt stops the team at work and keeps its state. Begin starts one, or goes on with the one that has stopped where
	// goal is "". Merge takes what has landed, and returns what there is to say about it.
	Halt(ctx context.Context) error
	Begin(ctx context.Context, goal string) error
	Merge(ctx context.Context) (string, error)
	// Untaken returns what Merge would take.
	Untaken(ctx context.Context) (team.Untaken, error)
}

// letter is a mail in a box. One that waits was not read yet.
type letter struct {
	muster.Message
	box   muster.Name
	waits bool
}

// api is a team as teamAPI.
type api struct {
	t     *team.Team
	known func(model string) (window, reply int)
	Commands
}

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
func (a api) Diff(ctx context.Context, id muster.TaskID) (team.Diff, error) {
	return a.t.Tasks().ReviewedDiff(ctx, id)
}

// Comment writes mail as the user. Whether the file has the line is found out there, by the work as it is now.
func (a api) Comment(ctx context.Context, id muster.TaskID, at place, text string) (muster.Name, error) {
	m, err := a.t.Tasks().Comment(ctx, id, at.file, at.line, text)
	return m.To, err
}

// Request returns a request that may have been decided.
func (a api) Request(ctx context.Context, id muster.RequestID) (muster.Request, error) {
	return a.t.Requests().Get(ctx, id)
}

// Answer decides a request as the user. It reports whether nobody was faster.
func (a api) Answer(
	ctx context.Context, id muster.RequestID, approve bool, scope muster.RequestScope, text string,
) (muster.Request, bool, error) {
	return a.t.Requests().AnswerFor(ctx, id, approve, scope, text)
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

// readMail is how many of the lead's mails are shown that it has read already.
const readMail = 20

// Mail leaves out the lead's where no lead has been yet.
func (a api) Mail(ctx context.Context) (all []letter, err error) {
	add := func(box muster.Name, waits bool, mail []muster.Message) {
		for _, x := range mail {
			all = append(all, letter{x, box, waits})
		}
	}
	mine, err := a.t.Mail().Pending(ctx, muster.User)
	add(muster.User, true, mine)
	leads, errLead := a.t.Mail().Pending(ctx, muster.Lead)
	if errors.Is(errLead, muster.ErrNotFound) {
		return all, err
	}
	// What has been read is wanted to look up who has said what to the lead, and it comes last.
	add(muster.Lead, true, leads)
	read, errRead := a.t.Mail().Delivered(ctx, muster.Lead, readMail)
	slices.Reverse(read) // the newest first
	add(muster.Lead, false, read)
	return all, cmp.Or(err, errLead, errRead)
}

// Take returns what is removed, and so what came in meanwhile too. It is removed after it was read, so none is lost by
// an error.
func (a api) Take(ctx context.Context) (all []muster.Message, err error) {
	err = a.t.Mail().Take(ctx, func(taken []muster.Message) error { all = taken; return nil })
	return all, err
}

// Window returns what fills the context of a member's model, living or not.
func (a api) Window(ctx context.Context, name muster.Name) (view.Window, error) {
	return a.t.Members().Window(ctx, name, a.known)
}

// Halt returns when no process runs the team any more.
func (a api) Halt(ctx context.Context) error {
	_, err := team.Halt(ctx, a.t)
	return err
}

// Begin returns when the team works in the background, or when it cannot.
func (a api) Begin(ctx context.Context, goal string) error {
	return a.Launch(ctx, goal)
}

// Merge needs a command of its own: it moves the user's branch.
func (a api) Merge(ctx context.Context) (string, error) { return a.Commands.Merge(ctx) }

// Untaken asks git, which takes a few processes. An error says why nothing can be taken to the checkout as it is, such
// as that it has no branch.
func (a api) Untaken(ctx context.Context) (team.Untaken, error) {
	return team.TargetOf(a.t).Untaken(ctx)
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
		diff    *team.Diff
		request *muster.Request
		mail    []letter
		taken   int // how many mails are not in the inbox any more
		windows []view.Window
		err     error
	}
)

// told returns the message for the outcome of what the user did: the text, or what went wrong and what to do about it.
func told(err error, format string, args ...any) toldMsg {
	if err == nil {
		return toldMsg{text: fmt.Sprintf(format, args...)}
	}
	words := muster.PlainText(err)
	if e := (*muster.Error)(nil); errors.As(err, &e) && e.Hint != "" {
		words = e.Message + ": " + e.Hint
	}
	return toldMsg{text: text.OneLine(words), bad: true}
}
