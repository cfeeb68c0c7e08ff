package cli

import (
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"muster"
	"muster/internal/chat"
	"muster/internal/face"
	"muster/internal/terminal"
	"muster/internal/view"
	"muster/team"
)

// runKeys lets one key answer the questions of muster run. The terminal is taken only while a question waits, so that
// what is typed at other times stays for the shell.
type runKeys struct {
	app      *App
	team     *team.Team
	root     string
	paint    view.Paint
	progress *view.Progress
	in, out  *os.File
	// isOff says that the user has typed something before a question came. It is for the shell, so no key is taken.
	isOff bool

	mu   sync.Mutex
	open *terminal.Terminal // nil: no question waits
	// isClosing says that the terminal is being given back, and late is what is printed meanwhile.
	isClosing bool
	late      strings.Builder
}

const (
	// typingPause is how long no key must have been pressed before the terminal is given back: the shell would get the
	// rest of a line that is being typed.
	typingPause = 2 * time.Second
	// maxTyping is how long the end of a run waits for that.
	maxTyping = 10 * time.Second
)

// newRunKeys returns nil where there is no terminal with a user who could press a key.
func newRunKeys(a *App, t *team.Team, root string) *runKeys {
	if !a.canTakeKeys() {
		return nil
	}
	return &runKeys{app: a, team: t, root: root, paint: liveScreen(a).Paint, in: a.terminalIn(), out: fileOf(a.Stderr)}
}

// canTakeKeys reports whether the user of a run can answer by a key.
func (a *App) canTakeKeys() bool {
	return a.terminalIn() != nil && fileOf(a.Stderr) != nil && liveScreen(a).Width > 0 && !a.json && a.foreground == nil
}

// update takes the terminal when a question waits, and gives it back when none does.
func (k *runKeys) update(ctx context.Context) {
	isAsked, t := len(k.progress.Questions()) > 0, k.terminal()
	switch {
	case t != nil:
		if !isAsked && !t.HasDraft() && t.SinceKey() > typingPause {
			k.close()
		}
	case isAsked && !k.isOff && terminal.IsForeground(k.in):
		if k.isOff = hasTyped(k.in); !k.isOff {
			k.take(ctx)
		}
	}
}

// end gives the terminal back at the end of the run.
func (k *runKeys) end() {
	if k == nil {
		return
	}
	for t, began := k.terminal(), time.Now(); t != nil && t.SinceKey() < typingPause && time.Since(began) < maxTyping; {
		time.Sleep(typingPause / 20)
	}
	k.close()
}

// terminal returns the terminal, or nil while no question waits.
func (k *runKeys) terminal() *terminal.Terminal {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.open
}

// take opens the terminal. Where it cannot be opened, the questions stay in the rows, with the commands that answer.
func (k *runKeys) take(ctx context.Context) {
	k.progress.DrawnBy(k.print)
	k.mu.Lock()
	defer k.mu.Unlock()
	t, err := terminal.Open(ctx, terminal.Options{In: k.in, Out: k.out, Colour: k.paint.IsOn(), Accent: view.Amber,
		Status: k.status})
	if err != nil {
		k.isOff = true
		go k.progress.DrawnBy(nil) // it may print, which needs the lock
		return
	}
	k.open = t
	go k.answer(ctx, t)
}

// close gives the terminal back.
func (k *runKeys) close() {
	k.mu.Lock()
	t := k.open
	k.open, k.isClosing = nil, t != nil
	k.mu.Unlock()
	if t == nil {
		return
	}
	_ = t.Close() // there is nothing to do when the terminal cannot be restored
	k.mu.Lock()
	_, _ = io.WriteString(k.app.Stderr, k.late.String()) // as in print
	k.isClosing = false
	k.late.Reset()
	k.mu.Unlock()
	k.progress.DrawnBy(nil)
}

// print prints whole lines.
func (k *runKeys) print(lines string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.open != nil:
		k.open.Print(strings.TrimRight(k.app.secrets.String(lines), "\n"))
	case k.isClosing:
		k.late.WriteString(lines)
	default:
		_, _ = io.WriteString(k.app.Stderr, lines) // a run goes on without a reader
	}
}

// status returns what stands above the input.
func (k *runKeys) status(width int) terminal.Status {
	now := k.app.Now()
	rows := k.progress.Rows(now, width, terminal.StatusRows(view.TerminalHeight(k.out)))
	s := terminal.Status{Lines: rows}
	for _, r := range k.progress.Questions() {
		r.Plan, r.Reason = k.app.secrets.String(r.Plan), k.app.secrets.String(r.Reason)
		r.Change = k.app.secrets.String(r.Change)
		s.Questions = append(s.Questions, face.Ask(r, k.paint, now, width, k.progress.Subject))
	}
	return s
}

// answer does what the user types, until the terminal is closed.
func (k *runKeys) answer(ctx context.Context, t *terminal.Terminal) {
	answers := chat.Answers{Print: func(lines string) { k.print(lines + "\n") }, Fill: t.Fill,
		Waiting: func(ctx context.Context) (all, shown []muster.Request) {
			return usersRequests(ctx, k.team), k.progress.Questions()
		},
		Command: func(ctx context.Context, args ...string) (string, bool) {
			width, _ := view.TerminalWidth(k.out)
			return k.app.within(ctx, k.root, &view.Screen{Paint: k.paint, Width: width}, args)
		}}
	for e := range t.Events() {
		switch e := e.(type) {
		case terminal.Answer:
			answers.Key(ctx, e)
			t.Refresh()
		case terminal.Line:
			name, rest, _ := strings.Cut(strings.TrimPrefix(e.Text, "/"), " ")
			if isAnswer := name == "approve" || name == "reject"; isAnswer && strings.HasPrefix(e.Text, "/") {
				answers.Line(ctx, name, strings.TrimSpace(rest))
				t.Refresh()
			} else {
				k.print("this was not sent; to the lead: muster mail send lead \"...\", in another terminal\n")
			}
		case terminal.Interrupt: // as Ctrl-C does while no question waits
			if p, err := os.FindProcess(os.Getpid()); err == nil {
				_ = p.Signal(os.Interrupt)
			}
		}
	}
}
