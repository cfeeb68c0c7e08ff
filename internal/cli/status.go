package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/view"
	"muster/journal"
)

func (a *App) statusCommand() *cobra.Command {
	return &cobra.Command{Use: "status", Short: "team, board and lanes at a glance", Args: exactly(), RunE: func(c *cobra.Command, _ []string) error {
		none := func(w io.Writer, _ view.Paint, _ int) error {
			_, err := fmt.Fprintf(w, "%s: %s\n", nobody.Message, nobody.Hint)
			return err
		}
		p, err := a.look(c.Context())
		if errors.Is(err, nobody) {
			return a.print(newStanding(view.Overview{}), none)
		}
		if err != nil {
			return err
		}
		defer p.close()
		o, err := p.overview(c.Context())
		if err != nil {
			return err
		}
		if o.Run.StartedAt == 0 && len(o.Members) == 0 && len(o.Tasks) == 0 {
			return a.print(newStanding(o), none)
		}
		return a.print(newStanding(o), o.Write)
	}}
}

// standing is how a team stands, for programs.
type standing struct {
	Team     muster.Name               `json:"team"`
	Run      muster.Run                `json:"run"`
	Alive    bool                      `json:"alive"` // a process of the team lives
	Members  []muster.Member           `json:"members"`
	Board    map[string]int            `json:"board"` // landed, done, landing, in_progress, ready, waiting, needs_attention
	Requests []muster.Request          `json:"requests"`
	Needy    []muster.Task             `json:"needs_attention"`
	Lanes    map[muster.LaneStatus]int `json:"lanes"`
	Mail     int                       `json:"mail"` // waits for the user
}

func newStanding(o view.Overview) standing {
	s := standing{Team: o.Team, Run: o.Run, Members: []muster.Member{}, Board: o.Board, Requests: append([]muster.Request{}, o.Requests...),
		Needy: []muster.Task{}, Lanes: o.Lanes, Mail: o.Mail}
	for _, m := range o.Members {
		s.Members = append(s.Members, m.Member)
		s.Alive = s.Alive || m.Alive
	}
	for _, t := range o.Tasks {
		if t.Status == muster.NeedsAttention {
			s.Needy = append(s.Needy, t)
		}
	}
	if s.Board == nil {
		s.Board = map[string]int{}
	}
	if s.Lanes == nil {
		s.Lanes = map[muster.LaneStatus]int{}
	}
	return s
}

// recent is how many events are read for what members do right now.
const recent = 300

// overview is how the team stands.
func (p *place) overview(ctx context.Context) (o view.Overview, err error) {
	o = view.Overview{Team: p.team(ctx), Now: p.app.Now(), Board: map[string]int{}}
	if o.Run, err = p.run(ctx); err != nil {
		return o, err
	}
	members, err := p.members(ctx)
	if err != nil {
		return o, err
	}
	o.Members = seen(members)
	if o.Tasks, err = p.theBoard().List(ctx); err != nil {
		return o, err
	}
	for _, t := range o.Tasks {
		o.Board[view.Counted(t)]++
	}
	if o.Requests, err = p.theRequests(ctx).Pending(ctx); err != nil {
		return o, err
	}
	if o.Lanes, err = p.countLanes(ctx); err != nil {
		return o, err
	}
	mail, _, err := waiting(ctx, p.thePost(ctx), muster.User)
	if err != nil {
		return o, err
	}
	o.Mail = len(mail)
	if err := p.lived(ctx, &o); err != nil {
		return o, err
	}
	from, err := p.journal.Tail(ctx, recent)
	if err != nil {
		return o, err
	}
	for e, err := range p.journal.Read(ctx, from) {
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			return o, err
		}
		if err == nil {
			o.Presence.Apply(e.Event)
		}
	}
	return o, nil
}

// lived finds in the whole journal for how long processes of the team have lived in the run, and the turns that
// members' records do not count yet: a record is written when a status changes. Only the lines that matter are decoded.
func (p *place) lived(ctx context.Context, o *view.Overview) error {
	if len(o.Members) == 0 {
		return nil
	}
	resumed, turn := []byte(`"`+journal.RunResumed+`"`), []byte(`"`+journal.TurnStarted+`"`)
	signs := [][]byte{[]byte(`"event":"run.`), []byte(`"event":"turn.`), []byte(`"event":"tool.`), []byte(`"event":"check.`)}
	turns := map[muster.Name]int{}
	var away time.Duration
	var last []byte // the last line that a living process of the team wrote
	stamp := func(line []byte) float64 {
		var e struct {
			At float64 `json:"ts"`
		}
		_ = json.Unmarshal(line, &e) // 0 is before everything
		return e.At
	}
	for r, err := range p.store.Log().Read(ctx, muster.StreamEvents, 0) {
		if errors.Is(err, muster.ErrCorrupt) {
			continue
		}
		if err != nil {
			return err
		}
		if bytes.Contains(r.Data, turn) {
			var e muster.Event
			if json.Unmarshal(r.Data, &e) == nil && e.Kind == journal.TurnStarted {
				turns[e.Member]++
			}
		}
		if last != nil && bytes.Contains(r.Data, resumed) {
			if from, to := stamp(last), stamp(r.Data); from >= o.Run.StartedAt && to > from {
				away += muster.Time(to).Sub(muster.Time(from))
			}
		}
		for _, s := range signs {
			if bytes.Contains(r.Data, s) {
				last = append(last[:0], r.Data...)
				break
			}
		}
	}
	alive := false
	for i := range o.Members {
		m := &o.Members[i]
		m.Turns = max(m.Turns, turns[m.Name])
		alive = alive || m.Alive
	}
	end := o.Now
	if at := stamp(last); !alive && at >= o.Run.StartedAt {
		end = muster.Time(at)
	}
	o.Lived = end.Sub(muster.Time(o.Run.StartedAt)) - away
	return nil
}

// countLanes counts lanes by status. Where no lane was ever made, git is not asked.
func (p *place) countLanes(ctx context.Context) (map[muster.LaneStatus]int, error) {
	n := map[muster.LaneStatus]int{}
	if !isFile(p.home.Index()) {
		return n, nil
	}
	lanes, err := p.theLanes(ctx)
	if err != nil {
		return n, err
	}
	all, err := lanes.List(ctx)
	for _, l := range all {
		n[l.Status]++
	}
	return n, err
}
