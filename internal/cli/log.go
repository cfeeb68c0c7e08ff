package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/journal"
)

func (a *App) logCommand() *cobra.Command {
	var follow bool
	var task, member string
	c := &cobra.Command{Use: "log", Short: "all events in order", Args: exactly()}
	f := c.Flags()
	f.BoolVarP(&follow, "follow", "f", false, "go on with what happens")
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
		p, err := a.look(ctx)
		if err != nil {
			return err
		}
		defer p.close()
		entries := p.journal.Read(ctx, 0)
		if follow {
			entries = p.journal.Follow(ctx, 0)
		}
		out := logger{app: a, w: a.Stdout, subjects: p.subjects(ctx)}
		out.paint, _ = a.screen(a.Stdout)
		for e, err := range entries {
			switch {
			case errors.Is(err, muster.ErrCorrupt):
				explain(a.Stderr, err.Error(), "")
				continue
			case err != nil:
				return err
			case !want.has(e.Event):
				continue
			}
			if err := out.write(e.Event); err != nil {
				return err
			}
		}
		return context.Cause(ctx)
	}
	return c
}

// wanted is which events are asked for.
type wanted struct {
	task   muster.TaskID
	member muster.Name
}

func (f wanted) has(e muster.Event) bool {
	return (f.task == 0 || e.Task == f.task) &&
		(f.member == "" || e.Member == f.member || e.Text("to") == string(f.member) || e.Text("by") == string(f.member))
}

// logger prints events as they stand in the journal.
type logger struct {
	app      *App
	w        io.Writer
	paint    paint
	subjects func(muster.TaskID) string
	day      string
	check    string
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
	at := muster.Time(e.At).Local()
	if day := at.Format("2006-01-02"); day != l.day {
		l.day = day
		if _, err := fmt.Fprintln(l.w, l.paint.in(faint, day)); err != nil {
			return err
		}
	}
	for _, x := range lines(e, facts{l.subjects, l.check}) {
		s := fmt.Sprintf("%s  %s %s %s", at.Format("15:04:05"), l.paint.who(x.who, pad(x.who, 8)), l.paint.in(x.tone, pad(x.verb, 6)), x.text)
		if _, err := fmt.Fprintln(l.w, strings.TrimRight(s, " ")); err != nil {
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
