package cli

import (
	"context"
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
		o.Board[view.BoardLabel(t)]++
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
	from, err := p.journal.Tail(ctx, recent)
	if err != nil {
		return o, err
	}
	var last []muster.Event
	for e, err := range p.journal.Read(ctx, from) {
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			return o, err
		}
		if err == nil {
			o.Presence.Apply(e.Event)
			last = append(last, e.Event)
		}
	}
	lived(&o, last)
	return o, nil
}

// lived says for how long processes of the team have lived in the run, and counts the turns that members' records do not
// have yet: a record is written when a status changes. recent are the last events.
func lived(o *view.Overview, recent []muster.Event) {
	alive := false
	for i := range o.Members {
		m := &o.Members[i]
		alive = alive || m.Alive
		for _, e := range recent {
			if e.Kind == journal.TurnStarted && e.Member == m.Name {
				m.Turns = max(m.Turns, int(e.Number("turns")))
			}
		}
	}
	end := o.Now
	if n := len(recent); n > 0 && !alive && recent[n-1].At >= o.Run.StartedAt {
		end = muster.Time(recent[n-1].At)
	}
	away := time.Duration(o.Run.Away * float64(time.Second))
	o.Lived = end.Sub(muster.Time(o.Run.StartedAt)) - away
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
