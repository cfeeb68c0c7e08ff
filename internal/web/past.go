package web

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"

	"muster"
	"muster/internal/face"
	"muster/journal"
)

// What a page is shown of the past at once.
const (
	pastEvents  = 300 // in the timeline, before the time that is looked at
	historyBins = 80  // of the time of a run, for what was spent in each
)

// replay is the past of one run, as far as it was read. To look at a later time goes on from there, and to look at an
// earlier one reads the journal again: whoever plays it forwards waits for a few events only.
type replay struct {
	// run says of which run it is: a later one begins anew.
	run   float64 // when it began
	past  *face.Past
	words face.Words
	pos   muster.Pos // after the last event that is in past
	at    float64    // the time that was looked at
	lines []face.Event
	most  int // lines that are kept; 0: all
}

// pastState is how a team stood at a time, with the timeline before it.
type pastState struct {
	state
	Events []face.Event `json:"events"`
}

// past reads how the team stood at a time, with the timeline before it.
func (s *Server) past(r *http.Request) (any, error) {
	at, err := strconv.ParseFloat(r.URL.Query().Get("at"), 64)
	if err != nil || math.IsNaN(at) || math.IsInf(at, 0) {
		return nil, muster.Errorf(muster.Invalid, "%q is no time in Unix seconds", r.URL.Query().Get("at"))
	}
	s.reading.Lock()
	defer s.reading.Unlock()
	// The lock is held until the answer is made, because a second page may look at another time meanwhile.
	v, err := s.pastAt(r.Context(), at, pastEvents)
	if err != nil {
		return nil, err
	}
	return pastState{v, append([]face.Event{}, s.replay.lines...)}, nil
}

// pastAt returns the state at a time, and leaves the timeline before it in s.replay: the last lines of it, at least
// most. The caller holds s.reading.
func (s *Server) pastAt(ctx context.Context, at float64, most int) (v state, err error) {
	if err := s.rewind(ctx, at, most); err != nil {
		return v, err
	}
	p := s.replay
	// A reading that fails in the middle would go on with a state in part, so it begins anew.
	if err := p.read(ctx, s.team.Journal(), at); err != nil {
		s.replay = nil
		return v, err
	}
	v = document(p.past.Overview(muster.Time(at)))
	v.Root, v.IsReplay = s.team.Root(), s.Replay
	return v, nil
}

// rewind begins at the beginning of the run if a time lies before what was read.
func (s *Server) rewind(ctx context.Context, at float64, most int) error {
	run, err := s.team.LastRun(ctx)
	if err != nil || s.replay != nil && s.replay.run == run.StartedAt && s.replay.at <= at {
		return err
	}
	// The records are read once for each beginning. What they change meanwhile, the events say.
	tasks, _, err := s.team.Tasks().List(ctx)
	if err != nil {
		return err
	}
	run.Team = cmp.Or(run.Team, s.team.Name(ctx))
	s.replay = &replay{run: run.StartedAt, past: face.NewPast(run, tasks), most: most}
	return nil
}

// read takes in the events up to a time. The clocks of processes may differ by a moment, so the first event that is
// later ends it.
func (p *replay) read(ctx context.Context, j *journal.Journal, at float64) error {
	p.at = at
	// pos is moved only behind events that were taken in, so that the first one that is later is read again.
	for e, err := range j.Read(ctx, p.pos) {
		if errors.Is(err, muster.ErrCorrupt) {
			continue
		}
		if err != nil {
			return err
		}
		if e.At > at {
			break
		}
		p.pos = e.Pos
		// The words come after each event as they come for the present: they are named by the events before them.
		p.past.Apply(e.Event)
		lines := p.words.Of(e)
		if e.At < p.run {
			continue // the words of an earlier run name its tasks, and are not shown
		}
		// The older half goes at once, so that not each event moves all the others.
		if p.lines = append(p.lines, lines...); p.most > 0 && len(p.lines) > 2*p.most {
			p.lines = slices.Clone(p.lines[len(p.lines)-p.most:])
		}
	}
	return nil
}

// history is what a run was like over its time: where the replay can go, and what was spent.
type history struct {
	From     float64    `json:"from"` // Unix seconds
	To       float64    `json:"to"`
	Landings []landing  `json:"landings"`
	Members  []spending `json:"members"` // the dearest first
	Bins     int        `json:"bins"`
}

// landing is a task that landed, to which the replay can step.
type landing struct {
	At      float64       `json:"at"`
	Task    muster.TaskID `json:"task"`
	Subject string        `json:"subject"`
}

// spending is what a member has spent in each part of the time, and how full its context was at the end of it. A part
// in which it had no turn has as much context as the one before.
type spending struct {
	Name muster.Name `json:"name"`
	// Dollars, Output and Context have a value for each part of the time.
	Dollars []float64 `json:"dollars"`
	Output  []int     `json:"output"`
	Context []int     `json:"context"`
	Window  int       `json:"window"` // how many tokens its model takes; 0: unknown
	Turns   int       `json:"turns"`
	total   float64
}

func (s *Server) history(r *http.Request) (any, error) {
	ctx := r.Context()
	run, err := s.team.LastRun(ctx)
	if err != nil {
		return nil, err
	}
	h := history{From: run.StartedAt, To: run.EndedAt, Landings: []landing{}, Members: []spending{}, Bins: historyBins}
	// The turns are kept until the end of the time is known, which says how long each part of it is.
	var turns []journal.Entry
	for e, err := range s.team.Journal().Read(ctx, 0) {
		if errors.Is(err, muster.ErrCorrupt) || err == nil && e.At < run.StartedAt {
			continue
		}
		if err != nil {
			return nil, err
		}
		h.To = max(h.To, e.At)
		switch {
		// A task that was done without a change has no commit, and nothing has landed.
		case e.Kind == journal.TaskCompleted && e.Text("commit") != "":
			h.Landings = append(h.Landings, landing{e.At, e.Task, e.Text("subject")})
		case e.Kind == journal.TurnEnded:
			turns = append(turns, e)
		}
	}
	// A team at work has come to now, also where nothing has happened for a while.
	if isAlive, err := s.team.Members().HasProcess(ctx); err == nil && isAlive {
		h.To = max(h.To, muster.UnixTime(s.Now()))
	}
	for _, e := range turns {
		h.add(e.Event, s.Window)
	}
	// A context stays as it is while its member has no turn.
	for _, m := range h.Members {
		for i := 1; i < len(m.Context); i++ {
			if m.Context[i] == 0 {
				m.Context[i] = m.Context[i-1]
			}
		}
	}
	// The page gives colours to the first few, so these have to be those that matter.
	slices.SortStableFunc(h.Members, func(a, b spending) int { return cmp.Compare(b.total, a.total) })
	return h, nil
}

func (h *history) add(e muster.Event, window func(string) int) {
	i := slices.IndexFunc(h.Members, func(m spending) bool { return m.Name == e.Member })
	if i < 0 {
		i, h.Members = len(h.Members), append(h.Members, spending{Name: e.Member, Dollars: make([]float64, h.Bins),
			Output: make([]int, h.Bins), Context: make([]int, h.Bins)})
	}
	m := &h.Members[i]
	// The last moment belongs to the last part.
	bin := min(h.Bins-1, int(float64(h.Bins)*(e.At-h.From)/max(h.To-h.From, 1)))
	m.Dollars[bin] += e.Number("dollars")
	m.total += e.Number("dollars")
	m.Output[bin] += int(e.Number("output"))
	// The turns of a subagent and the making of a summary cost, but say nothing of the member's own conversation.
	if e.Fields["subagent"] == true || e.Fields["summary"] == true {
		return
	}
	m.Turns++
	m.Context[bin] = int(e.Number("input") + e.Number("cache_read") + e.Number("cache_write") +
		e.Number("cache_write_long"))
	// Members may change their model, so the last one counts.
	if window != nil {
		m.Window = window(e.Text("model"))
	}
}
