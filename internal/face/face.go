// Package face reads what people see of a team, for all faces: the commands, the full screen and the web. It keeps no
// state and no policy of its own. What a face shows comes from the records and the journal, and what its user decides
// becomes a record, so several faces can be open at once, beside a living team and beside one that has stopped.
//
// Overview is how the team stands, with what waits for the user. Follow yields events as lines for people. What a
// member says is read, and requests are answered, with package team.
package face

import (
	"context"
	"errors"
	"iter"

	"muster"
	"muster/internal/text"
	"muster/internal/view"
	"muster/journal"
	"muster/team"
)

// Event is an event of the journal in words.
type Event struct {
	Pos  muster.Pos `json:"pos"` // the place in the journal after it
	At   float64    `json:"at"`  // Unix seconds
	Task int        `json:"task,omitempty"`
	Who  string     `json:"who"`
	Verb string     `json:"verb"`
	Text string     `json:"text"`
	// Tone is "good" or "bad" news, or "".
	Tone string `json:"tone,omitempty"`
	// Show says that it belongs to the few that tell how the team gets on; the others are details.
	Show bool `json:"show"`
	// Last says that the event has no further words. A reader that goes on later from Pos has to have read up to there:
	// an event may have several lines.
	Last bool `json:"-"`
}

// Words puts events into words, one after the other: later events are named by what earlier ones have said.
type Words struct {
	// Read reads a task that no event has named; nil: such a task goes by its number.
	Read func(muster.TaskID) (muster.Task, error)

	subjects map[muster.TaskID]string
	check    string
}

func (w *Words) subject(id muster.TaskID) string {
	if _, ok := w.subjects[id]; !ok && id != 0 && w.Read != nil {
		x, _ := w.Read(id) // without its record the task goes by its number
		w.subjects[id] = x.Subject
	}
	return w.subjects[id]
}

// Of returns an event in words, a line each. Most events have one, and some none.
func (w *Words) Of(e journal.Entry) (all []Event) {
	if w.subjects == nil {
		w.subjects = map[muster.TaskID]string{}
	}
	if s := e.Text("subject"); s != "" && e.Task != 0 {
		w.subjects[e.Task] = s
	}
	if e.Kind == journal.CheckStarted || e.Kind == journal.CheckBase {
		w.check = text.OneLine(e.Text("command"))
	}
	lines := view.Lines(e.Event, view.Facts{Subject: w.subject, Check: w.check})
	for i, l := range lines {
		all = append(all, Event{Pos: e.Pos, At: e.At, Task: int(e.Task), Who: l.Who, Verb: l.Verb,
			Text: l.Text, Tone: tones[l.Tone], Show: l.Show, Last: i == len(lines)-1})
	}
	return all
}

// Follow yields the events after a position in words, and then what happens until ctx ends. Events that cannot be read
// are left out; muster doctor counts them.
func Follow(ctx context.Context, t *team.Team, after muster.Pos) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		words := Words{Read: func(id muster.TaskID) (muster.Task, error) { return t.Tasks().Get(ctx, id) }}
		for e, err := range t.Events(ctx, after) {
			if errors.Is(err, muster.ErrCorrupt) {
				continue
			}
			if err != nil {
				yield(Event{Pos: e.Pos}, err)
				return
			}
			for _, line := range words.Of(e) {
				if !yield(line, nil) {
					return
				}
			}
		}
	}
}

// tones names the tones that an event can have.
var tones = map[view.Tone]string{view.Good: "good", view.Bad: "bad"}
