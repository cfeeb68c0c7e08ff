package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"muster"
	"muster/internal/chat"
	"muster/internal/durable"
	"muster/internal/terminal"
	"muster/internal/view"
	"muster/journal"
)

// openFace opens the terminal, or the pipe where there is none.
func (c *conversation) openFace(ctx context.Context) error {
	a := c.app
	in := a.terminalIn()
	if out, ok := a.Stdout.(*os.File); ok && in != nil {
		paint := a.screen(a.Stdout).paint
		names := chat.Names{Members: func() []string { return c.memberNames(ctx) },
			Requests: func() []string { return c.requestIDs(ctx) }}
		c.progress = newMemberLines(c, paint) // before the terminal asks for its rows
		var err error
		c.terminal, err = terminal.Open(ctx, terminal.Options{In: in, Out: out, Prompt: "> ",
			History: c.history().Lines(), Complete: names.Complete, Colour: bool(paint),
			Status: func(width int) []string { return c.progress.rows(width) }})
		if err == nil {
			c.face = c.terminal
			return nil
		}
		if !errors.Is(err, terminal.ErrNoTerminal) {
			return err
		}
	}
	c.face = chat.NewPipe(c.piped, a.Stdout, a.Stderr)
	c.progress = newMemberLines(c, a.screen(a.Stderr).paint)
	return nil
}

// memberLines shows what happens in the team: as lines above the prompt, and one line for each member below them. The
// session prints the lines, and the terminal asks for the rows of the members, so both are guarded by a lock.
type memberLines struct {
	mu       sync.Mutex
	progress *view.Progress
	paint    view.Paint
	now      func() time.Time
}

// newMemberLines returns the lines of a conversation. It looks tasks up without the context of the session, because
// the terminal asks for rows until it is closed.
func newMemberLines(c *conversation, paint view.Paint) *memberLines {
	task := func(id muster.TaskID) (muster.Task, error) { return c.w.Board().Get(context.Background(), id) }
	return &memberLines{now: c.app.Now, paint: paint, progress: view.NewProgress(view.Options{Out: lineWriter{c},
		Paint: paint, Start: c.app.Now(), Members: func([]string) {}, Task: task})}
}

// Event shows an event.
func (m *memberLines) Event(e muster.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.progress.Event(e)
}

// Tick shows the passing of time.
func (m *memberLines) Tick(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.progress.Tick(now)
}

// close prints what is still held back.
func (m *memberLines) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.progress.Close()
}

// rows returns the lines of the living members.
func (m *memberLines) rows(width int) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.progress.Resize(width)
	return m.progress.Rows(m.now(), width)
}

// lineWriter prints whole lines on the conversation's face.
type lineWriter struct{ c *conversation }

// Write prints the lines in data.
func (w lineWriter) Write(data []byte) (int, error) {
	if text := strings.TrimRight(string(data), "\n"); text != "" {
		w.c.face.Print(text)
	}
	return len(data), nil
}

// events returns what happens from where the conversation began.
func (c *conversation) events(ctx context.Context) <-chan journal.Entry {
	return followJournal(ctx, c.w.Journal(), c.from)
}

// takeMail returns and removes what was written to the user.
func (c *conversation) takeMail(ctx context.Context) (lines []string) {
	all, end, err := waitingMail(ctx, c.w.Mail(ctx), muster.User)
	if err != nil || len(all) == 0 {
		return nil
	}
	for _, m := range all {
		from := c.progress.paint.Who(string(m.From), view.OneLine(string(m.From)))
		lines = append(lines, fmt.Sprintf("%s to you: %s", from, indentedBody(m)))
	}
	// When it fails the mail is shown again. Shown twice is better than not at all.
	_ = c.w.Mail(ctx).Drop(ctx, muster.User, end)
	return lines
}

// command runs a muster command and returns what it prints.
func (c *conversation) command(ctx context.Context, args ...string) string {
	var out bytes.Buffer
	a := *c.app
	a.endsProcess, a.logFile = false, nil // the log is the conversation's
	a.Args, a.Dir, a.dir, a.Stdin, a.Stdout, a.Stderr = args, c.w.Root(), "", strings.NewReader(""), &out, &out
	if c.terminal != nil {
		width, _ := view.TerminalWidth(c.app.Stdout)
		a.screenShape = &screen{c.progress.paint, width}
	}
	a.Run(ctx)
	return out.String()
}

// memberNames returns the names of the members, for completion. An error means that nothing is completed.
func (c *conversation) memberNames(ctx context.Context) (names []string) {
	members, _ := c.w.Roster(ctx).List(ctx)
	for _, m := range members {
		names = append(names, string(m.Name))
	}
	return names
}

// requestIDs returns the ids of the requests that wait, for completion. An error means that nothing is completed.
func (c *conversation) requestIDs(ctx context.Context) (ids []string) {
	all, _ := c.w.Requests(ctx).Pending(ctx)
	for _, r := range all {
		ids = append(ids, string(r.ID))
	}
	return ids
}

// stoppedLines returns the open tasks of a stopped team as lines, and its goal where there are none.
func stoppedLines(run muster.Run, open []muster.Task, isStopped bool) (lines []string) {
	if !isStopped {
		return nil
	}
	if len(open) == 0 {
		return []string{"      goal: " + view.Cut(view.OneLine(run.Goal), 60) + "   no task is open"}
	}
	for _, t := range open {
		lines = append(lines, fmt.Sprintf("%4d  %-40s %s", t.ID, view.Cut(view.OneLine(t.Subject), 40),
			strings.ReplaceAll(string(t.Status), "_", " ")))
	}
	return lines
}

// history is what the user typed here before.
func (c *conversation) history() *chat.History {
	dir := c.w.Paths()
	return chat.OpenHistory(filepath.Join(dir.Team(), "typed.jsonl"), filepath.Join(dir.Locks(), "typed.lock"),
		durable.New(durable.OS{}))
}

// remember returns what adds a line to the history. It waits with that until there is a team: looking makes no state.
func (c *conversation) remember() func(string) {
	h := c.history()
	var early []string
	return func(text string) {
		early = append(early, text)
		if !c.w.HasState() {
			return
		}
		for _, line := range early {
			h.Add(line)
		}
		early = nil
	}
}
