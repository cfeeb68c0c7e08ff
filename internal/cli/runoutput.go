package cli

import (
	"context"
	"io"
	"iter"
	"sync"
	"time"

	"muster"
	"muster/internal/config"
	"muster/internal/face"
	"muster/internal/spend"
	"muster/internal/terminal"
	"muster/internal/view"
	"muster/journal"
	"muster/team"
)

// runOutput prints what happens in a run: for people as progress, or with --json as one event a line, which a program
// can read while the run goes on.
type runOutput struct {
	app      *App
	journal  *journal.Journal
	progress *view.Progress // nil with --json
	keys     *runKeys       // nil where no key answers
	printing sync.Mutex     // held while a line of JSON is written: events come from several goroutines
}

// newRunOutput returns the output of a run, which resumes an earlier one or begins. Until the first event arrives,
// its opening line says what the team does first. The end of ctx does not end it: the team still writes events while it
// ends its turns.
func newRunOutput(ctx context.Context, a *App, o opened, s config.Settings, resumes bool) *runOutput {
	ctx = context.WithoutCancel(ctx)
	t := o.Team
	out := &runOutput{app: a, journal: t.Journal()}
	if a.json {
		return out
	}
	opening := "makes the team ready"
	if resumes {
		opening = "finds what the team has left: tasks, lanes, conversations"
	}
	// A failure is not reported: a run goes on when nobody can read its progress.
	print := func(text string) { _, _ = io.WriteString(a.Stderr, text) }
	// A run that leaves the terminal says only that it has begun, or why it cannot.
	if a.foreground != nil {
		print = func(string) {}
	}
	ring := func(sequence string) {
		if t := out.keys.terminal(); t != nil {
			t.Ring(sequence)
		} else {
			print(sequence)
		}
	}
	run, _ := t.LastRun(ctx) // without it a check is named a little later
	out.keys = newRunKeys(a, t, o.Root())
	options := view.Options{Print: print, Notify: notifier(a, s.Notify, ring), Screen: liveScreen(a), Start: a.Now(),
		Check: run.Check, Opening: opening, Rewraps: terminal.Rewraps(), OneKey: out.keys != nil,
		Size: func() (width, height int) {
			width, _ = view.TerminalWidth(a.Stderr)
			return width, view.TerminalHeight(a.Stderr)
		},
		Board:  func() (view.Overview, error) { return face.Board(ctx, t) },
		Window: windowOf(a, s),
		Task:   func(id muster.TaskID) (muster.Task, error) { return t.Tasks().Get(ctx, id) }}
	out.progress = view.NewProgress(options)
	if out.keys != nil {
		out.keys.progress = out.progress
	}
	out.progress.SetSpent(s.Budgets.Team, spentBefore(ctx, t, resumes))
	if resumes {
		catchUp(ctx, t, out.progress)
	}
	return out
}

// catchUp tells the progress what has happened in the last run so far. Events that cannot be read are left out, and a
// run without a record has none: what the members do is then seen with their next events.
func catchUp(ctx context.Context, t *team.Team, p *view.Progress) {
	run, err := t.LastRun(ctx)
	if err != nil {
		return
	}
	for e, err := range t.Journal().Read(ctx, 0) {
		if err == nil && e.At >= run.StartedAt {
			view.CatchUp(p, e.Event)
		}
	}
}

// spentBefore returns what a run had spent before it goes on: nothing if it begins, or if that cannot be read.
func spentBefore(ctx context.Context, t *team.Team, resumes bool) spend.Book {
	if resumes {
		if spent, err := team.ReadSpending(ctx, t); err == nil {
			return *spent
		}
	}
	return spend.Book{}
}

// event prints an event. Nobody may be reading any more, and the run goes on without a reader.
func (o *runOutput) event(e muster.Event) {
	if o.progress != nil {
		o.progress.Event(e)
		if t := o.keys.terminal(); t != nil {
			t.Refresh()
		}
		return
	}
	o.printing.Lock()
	defer o.printing.Unlock()
	_ = writeEvent(o.app.Stdout, e)
}

// emit takes what a team emits, and prints the events that its journal could not take. All else that a team emits
// is what models say, and is not shown in a run without a conversation. The tests of checks are shown while they run.
func (o *runOutput) emit(_ muster.Name, v any) {
	switch e := v.(type) {
	case muster.Event:
		o.event(e)
	case team.CheckEvent:
		if o.progress != nil {
			o.progress.Test(e.Task, e.Test)
		}
	}
}

// during runs do, and prints the events of meanwhile: those of earlier runs are not printed again. When it returns,
// everything was printed that happened before do returned. It goes on after Ctrl-C, because the end of the run is
// printed too. From its beginning the program stays alive when nobody reads any more what it prints.
func (o *runOutput) during(ctx context.Context, do func()) error {
	catchSIGPIPE()
	ctx = context.WithoutCancel(ctx)
	from, err := o.journal.Tail(ctx, 0)
	if err != nil {
		return err
	}
	// Lines that the progress holds back are written at the end, also those that still wait for a lane.
	if o.progress != nil {
		defer o.progress.Close()
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	var printing sync.WaitGroup
	printing.Go(func() { from = o.printAll(o.journal.Follow(following, from), from) })
	printing.Go(func() {
		for tick := time.Tick(view.RedrawInterval); o.progress != nil && following.Err() == nil; {
			select {
			case <-tick:
				if o.progress.Tick(o.app.Now()); o.keys != nil {
					o.keys.update(ctx)
				}
			case <-following.Done():
			}
		}
	})
	do()
	stop()
	printing.Wait()
	o.keys.end()
	// The watch may be late. What it has not brought yet is read from where it has come to, so each event is printed
	// once.
	o.printAll(o.journal.Read(ctx, from), from)
	return nil
}

// printAll prints entries and returns the position of the last one. It leaves out lines that cannot be read; muster
// doctor tells of them.
func (o *runOutput) printAll(entries iter.Seq2[journal.Entry, error], last muster.Pos) muster.Pos {
	for e, err := range entries {
		if err == nil {
			o.event(e.Event)
			last = e.Pos
		}
	}
	return last
}
