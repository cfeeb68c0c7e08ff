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
	"muster/team"
)

// screenful is how many events log -f begins with on a terminal.
const screenful = 20

// eventFilter is which events are printed. The zero value lets every event pass.
type eventFilter struct {
	task   muster.TaskID
	member string
	since  float64 // Unix seconds
	tools  bool    // only calls of tools, with what rules and the user have decided about them
	denied bool    // only what a rule or the user has denied
	isLast bool    // only the last of them
	last   int
}

// newLogCommand returns muster log. Without a team it fails with ErrNoTeam, because an empty log would look like a
// team that has done nothing.
func newLogCommand(a *App) *cobra.Command {
	var filter eventFilter
	var follow, all bool
	var since time.Duration
	var task string
	c := &cobra.Command{Use: "log", Short: "all events in order", Args: namedArgs(),
		Long: fmt.Sprintf("With -f on a terminal it begins with the last %d events; elsewhere, and without -f, "+
			"with the first.", screenful)}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what happens")
	c.Flags().IntVarP(&filter.last, "lines", "n", 0, "begin with the last `N` events")
	c.Flags().BoolVar(&all, "all", false, "begin with the first event, with -f on a terminal too")
	c.Flags().DurationVar(&since, "since", 0, "only what happened in the last `TIME`, such as 10m or 2h")
	c.Flags().StringVar(&task, "task", "", "only what concerns the task `ID`")
	c.Flags().BoolVar(&filter.tools, "tools", false, "only calls of tools, with their rules and results")
	c.Flags().BoolVar(&filter.denied, "denied", false, "only calls that permissions have denied")
	c.Flags().StringVar(&filter.member, "member", "", "only what `NAME` did")
	// What the flags mean is found out before the workspace is opened. On a terminal log -f begins with one screen of
	// events, and elsewhere with all of them, because a program that reads them must miss none.
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if task != "" {
			if filter.task, err = parseTaskID(c, task); err != nil {
				return err
			}
		}
		// -n 0 asks for something too: for nothing that has happened, and with -f for what comes.
		filter.isLast = c.Flags().Changed("lines")
		switch {
		case all && filter.isLast:
			return &usageError{c.CommandPath(), "--all and -n exclude each other"}
		case filter.last < 0 || since < 0:
			return &usageError{c.CommandPath(), "-n and --since cannot be negative"}
		case !filter.isLast && follow && a.screen(a.Stdout).Width > 0 && !a.json && !all && since == 0:
			filter.isLast, filter.last = true, screenful
		}
		if since > 0 {
			filter.since = muster.UnixTime(a.Now().Add(-since))
		}
		return a.looking(nil, func(c *cobra.Command, o opened, _ []string) error {
			// Subjects are looked up when an event needs one: most events have their own.
			p := &eventPrinter{app: a, out: a.Stdout, paint: a.screen(a.Stdout).Paint,
				subjects: subjects(c.Context(), o.Tasks())}
			err := p.printLog(c.Context(), o.Journal(), filter, follow)
			if err == nil && !p.hasPrinted && !follow {
				err = checkFilter(c.Context(), o, filter)
			}
			return err
		})(c, args)
	}
	return a.paged(c, "follow")
}

// checkFilter returns an error for a member or a task that nobody has heard of: a mistyped name has no events either.
// Others than members have events too, such as landing.
func checkFilter(ctx context.Context, o opened, f eventFilter) (err error) {
	// A task that was deleted has events, so it does not come here.
	if f.task != 0 {
		_, err = o.Tasks().Get(ctx, f.task)
	}
	// These have events and no record on the roster, or may not have joined yet.
	switch name := muster.Name(f.member); name {
	case "", muster.Lead, muster.User, muster.System, "landing":
		return err
	default:
		return cmp.Or(err, o.Members().HasConversation(ctx, name))
	}
}

// matches reports whether an event is wanted. What concerns a member is what it did, and what was done to it: mail
// to it, a task that was taken from it.
func (f eventFilter) matches(e muster.Event) bool {
	isDecision := e.Kind == journal.PermissionDecided
	isDenied := isDecision && e.Text("outcome") == "denied"
	isCall := isDecision || e.Kind == journal.ToolStarted || e.Kind == journal.ToolEnded
	return (!f.tools || isCall) && (f.task == 0 || e.Task == f.task) && e.At >= f.since && (!f.denied || isDenied) &&
		(f.member == "" || string(e.Member) == f.member || e.Text("to") == f.member || e.Text("by") == f.member ||
			e.Text("agent") == f.member)
}

// printLog prints what is wanted, and with follow what comes. Reading and following use one position, so no event is
// printed twice and none is left out in between.
func (p *eventPrinter) printLog(ctx context.Context, j *journal.Journal, filter eventFilter, follow bool) error {
	var after muster.Pos
	if filter.isLast {
		kept, end, err := readLast(ctx, j, filter)
		if err != nil {
			return err
		}
		for _, e := range kept {
			if err := p.print(e); err != nil {
				return err
			}
		}
		if !follow {
			return context.Cause(ctx)
		}
		after = end
	}
	// What is there goes out in large pieces, and what comes then at once.
	out := p.out
	buffer := bufio.NewWriterSize(out, 64<<10)
	p.out = buffer
	after, err := p.printAll(ctx, j.Read(ctx, after), filter, after)
	p.out = out
	// The buffer is flushed even after an error, so that what was read before it is printed.
	if e := buffer.Flush(); err == nil {
		err = e
	}
	if err == nil && follow {
		_, err = p.printAll(ctx, j.Follow(ctx, after), filter, after)
	}
	return cmp.Or(err, context.Cause(ctx))
}

// printAll prints the wanted ones of some entries and returns the place after the last entry. A line that cannot be
// read is reported on stderr and hides no other one.
func (p *eventPrinter) printAll(
	ctx context.Context, entries iter.Seq2[journal.Entry, error], filter eventFilter, after muster.Pos,
) (muster.Pos, error) {
	for e, err := range entries {
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			return after, err
		}
		// An entry that cannot be read also has a position, so following goes on behind it.
		after = max(after, e.Pos)
		if err != nil {
			explain(p.app.Stderr, muster.PlainText(err), "")
		} else if filter.matches(e.Event) {
			if err := p.print(e.Event); err != nil {
				return after, err
			}
		}
		if ctx.Err() != nil { // Ctrl-C while a long journal is printed
			break
		}
	}
	return after, nil
}

// readLast returns the last of the wanted events, and the place behind what was read. It keeps at most twice as
// many events as it returns.
func readLast(
	ctx context.Context, j *journal.Journal, filter eventFilter,
) (kept []muster.Event, end muster.Pos, err error) {
	last := filter.last
	// Where every event is wanted, the place of the last ones is known, and nothing before it is read.
	if filter == (eventFilter{isLast: true, last: last}) || last == 0 {
		if end, err = j.Tail(ctx, last); err != nil {
			return nil, 0, err
		}
	}
	for e, err := range j.Read(ctx, end) {
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			return nil, 0, err
		}
		end = e.Pos
		if err != nil || !filter.matches(e.Event) {
			continue
		}
		kept = append(kept, e.Event)
		if len(kept) >= 2*last { // the older half goes, so that memory does not grow with the journal
			kept = append(kept[:0], kept[len(kept)-last:]...)
		}
	}
	return kept[max(len(kept)-last, 0):], end, nil
}

// eventPrinter prints events of the journal, for one muster log. It keeps what follows from one event to
// the next: the day that was printed, and the command of the last check.
type eventPrinter struct {
	app      *App
	out      io.Writer
	paint    view.Paint
	subjects func(muster.TaskID) string
	check    string
	day      string
	// hasPrinted says that some event was wanted.
	hasPrinted bool
}

// print prints an event: as one line of JSON, or as the lines that package view makes of it, after the day where a new
// one begins.
func (p *eventPrinter) print(e muster.Event) error {
	p.hasPrinted = true
	if p.app.json {
		return writeEvent(p.out, e)
	}
	if e.Kind == journal.CheckBase {
		// Later events report the result of the check without naming its command.
		p.check = e.Text("command")
	}
	at := muster.Time(e.At).Local()
	var text []byte
	if day := at.Format("2006-01-02"); day != p.day {
		p.day = day
		text = append(text, p.paint.In(view.Faint, day)+"\n"...)
	}
	for _, x := range view.Lines(e, view.Facts{Subject: p.subjects, Check: p.check}) {
		text = append(x.Append(text, p.paint, at.Format("15:04:05  "), 8, 0), '\n')
	}
	_, err := p.out.Write(text)
	return err
}

// subjects returns a function that looks the subjects of tasks up, each once. A task that was deleted has no
// subject, and that is remembered too, so that the board is not asked again.
func subjects(ctx context.Context, tasks team.Tasks) func(muster.TaskID) string {
	known := map[muster.TaskID]string{}
	return func(id muster.TaskID) string {
		s, ok := known[id]
		if !ok && id != 0 {
			if t, err := tasks.Get(ctx, id); err == nil {
				s = t.Subject
			}
			known[id] = s
		}
		return s
	}
}
