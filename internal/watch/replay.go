package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"muster"
	"muster/internal/face"
	"muster/internal/view"
	"muster/journal"
)

// playInterval is the time between two events while a replay plays.
const playInterval = 200 * time.Millisecond

// replay goes through the last run of a team, forwards and back. What it shows is made of the events until a place. It
// writes nothing: the keys that do are not there.
type replay struct {
	run       muster.Run
	tasks     []muster.Task // as the records had them when the replay began
	marks     []journalMark
	at        int // how many events are behind; 0: none
	isPlaying bool
	isMoving  bool // a place was asked for, and has not come yet
	past      *past
}

// journalMark is an event by its place. The events themselves are read when they are passed: a journal may be long.
type journalMark struct {
	pos     muster.Pos
	isLands bool
}

// past is the state at a place. One command at a time uses it: see replay.isMoving.
type past struct {
	state  *face.Past
	at     int
	now    time.Time // of the last event
	words  face.Words
	events []face.Event
}

// pastMsg is the state at a place.
type pastMsg struct {
	at       int
	overview view.Overview
	events   []face.Event
	err      error
}

// newReplay reads where the events of a run are in a journal. Where there was no run, all events count.
func newReplay(ctx context.Context, j *journal.Journal, run muster.Run, tasks []muster.Task) (*replay, error) {
	r := &replay{run: run, tasks: tasks}
	r.past = r.begin()
	for e, err := range j.Read(ctx, 0) {
		if errors.Is(err, muster.ErrCorrupt) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if e.At < run.StartedAt {
			continue
		}
		// A task that was done without a change has no commit, and nothing has landed.
		isLands := e.Kind == journal.TaskCompleted && e.Text("commit") != ""
		r.marks = append(r.marks, journalMark{e.Pos, isLands})
	}
	if len(r.marks) == 0 {
		return nil, muster.Errorf(muster.NotFound, "no team has worked here yet, so there is nothing to look back at").
			WithHint("muster watch   or: muster run \"GOAL\"")
	}
	return r, nil
}

// begin returns the state before the first event.
func (r *replay) begin() *past {
	return &past{state: face.NewPast(r.run, r.tasks), words: face.Words{}}
}

// seek brings the state to a place. Backwards it begins anew, because no event can be taken back.
func (r *replay) seek(ctx context.Context, j *journal.Journal, at int) pastMsg {
	// A step forward reads from where the last one ended.
	if at < r.past.at {
		r.past = r.begin()
	}
	p, from := r.past, muster.Pos(0)
	if p.at > 0 {
		from = r.marks[p.at-1].pos
	}
	for e, err := range j.Read(ctx, from) {
		if errors.Is(err, muster.ErrCorrupt) {
			continue
		}
		if err != nil {
			return pastMsg{err: err}
		}
		if p.at >= at {
			break
		}
		// Events of earlier runs name tasks of this one, and are not shown themselves.
		lines := p.words.Of(e)
		if e.At < r.run.StartedAt {
			continue
		}
		p.state.Apply(e.Event)
		p.at++
		p.now = muster.Time(e.At)
		p.events = append(p.events, lines...)
	}
	return pastMsg{at: p.at, overview: p.state.Overview(p.now), events: p.events[max(len(p.events)-keptEvents, 0):]}
}

// goToPlace asks for the state at a place, unless one is on its way.
func (m *model) goToPlace(at int) tea.Cmd {
	r := m.replay
	// The state is built by one command at a time. Who presses faster than it comes loses a step, and nothing else.
	if at = max(min(at, len(r.marks)), 1); r.isMoving || at == r.at {
		return nil
	}
	r.isMoving = true
	return m.ask(func(ctx context.Context, t teamAPI) tea.Msg { return t.Past(ctx, r, at) })
}

// showPast shows the state at a place. A conversation begins anew where the place is an earlier one.
func (m *model) showPast(msg pastMsg) tea.Cmd {
	r := m.replay
	isBack := msg.at < r.at
	if r.isMoving = false; msg.err != nil {
		m.message = told(msg.err, "")
		return nil
	}
	// The rows of the events page are made anew: an earlier place has fewer of them.
	r.at, m.events, m.gone = msg.at, msg.events, 0
	d := &m.detail
	d.width = 0
	if isBack {
		d.said, d.pos, d.todo, d.isAsked = nil, 0, nil, false
	}
	cmd := m.apply(changedMsg{overview: msg.overview})
	// What was not there yet is not shown as it was later. The row at the cursor is shown then, once there is one.
	if r := d.row; isBack && (r.member != nil || r.task != nil) && !m.isListed(d.key) {
		m.detail = detail{wishes: d.wishes}
	}
	if d.key == "" {
		cmd = tea.Batch(cmd, m.show())
	}
	// The next step is asked for when this one is seen, so that a slow machine plays slowly and skips nothing.
	if r.isPlaying {
		if r.isPlaying = r.at < len(r.marks); r.isPlaying {
			next := tea.Tick(playInterval, func(time.Time) tea.Msg { return playMsg{} })
			return tea.Batch(cmd, next)
		}
	}
	return cmd
}

// isListed reports whether a row is in one of the lists.
func (m *model) isListed(key string) bool {
	return slices.ContainsFunc(m.lists[:], func(l list) bool {
		return slices.ContainsFunc(l.rows, func(r row) bool { return r.key == key })
	})
}

// playMsg says that a replay that plays goes on.
type playMsg struct{}

// place says where a replay is.
func (r *replay) place(now time.Time) string {
	// Landings are what people look for, so they are counted apart.
	landed, landings := 0, 0
	for i, x := range r.marks {
		if x.isLands {
			landings++
			if i < r.at {
				landed++
			}
		}
	}
	text := fmt.Sprintf("REPLAY %s  event %d of %d, landing %d of %d", now.Local().Format(time.TimeOnly), r.at,
		len(r.marks), landed, landings)
	if r.isPlaying {
		text += ", plays"
	}
	return text
}

// replayKeys are the keys of a replay.
func replayKeys() []binding {
	step := func(n int) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd { return m.goToPlace(m.replay.at + n) }
	}
	landing := func(n int) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd {
			r := m.replay
			for at := r.at + n; at > 0 && at <= len(r.marks); at += n {
				if r.marks[at-1].isLands {
					return m.goToPlace(at)
				}
			}
			return nil
		}
	}
	// A pause ends with the step that is under way.
	play := func(m *model) tea.Cmd {
		r := m.replay
		if r.isPlaying = !r.isPlaying; !r.isPlaying {
			return nil
		}
		if r.at == len(r.marks) { // from the beginning again
			return m.goToPlace(1)
		}
		return m.goToPlace(r.at + 1)
	}
	return []binding{
		{"p", "p", "play", "play, or pause", nil, play},
		{"]", "]", "next", "go to the next event", nil, step(1)},
		{"[", "[", "before", "go to the event before", nil, step(-1)},
		{"}", "}", "landing", "go to the next landing", nil, landing(1)},
		{"{", "{", "", "go to the landing before", nil, landing(-1)},
		{"0", "0", "", "go to the first event", nil, step(-1 << 30)},
		{"$", "$", "", "go to the last event", nil, step(1 << 30)},
	}
}
