package cli

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"muster"
	"muster/internal/chat"
	"muster/internal/durable"
	"muster/internal/view"
	"muster/journal"
)

// shown is what happens in the team, as lines above the prompt, and the members below them. Its lines are said by the
// session, its rows asked for by the terminal.
type shown struct {
	mu       sync.Mutex
	progress *view.Progress
	paint    view.Paint
	app      *App
}

func newShown(c *conversation, pt view.Paint) *shown {
	s := &shown{app: c.app, paint: pt}
	s.progress = view.NewProgress(view.Options{Out: lineWriter{c}, Paint: pt, Start: c.app.Now(), Members: func([]string) {}, Task: func(id muster.TaskID) (muster.Task, error) {
		return c.place.theBoard().Get(context.Background(), id)
	}})
	return s
}

func (s *shown) Event(e muster.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress.Event(e)
}

func (s *shown) Tick(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress.Tick(now)
}

func (s *shown) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress.Close()
}

// rows are the living members.
func (s *shown) rows(width int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress.Resize(width)
	return s.progress.Rows(s.app.Now(), width)
}

// lineWriter prints whole lines on the conversation's face.
type lineWriter struct{ c *conversation }

func (w lineWriter) Write(data []byte) (int, error) {
	if text := strings.TrimRight(string(data), "\n"); text != "" {
		w.c.face.Print(text)
	}
	return len(data), nil
}

// events are what happens from where the conversation began.
func (c *conversation) events(ctx context.Context) <-chan journal.Entry {
	entries := make(chan journal.Entry)
	go func() {
		defer close(entries)
		for e, err := range c.place.journal.Follow(ctx, c.from) {
			if err != nil {
				continue // that a line is broken is the doctor's to say
			}
			select {
			case entries <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	return entries
}

// mail takes what was written to the user.
func (c *conversation) mail(ctx context.Context) (shown []string) {
	post := c.place.thePost(ctx)
	all, end, err := waiting(ctx, post, muster.User)
	if err != nil || len(all) == 0 {
		return nil
	}
	for _, m := range all {
		body := strings.ReplaceAll(strings.TrimSpace(view.ManyLines(m.Content)), "\n", "\n  ")
		from := c.shown.paint.Who(string(m.From), view.OneLine(string(m.From)))
		shown = append(shown, fmt.Sprintf("%s to you: %s", from, body))
	}
	_ = post.Drop(ctx, muster.User, end) // shown twice is better than not at all
	return shown
}

// command runs a muster command and returns what it prints.
func (c *conversation) command(ctx context.Context, args ...string) string {
	var out bytes.Buffer
	in := *c.app
	in.brief, in.logFile = false, nil // the log is the conversation's
	in.Args, in.Dir, in.dir, in.Stdin, in.Stdout, in.Stderr = args, string(c.place.home), "", strings.NewReader(""), &out, &out
	if c.terminal != nil {
		width, _ := view.TerminalWidth(c.app.Stdout)
		in.on = &drawing{c.shown.paint, width}
	}
	in.Run(ctx)
	return out.String()
}

// names are the members.
func (p *place) names(ctx context.Context) (names []string) {
	members, err := p.theRoster(ctx).List(ctx)
	if err != nil {
		return nil
	}
	for _, m := range members {
		names = append(names, string(m.Name))
	}
	return names
}

// pending are the ids of the requests that wait.
func (p *place) pending(ctx context.Context) (ids []string) {
	all, err := p.theRequests(ctx).Pending(ctx)
	if err != nil {
		return nil
	}
	for _, r := range all {
		ids = append(ids, string(r.ID))
	}
	return ids
}

// leftLines are a stopped team's open tasks; its goal where there are none.
func leftLines(run muster.Run, open []muster.Task, stopped bool) (lines []string) {
	if !stopped {
		return nil
	}
	if len(open) == 0 {
		return []string{"      goal: " + view.Cut(view.OneLine(run.Goal), 60) + "   no task is open"}
	}
	for _, t := range open {
		lines = append(lines, fmt.Sprintf("%4d  %-40s %s", t.ID, view.Cut(view.OneLine(t.Subject), 40), strings.ReplaceAll(string(t.Status), "_", " ")))
	}
	return lines
}

// history is what the user typed here before.
func (c *conversation) history() *chat.History {
	h := c.place.home
	return chat.OpenHistory(filepath.Join(h.Team(), "typed.jsonl"), filepath.Join(h.Locks(), "typed.lock"), durable.New(durable.OS{}))
}

// typed remembers lines, once there is a team to remember them with.
func (c *conversation) typed() func(string) {
	h := c.history()
	var early []string
	return func(text string) {
		early = append(early, text)
		if !hasState(c.place.home) {
			return
		}
		for _, line := range early {
			h.Add(line)
		}
		early = nil
	}
}
