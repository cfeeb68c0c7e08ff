package landing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"muster"
	"muster/journal"
)

// probe is a check of the tree at one position.
type probe struct {
	// commit names the position: positions move when what is below them lands.
	commit string
	// tasks are those whose work it checks, in the order in which they would land.
	tasks  []int
	began  time.Time
	cancel context.CancelFunc
	// res and err are how it ended. They are set before it is sent to the results.
	res CheckResult
	err error
	// isOver says that its result is not wanted any more: only the drainer sets and reads it.
	isOver bool
}

// errNoAnswer is the error of a check whose goroutine has ended without one.
var errNoAnswer = errors.New("the check ended without an answer")

// nextProbe returns the position to check next: the top, as long as nothing is known to be red, and otherwise one in
// the widest gap between those that are being checked. 0: there is none.
func (s *stack) nextProbe() int {
	end := s.red
	if end == 0 {
		end = len(s.entries) + 1
	}
	marks := []int{0, end}
	for _, p := range s.probes {
		if at := s.position(p.commit); at > 0 && at < end {
			marks = append(marks, at)
		}
	}
	slices.Sort(marks)
	if s.red == 0 && !slices.Contains(marks, end-1) {
		return end - 1
	}
	at, widest := 0, 1
	for i, m := range marks[1:] {
		if gap := m - marks[i]; gap > widest {
			at, widest = marks[i]+halve(gap), gap
			if m == s.red {
				at = marks[i] + s.split(gap)
			}
		}
	}
	return at
}

// begin starts the check of a position.
func (s *stack) begin(ctx context.Context, at int) error {
	e := s.entries[at-1]
	p := &probe{commit: e.commit, began: time.Now()}
	for _, e := range s.entries[:at] {
		p.tasks = append(p.tasks, int(e.v.Task.ID))
	}
	if err := s.journal.Emit(ctx, muster.Event{Kind: journal.LandingCheck, Task: e.v.Task.ID,
		Fields: map[string]any{"tasks": p.tasks}}); err != nil {
		return err
	}
	if s.results == nil {
		s.results = make(chan *probe, maxStack)
	}
	ctx, p.cancel = context.WithCancel(ctx)
	s.probes = append(s.probes, p)
	task, name := e.v.Task, fmt.Sprintf("task-%d-%d", e.v.Task.ID, e.claim)
	go func() {
		// However the check ends, close waits for it. A test ends the goroutine as a dying process does.
		p.err = errNoAnswer
		defer func() { s.results <- p }()
		p.res, p.err = s.check(ctx, p.commit, name, &task)
	}()
	return nil
}

// giveUpYoung gives up the check of a part of the stack that has only just begun, when others have come since who are
// merged on top: owners who were told of the same landing come back at about the same time, and the first of them
// would keep all others waiting for a whole check of its own. That is done a few times in a row at most, so that a
// stream of newcomers keeps nobody from landing.
func giveUpYoung(s *stack) {
	if s.red > 0 || len(s.probes) != s.jobs() || s.givenUp >= maxGivenUp {
		return
	}
	// The youngest is the last one: it has cost least.
	p, took := s.probes[len(s.probes)-1], time.Duration(s.took.last.Load())
	at := s.position(p.commit)
	if isTop := at == len(s.entries); p.isOver || isTop || time.Since(p.began) > took/young {
		return
	}
	s.givenUp++
	p.isOver = true
	p.cancel()
}

const (
	maxGivenUp = 3
	young      = 2 // a check is young for one part in so many of the time that the last one took
)

// result waits for the result of a check. It is nil when somebody has come meanwhile who can be merged on top.
func (s *stack) result() (p *probe, err error) {
	var arrived chan struct{}
	if s.red == 0 {
		arrived = s.queue.arrived
	}
	select {
	case p = <-s.results:
	case <-arrived:
		select { // a result goes first
		case p = <-s.results:
		default:
			return nil, nil
		}
	}
	s.probes = slices.DeleteFunc(s.probes, func(other *probe) bool { return other == p })
	p.cancel()
	if p.isOver {
		return nil, nil
	}
	s.givenUp = 0
	if p.err == nil && !p.res.Cached {
		s.took.note(p.res.Green, time.Since(p.began))
	}
	return p, p.err
}

// close ends the checks that are under way, and waits for their ends: they use directories that the next ones get.
func (s *stack) close() {
	for _, p := range s.probes {
		p.cancel()
	}
	for range s.probes {
		<-s.results
	}
	s.probes = nil
}

// drop ends the checks of commits that are no longer in the stack, or of which nothing more can be learned.
func (s *stack) drop() {
	for _, p := range s.probes {
		if at := s.position(p.commit); at == 0 || s.red > 0 && at >= s.red {
			p.isOver = true
			p.cancel()
		}
	}
}

// tellChecked tells people how a check of a stack has ended.
func (s *stack) tellChecked(ctx context.Context, p *probe, receipt string) error {
	result := receipt
	switch {
	case receipt != "":
	case p.res.CannotRun:
		result = "cannot run"
	default:
		result = "red"
	}
	s.options.Log.InfoContext(ctx, "landing checked", "tasks", p.tasks, "how", p.res.How, "seconds", p.res.Seconds,
		"receipt", receipt)
	return s.journal.Emit(ctx, muster.Event{Kind: journal.LandingChecked, Task: muster.TaskID(p.tasks[len(p.tasks)-1]),
		Fields: map[string]any{"tasks": p.tasks, "result": result, "seconds": p.res.Seconds, "failed": p.res.Failed}})
}
