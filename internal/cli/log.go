package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/view"
	"muster/journal"
)

// screenful is how many events log -f begins with on a terminal.
const screenful = 20

func (a *App) logCommand() *cobra.Command {
	var follow, all bool
	var last int
	var since time.Duration
	var task, member string
	c := &cobra.Command{Use: "log", Short: "all events in order", Args: exactly(),
		Long: fmt.Sprintf("With -f on a terminal it begins with the last %d events; elsewhere, and without -f, with the first.", screenful)}
	f := c.Flags()
	f.BoolVarP(&follow, "follow", "f", false, "go on with what happens")
	f.IntVarP(&last, "lines", "n", 0, "begin with the last `N` events")
	f.BoolVar(&all, "all", false, "begin with the first event, with -f on a terminal too")
	f.DurationVar(&since, "since", 0, "only what happened in the last `TIME`, such as 10m or 2h")
	f.StringVar(&task, "task", "", "only what concerns the task `ID`")
	f.StringVar(&member, "member", "", "only what `NAME` did")
	c.RunE = func(c *cobra.Command, _ []string) error {
		ctx := c.Context()
		want := wanted{member: muster.Name(member)}
		if task != "" {
			id, err := taskID(c, task)
			if err != nil {
				return err
			}
			want.task = id
		}
		switch _, terminal := a.screen(a.Stdout); {
		case all && c.Flags().Changed("lines"):
			return &usageError{c.CommandPath(), "--all and -n cannot be had together"}
		case last < 0 || since < 0:
			return &usageError{c.CommandPath(), "-n and --since want more than nothing"}
		case c.Flags().Changed("lines"):
			want.some, want.last = true, last
		case follow && terminal > 0 && !a.json && !all && since == 0:
			want.some, want.last = true, screenful
		}
		if since > 0 {
			want.since = muster.Stamp(a.Now().Add(-since))
		}
		p, err := a.look(ctx)
		if err != nil {
			return err
		}
		defer p.close()
		out := logger{app: a, w: a.Stdout, subjects: p.subjects(ctx)}
		out.paint, _ = a.screen(a.Stdout)
		return p.log(ctx, want, follow, &out)
	}
	return c
}

// log prints what is wanted, and with follow what comes.
func (p *place) log(ctx context.Context, want wanted, follow bool, out *logger) error {
	var after muster.Pos
	if want.some {
		kept, end, err := p.lastEvents(ctx, want)
		if err != nil {
			return err
		}
		for _, e := range kept {
			if err := out.write(e); err != nil {
				return err
			}
		}
		if !follow {
			return context.Cause(ctx)
		}
		after = end
	}
	// What is there goes out in large pieces, what comes then at once.
	w := out.w
	buffer := bufio.NewWriterSize(w, 64<<10)
	out.w = buffer
	after, err := p.logEach(ctx, p.journal.ReadTask(ctx, want.task, after), after, want, out)
	out.w = w
	if e := buffer.Flush(); err == nil {
		err = e
	}
	if err == nil && follow {
		_, err = p.logEach(ctx, p.journal.Follow(ctx, after), after, want, out)
	}
	return cmp.Or(err, context.Cause(ctx))
}

// logEach prints the wanted ones of some entries and returns the place after the last entry.
func (p *place) logEach(ctx context.Context, entries iter.Seq2[journal.Entry, error], after muster.Pos, want wanted, out *logger) (muster.Pos, error) {
	for e, err := range entries {
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			return after, err
		}
		after = max(after, e.Pos)
		switch {
		case err != nil:
			explain(p.app.Stderr, err.Error(), "")
		case want.has(e.Event):
			if err := out.write(e.Event); err != nil {
				return after, err
			}
		}
		if ctx.Err() != nil {
			break
		}
	}
	return after, nil
}

// lastEvents are the last of the wanted events, and the place behind what was read.
func (p *place) lastEvents(ctx context.Context, want wanted) (kept []muster.Event, end muster.Pos, err error) {
	if want.anything() || want.last == 0 {
		if end, err = p.journal.Tail(ctx, want.last); err != nil {
			return nil, 0, err
		}
	}
	for e, err := range p.journal.ReadTask(ctx, want.task, end) {
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			return nil, 0, err
		}
		end = e.Pos
		if err != nil || !want.has(e.Event) {
			continue
		}
		if kept = append(kept, e.Event); len(kept) >= 2*want.last { // the older half goes: nothing grows with the journal
			kept = append(kept[:0], kept[len(kept)-want.last:]...)
		}
	}
	return kept[max(len(kept)-want.last, 0):], end, nil
}

// wanted is which events are asked for.
type wanted struct {
	task   muster.TaskID
	member muster.Name
	since  float64 // Unix seconds
	some   bool    // only the last
	last   int
}

// anything says whether every event is wanted.
func (f wanted) anything() bool { return f.task == 0 && f.member == "" && f.since == 0 }

func (f wanted) has(e muster.Event) bool {
	return (f.task == 0 || e.Task == f.task) && e.At >= f.since &&
		(f.member == "" || e.Member == f.member || e.Text("to") == string(f.member) || e.Text("by") == string(f.member))
}

// logger prints events as they stand in the journal.
type logger struct {
	app      *App
	w        io.Writer
	paint    view.Paint
	subjects func(muster.TaskID) string
	check    string

	// What is written, one after the other.
	lines []view.Line
	line  []byte

	// When the last one was: many events are of the same second.
	second     int64
	day, clock string
}

func (l *logger) write(e muster.Event) error {
	if l.app.json {
		data, err := muster.Line(e)
		if err != nil {
			return err
		}
		_, err = l.w.Write(append(data, '\n'))
		return err
	}
	if e.Kind == journal.CheckBase {
		l.check = e.Text("command")
	}
	if at := muster.Time(e.At); at.Unix() != l.second || l.clock == "" {
		l.second = at.Unix()
		l.clock = at.Local().Format("15:04:05  ")
		if day := at.Local().Format("2006-01-02"); day != l.day {
			l.day = day
			if _, err := io.WriteString(l.w, l.paint.In(view.Faint, day)+"\n"); err != nil {
				return err
			}
		}
	}
	l.lines = view.AppendLines(l.lines[:0], e, view.Facts{Subject: l.subjects, Check: l.check})
	for _, x := range l.lines {
		l.line = append(x.Append(l.line[:0], l.paint, l.clock, 8, 0), '\n')
		if _, err := l.w.Write(l.line); err != nil {
			return err
		}
	}
	return nil
}

// subjects looks tasks' subjects up, each once.
func (p *place) subjects(ctx context.Context) func(muster.TaskID) string {
	known := map[muster.TaskID]string{}
	return func(id muster.TaskID) string {
		s, ok := known[id]
		if !ok && id != 0 {
			if t, err := p.theBoard().Get(ctx, id); err == nil {
				s = t.Subject
			}
			known[id] = s
		}
		return s
	}
}
