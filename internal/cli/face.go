package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"muster"
	"muster/internal/chat"
	"muster/internal/commands"
	"muster/internal/face"
	"muster/internal/redact"
	"muster/internal/terminal"
	"muster/internal/text"
	"muster/internal/tool/code"
	"muster/internal/view"
	"muster/llm"
	"muster/team"
)

// openFace opens the terminal, or the pipe where there is none. It sets c.face, c.paint and c.progress, and c.terminal
// only where there is one.
func (c *conversation) openFace(ctx context.Context) error {
	a := c.app
	in := a.terminalIn()
	if out := fileOf(a.Stdout); out != nil && in != nil && !isPlain(a) {
		// The terminal asks for names before it is known here.
		var opened atomic.Pointer[terminal.Terminal]
		names := c.names(ctx, func() {
			if t := opened.Load(); t != nil {
				t.CompleteAgain()
			}
		})
		c.paint = a.screen(a.Stdout).Paint
		c.progress = c.newProgress(ctx, true) // before the terminal asks for its rows
		var err error
		c.terminal, err = terminal.Open(ctx, terminal.Options{In: in, Out: out,
			History: chat.OpenHistory(c.workspace.Paths()).Lines(), Complete: names.Complete, Paste: pasted,
			Clipboard: func() (text, said string) { return c.pasteImage(ctx) }, Colour: c.paint.IsOn(),
			Accent: view.Amber, OnGround: c.paint.OnLight, Hint: chat.Hint, HasTitle: c.hasTitle, Status: c.status,
			Editor: func(file string) *exec.Cmd {
				return a.editor(context.WithoutCancel(ctx), file)
			}})
		if err == nil {
			opened.Store(c.terminal)
			c.face = hidingFace{c.terminal, a.secrets}
			return nil
		}
		// A terminal that cannot edit lines is treated as a pipe; any other error ends the conversation.
		if !errors.Is(err, terminal.ErrNoTerminal) {
			return err
		}
	}
	// Without a terminal the words of the lead go to stdout and everything else to stderr, so that a script can tell
	// them apart.
	c.face = chat.NewPipe(c.piped, a.Stdout, a.Stderr)
	c.paint = a.screen(a.Stderr).Paint
	c.progress = c.newProgress(ctx, false)
	return nil
}

// status returns what stands above the prompt of a terminal.
func (c *conversation) status(width int) terminal.Status {
	now := c.app.Now()
	rows := c.progress.Rows(now, width, terminal.StatusRows(view.TerminalHeight(c.app.Stdout)))
	s := terminal.Status{Lines: rows}
	if c.isNew && c.running.Load() == nil {
		if s.Empty = "say what is to be done"; width > 70 {
			s.Empty += ", such as: add a test for the parser"
		}
	}
	if c.hasTitle {
		s.Title = c.progress.Title(filepath.Base(c.Root()))
	}
	for _, r := range c.progress.Questions() {
		q := face.Ask(r, c.paint, now, width, c.progress.Subject)
		if c.isStopped && c.running.Load() == nil {
			q.Note = "an answer goes on with the team"
		}
		s.Questions, s.Empty = append(s.Questions, q), "or write a message"
	}
	return s
}

func (c *conversation) customCommands() []commands.Command {
	return append(customCommands(c.app, c.Root()), promptCommands(c.running.Load())...)
}

func customCommands(a *App, root string) []commands.Command {
	return commands.Find(root, a.env("HOME"), userDir(a), chat.Builtin())
}

// hidingFace is a terminal on which no secret is printed. What streams has none: it comes from a model of the team.
type hidingFace struct {
	chat.Face
	secrets *redact.Secrets
}

// Print prints lines above the prompt.
func (f hidingFace) Print(lines string) { f.Face.Print(f.secrets.String(lines)) }

// Echo shows what the user has said.
func (f hidingFace) Echo(text string) { f.Face.Echo(f.secrets.String(text)) }

// fileOf returns the file that a writer writes to, or nil where it is none.
func fileOf(out io.Writer) *os.File {
	if w, ok := out.(*redact.Writer); ok {
		out = w.Unwrap()
	}
	f, _ := out.(*os.File)
	return f
}

// newProgress returns the progress of a conversation, in which one key answers a question where it isKeyed. The session
// prints its lines, and the terminal asks for the rows of the members. The end of ctx does not end its look-ups of
// tasks, because the terminal asks until it is closed.
func (c *conversation) newProgress(ctx context.Context, isKeyed bool) *view.Progress {
	ctx = context.WithoutCancel(ctx)
	task := func(id muster.TaskID) (muster.Task, error) { return c.Tasks().Get(ctx, id) }
	// The face adds a newline of its own.
	print := func(text string) { c.face.Print(strings.TrimRight(text, "\n")) }
	settings, _, _ := c.workspace.Settings(nil) // what is wrong with them is said where the run begins
	c.hasTitle = !settings.NoTitle && terminal.HasTitles(c.app.env("TERM"))
	ring := notifier(c.app, settings.Notify, func(sequence string) {
		if c.terminal != nil {
			c.terminal.Ring(sequence)
		}
	})
	return view.NewProgress(view.Options{Print: print, Notify: ring, Screen: view.Screen{Paint: c.paint},
		Start: c.app.Now(), OnlyLines: true, OneKey: isKeyed, Task: task,
		Below:  c.below,
		Window: windowOf(c.app, settings),
		Board:  func() (view.Overview, error) { return face.Board(ctx, c.Team) }})
}

// takeMail shows and removes what was written to the user. An error is taken as no mail: the session asks again, and
// the mail still waits.
func (c *conversation) takeMail(ctx context.Context) {
	// When the mail cannot be removed, it is shown again: shown twice is better than not at all.
	_ = c.Mail().Take(ctx, func(all []muster.Message) error {
		for _, m := range all {
			// The name is painted in the colour that the member has everywhere.
			from := c.paint.Who(string(m.From), text.OneLine(string(m.From)))
			// It is printed before it is removed from the inbox, so a crash in between loses nothing.
			c.face.Print(from + " to you: " + indentedBody(m))
		}
		return nil
	})
}

// openCall returns a call of a tool of the lead as it is printed: by the number in its line, or the last one.
func (c *conversation) openCall(ctx context.Context, number string) string {
	n, err := strconv.Atoi(cmp.Or(number, "0"))
	if err != nil || n < 0 {
		return fmt.Sprintf("%q is not the number of a tool call: /open 3, or /open for the last one", number)
	}
	ended, ok := c.progress.Call(n)
	if !ok && n == 0 {
		return "the lead has called no tool since this conversation was opened"
	} else if !ok {
		return fmt.Sprintf("there is no tool call %d: the lines of the lead's tools have their numbers", n)
	}
	call, err := c.Members().Call(ctx, muster.Lead, ended.Text("call"))
	if err != nil {
		return muster.PlainText(err)
	}
	input := call.Input
	e, isEdit := code.EditOf(llm.Call{Name: call.Tool, Input: call.Input})
	isEdit = isEdit && !call.IsError // what a call would have changed is in its input
	said := "as the call says"
	if isEdit { // the difference says the rest
		if _, isKnown := ended.Fields["added"]; isKnown {
			if changed := code.ReadUnified(ended.Text("output")); !changed.IsCut {
				e, said = changed, "changes "+changed.Counts()
			}
		}
		var path struct {
			Path string `json:"path,omitempty"`
		}
		_ = json.Unmarshal(input, &path) // a patch names its files itself
		input, _ = json.Marshal(path)    // a string always can be
	}
	whole := view.ToolCall(c.paint, call.Tool, input, call.Output, call.HasEnded, call.IsError)
	if isEdit {
		width, _ := view.TerminalWidth(c.app.Stdout)
		rows := face.EditRows(c.paint, e, 0, "", editIndent, max(width, 160))
		whole += "\n  " + c.paint.In(view.Faint, said) + "\n" + strings.Join(rows, "\n")
	}
	return whole
}

// editIndent is the columns before the lines of an edit.
const editIndent = 9

// below returns what a call of a tool of the lead has changed or printed, as Options.Below of a progress.
func (c *conversation) below(ended muster.Event, number int) (counts string, rows []string) {
	width, _ := view.TerminalWidth(c.app.Stdout)
	if c.terminal == nil { // nothing is cut in a pipe
		width = 160
	}
	indent := editIndent
	if width < 60 {
		indent = 2
	}
	output := ended.Text("output")
	if _, isEdit := ended.Fields["added"]; !isEdit {
		return "", face.OutputRows(output, indent, width)
	}
	e := code.ReadUnified(output)
	e.Added, e.Removed = int(ended.Number("added")), int(ended.Number("removed")) // also of the lines that are cut
	how := fmt.Sprintf("/open %d", number)
	return e.Counts(), face.EditRows(c.paint, e, face.PreviewLines, how, indent, width)
}

// command runs a muster command. It returns what that prints, and whether it succeeds.
func (c *conversation) command(ctx context.Context, args ...string) (printed string, ok bool) {
	var shape *view.Screen
	if c.terminal != nil {
		width, _ := view.TerminalWidth(c.app.Stdout)
		shape = &view.Screen{Paint: c.paint, Width: width}
	}
	return c.app.within(ctx, c.Root(), shape, args)
}

// within runs a muster command in this process, in the directory dir. It returns what that prints for a screen of a
// shape, nil for a pipe, and whether it succeeds. A command that the user types behaves as it does in a shell. Only its
// input is empty, its limits of memory are not applied to this process, and it cannot leave the terminal.
func (a *App) within(ctx context.Context, dir string, shape *view.Screen, args []string) (printed string, ok bool) {
	var out bytes.Buffer
	// The copy is shallow: the flags of the command change only the copy.
	c := *a
	c.endsProcess, c.foreground, c.logFile = false, nil, nil // the log is the caller's
	c.Args, c.Dir, c.dir, c.Stdin, c.Stdout, c.Stderr = args, dir, "", strings.NewReader(""), &out, &out
	c.screenShape = shape
	ok = c.Run(ctx) == 0
	return out.String(), ok
}

// stoppedHere returns the open tasks of a team that has stopped, or its goal if no task is open, and how to go on.
// questions is how many wait for the user.
func stoppedHere(state team.RunState, questions int) string {
	open := view.OpenTasks(state.Open, 40, "muster task list")
	if len(open) == 0 {
		words := "      goal: " + text.CutColumns(text.OneLine(state.Run.Goal), 60)
		if state.Run.Goal == "" {
			words = "      you said: " + text.CutColumns(text.OneLine(state.Run.FirstWords), 60)
		}
		open = []string{words + "   no task is open"}
	}
	goOn := "/resume, or say what you want"
	if questions > 0 {
		goOn = "answer below, " + goOn
	}
	return "a team stopped here with this open:\n" + strings.Join(open, "\n") +
		"\ngo on: " + goOn + "\nput it aside: /archive --yes"
}

// remember returns a function that adds a line to the history. Until there is a team, it holds the lines in memory,
// because a conversation that begins no run must create no state.
func (c *conversation) remember(ctx context.Context) func(string) {
	ctx = context.WithoutCancel(ctx) // what was typed before an interruption is kept too
	h := chat.OpenHistory(c.workspace.Paths())
	var early []string
	return func(text string) {
		early = append(early, text)
		if !c.workspace.HasState() {
			return
		}
		// The lines that were typed before the team had state are written with the first one after that.
		for _, line := range early {
			h.Add(ctx, c.app.secrets.String(line))
		}
		early = nil
	}
}
