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

// listener gets what happens: people, or with --json a program. The calls do not overlap, so a listener needs no
// lock.
type listener interface {
	Event(muster.Event)
	Tick(time.Time)
	Close()
}

// runOutput prints what happens in a run. Events come from the journal, and those that the journal could not take come
// from the team's own goroutines, so the listener is guarded by a lock.
type runOutput struct {
	app     *App
	journal *journal.Journal

	mu       sync.Mutex
	listener listener
}

// newRunOutput returns the output of a run, which resumes an earlier one or begins. Until the first event arrives,
// its opening line says what the team does first.
func (a *App) newRunOutput(ctx context.Context, t *team.Team, resumes bool) *runOutput {
	out := &runOutput{app: a, journal: t.Journal()}
	if a.json {
		out.listener = jsonLines{a.Stdout}
		return out
	}
	opening := "makes the team ready"
	if resumes {
		opening = "finds what the team has left: tasks, lanes, conversations"
	}
	s := a.screen(a.Stderr)
	run, _ := t.LastRun(ctx) // without it a check is named a little later
	out.listener = view.NewProgress(view.Options{Out: a.Stderr, Paint: s.paint, Width: s.width, Start: a.Now(),
		Check: run.Check, Opening: opening,
		Task: func(id muster.TaskID) (muster.Task, error) { return t.Tasks().Get(ctx, id) }})
	return out
}

// event prints an event. Both the watch of the journal and emit call it.
func (o *runOutput) event(e muster.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.listener.Event(e)
}

// tick redraws what changes as time passes. It is called by a ticker for as long as the run goes on.
func (o *runOutput) tick(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.listener.Tick(now)
}

// emit takes what a team emits, and prints the events that its journal could not take. All else that a team emits
// is what models say, and is not shown in a run without a conversation.
func (o *runOutput) emit(_ muster.Name, v any) {
	if e, ok := v.(muster.Event); ok {
		o.event(e)
	}
}

// during runs do, and prints the events behind from meanwhile. When it returns, everything was printed that
// happened before do returned. It goes on after Ctrl-C, because the end of the run is printed too.
func (o *runOutput) during(ctx context.Context, from muster.Pos, do func()) {
	ctx = context.WithoutCancel(ctx)
	defer o.listener.Close()
	following, stop := context.WithCancel(ctx)
	defer stop()
	var printing sync.WaitGroup
	printing.Go(func() { from = o.printAll(o.journal.Follow(following, from), from) })
	printing.Go(func() {
		for tick := time.Tick(view.RedrawInterval); following.Err() == nil; {
			select {
			case <-tick:
				o.tick(o.app.Now())
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
