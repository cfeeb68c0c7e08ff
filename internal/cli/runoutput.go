package cli

import (
	"context"
	"io"
	"iter"
	"sync"
	"time"

	"muster"
	"muster/internal/view"
	"muster/journal"
	"muster/team"
)

// listener gets what happens: people, or with --json a program.
type listener interface {
	Event(muster.Event)
	Tick(time.Time)
	Close()
}

// lockedListener is a listener for several goroutines: events come from the journal, and those that the journal could
// not take from the team's own goroutines.
type lockedListener struct {
	mu       sync.Mutex
	listener listener
}

// Event shows an event.
func (l *lockedListener) Event(e muster.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listener.Event(e)
}

// Tick shows the passing of time. It is called while nothing else happens.
func (l *lockedListener) Tick(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listener.Tick(now)
}

// Close shows what is still held back.
func (l *lockedListener) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listener.Close()
}

// runOutput prints what happens in a run.
type runOutput struct {
	lockedListener
	app     *App
	journal *journal.Journal
}

// newRunOutput returns the output of a run, which resumes an earlier one or begins. Until the first event arrives,
// its opening line says what the team does first. The end of ctx does not end it: the team still writes events while it
// ends its turns.
func newRunOutput(ctx context.Context, a *App, t *team.Team, resumes bool) *runOutput {
	ctx = context.WithoutCancel(ctx)
	out := &runOutput{app: a, journal: t.Journal()}
	if a.json {
		out.listener = jsonLines{a.Stdout}
		return out
	}
	opening := "makes the team ready"
	if resumes {
		opening = "finds what the team has left: tasks, lanes, conversations"
	}
	run, _ := t.LastRun(ctx) // without it a check is named a little later
	out.listener = view.NewProgress(view.Options{Out: a.Stderr, Screen: a.screen(a.Stderr), Start: a.Now(),
		Check: run.Check, Opening: opening,
		Task: func(id muster.TaskID) (muster.Task, error) { return t.Tasks().Get(ctx, id) }})
	return out
}

// emit takes what a team emits, and prints the events that its journal could not take. All else that a team emits
// is what models say, and is not shown in a run without a conversation.
func (o *runOutput) emit(_ muster.Name, v any) {
	if e, ok := v.(muster.Event); ok {
		o.Event(e)
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
	defer o.Close()
	following, stop := context.WithCancel(ctx)
	defer stop()
	var printing sync.WaitGroup
	printing.Go(func() { from = o.printAll(o.journal.Follow(following, from), from) })
	printing.Go(func() {
		for tick := time.Tick(view.RedrawInterval); following.Err() == nil; {
			select {
			case <-tick:
				o.Tick(o.app.Now())
			case <-following.Done():
			}
		}
	})
	do()
	stop()
	printing.Wait()
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
			o.Event(e.Event)
			last = e.Pos
		}
	}
	return last
}

// jsonLines prints one event a line. A program can read the events while the run goes on.
type jsonLines struct{ w io.Writer }

// Event prints an event. Nobody may be reading any more, and the run goes on without a reader.
func (j jsonLines) Event(e muster.Event) {
	if data, err := muster.MarshalLine(e); err == nil {
		_, _ = j.w.Write(append(data, '\n'))
	}
}

// Tick does nothing: only events are printed.
func (jsonLines) Tick(time.Time) {}

// Close does nothing.
func (jsonLines) Close() {}
