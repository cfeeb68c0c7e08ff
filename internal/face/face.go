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

// Follow yields the events after a position in words, and then what happens until ctx ends. Events that cannot be read
// are left out; muster doctor counts them.
func Follow(ctx context.Context, t *team.Team, after muster.Pos) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		subjects, check := map[muster.TaskID]string{}, ""
		subject := func(id muster.TaskID) string {
			if _, ok := subjects[id]; !ok && id != 0 {
				x, _ := t.Tasks().Get(ctx, id) // without its record the task goes by its number
				subjects[id] = x.Subject
			}
			return subjects[id]
		}
		for e, err := range t.Events(ctx, after) {
			if errors.Is(err, muster.ErrCorrupt) {
				continue
			}
			if err != nil {
				yield(Event{Pos: e.Pos}, err)
				return
			}
			if s := e.Event.Text("subject"); s != "" && e.Event.Task != 0 {
				subjects[e.Event.Task] = s
			}
			if e.Event.Kind == journal.CheckStarted || e.Event.Kind == journal.CheckBase {
				check = view.OneLine(e.Event.Text("command"))
			}
			lines := view.Lines(e.Event, view.Facts{Subject: subject, Check: check})
			for i, l := range lines {
				words := Words(e, l)
				words.Last = i == len(lines)-1
				if !yield(words, nil) {
					return
				}
			}
		}
	}
}

// Words returns one of the lines of an event.
func Words(e journal.Entry, l view.Line) Event {
	return Event{Pos: e.Pos, At: e.Event.At, Task: int(e.Event.Task), Who: l.Who, Verb: l.Verb, Text: l.Text,
		Tone: tones[l.Tone], Show: l.Show}
}

// tones names the tones that an event can have.
var tones = map[view.Tone]string{view.Good: "good", view.Bad: "bad"}
