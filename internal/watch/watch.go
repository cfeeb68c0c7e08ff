// Package watch is the team on a full screen: what waits for the user, the members and the board on the left, and on
// the right what is selected, such as a member's conversation or a plan. It reads records and the journal with package
// face and writes answers and mail with package team. It keeps no policy, so it may run beside other faces.
//
// The main types:
//
//   - model: all that is on the screen. Update and View are pure: what reads or writes is a command, which runs beside
//     them and answers with a message.
//   - feed: follows the journal, and sends the model a new overview after events
//   - list: one pane on the left; what is selected in it is known by name, so that a refresh moves nothing
//   - detail: the right side, as rows that a rowWriter lays out once and that are drawn only where they are seen
//   - frame: one drawing of the model, with the layout that it was drawn by
//   - hits: what is searched on the right side
//   - teamState: the newest overview, and how its parts are named
//   - binding: a key, what it does and when. The help line, the help page and Update read one table of them.
//
// What is read, and when:
//
//   - An overview is read after events, at most four times a second. It has the members, the board and what waits.
//   - Every few seconds the records of the members are read, because nobody writes an event for a process that was
//     killed. Where they are as before, only the ages on the screen grow.
//   - A member's conversation is read while it is shown: from its transcript, from the place on that was read last. The
//     words that stream in come from the process that hosts the member, and give way to those of the transcript.
//   - A diff is read when it is asked for, and again every few seconds while its task is under way and shown. How full
//     the contexts of the members are is read as often, while the page of costs is shown.
//   - Events come by themselves, ten times a second at most, and wait for no overview. The rows of those that are laid
//     out stay, so a team that writes thousands a second costs what is new.
//   - What there is to take is asked of git when something has landed, and after each change of the whole team.
//   - Everything else is read when it is selected.
//
// What the user decides is written as a record by package team, and comes back with the next overview like the decision
// of any other face. Nothing is kept between two runs of the program.
//
// These rules hold:
//
//   - Neither Update nor View waits for a file, a process or the team, so a key is never late.
//   - A refresh moves nothing under the user. What was selected stays selected, and a question that somebody else has
//     answered stays on the right side, so that a key that was meant for it never decides another one.
//   - Texts of models and files are cleaned once, where they become rows: see teamState.clean.
//   - The mark of a diff, what is searched and what is filtered stay where they are when rows come and go around them.
//   - While something is typed, what it answers stays in sight, and can be scrolled. What was typed and not taken is
//     not lost: a comment that was refused stands in its box again.
//   - A colour says nothing that the words do not say, because there may be none.
//   - The screen works from 10 columns and 4 rows on. What does not fit is cut on the left side, where it can be
//     selected to be read, and wrapped on the right side, where nothing is left out.
//
// The widgets of bubbles are not used. Its text input looks for programs of the clipboard when the process starts,
// which costs every command a millisecond, and its viewport measures all lines whenever one is added.
//
// Read model.go first, then keys.go for what the user can do, and draw.go for what is seen.
package watch

import (
	"context"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"

	"muster/internal/face"
	"muster/internal/terminal"
	"muster/internal/view"
	"muster/team"
)

// Options say what to watch, and where. All fields but Hide must be set.
type Options struct {
	Team *team.Team
	// HasState reports whether the repository has a team. It is asked until there is one, and must be cheap.
	HasState func() bool
	// In and Out are the terminal.
	In, Out *os.File
	// Paint says whether there are colours.
	Paint view.Paint
	// Hide removes secrets from a text; nil: there are none.
	Hide func(string) string
	Now  func() time.Time
	// Commands are what the screen cannot do by package team. A nil function is not offered.
	Commands Commands
	// Known says how many tokens a model takes, and how long its replies may be; 0 is unknown.
	Known func(model string) (window, reply int)
}

// Commands begin a team and take its work. They run beside the screen, in this process or another. Neither may
// read the terminal or print on it. The text of an error is shown.
type Commands struct {
	// Launch brings a team to work in the background: on a goal, or where it stopped with "".
	Launch func(ctx context.Context, goal string) error
	// Merge takes what has landed to the user's branch, and returns what there is to say about it.
	Merge func(ctx context.Context) (string, error)
}

// Run shows the team until the user quits or ctx ends. The error wraps terminal.ErrNoTerminal without a terminal.
func Run(ctx context.Context, o Options) error {
	m := newModel(o.Paint, o.Now())
	if o.Hide != nil {
		m.hide = o.Hide
	}
	m.ask = func(f func(context.Context, teamAPI) tea.Msg) tea.Cmd {
		return func() tea.Msg { return f(ctx, api{o.Team, o.Known, o.Commands}) }
	}
	m.canStart = o.Commands.Launch != nil
	f := &feed{team: o.Team, hasState: o.HasState, now: o.Now}
	f.changed, f.isNew = make(chan struct{}, 1), make(chan struct{}, 1)
	if o.HasState() {
		// The first frame has the team already: nobody sees an empty screen. The feed reads it again a moment later,
		// because events may have come in between.
		first := changedMsg{}
		first.overview, first.err = face.Overview(ctx, o.Team, o.Now())
		m.first = m.apply(first)
	}
	return terminal.RunFullScreen(ctx, o.In, o.Out, o.Paint.IsOn(), m, f.run)
}
