package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/view"
	"muster/internal/workspace"
	"muster/journal"
)

// statusCommand returns muster status. It reads everything once and writes nothing. State without a run, a member
// or a task counts as no team.
func (a *App) statusCommand() *cobra.Command {
	none := func() error {
		return a.printLine(newStatus(view.Overview{}), "%s: %s", workspace.ErrNoTeam.Message, workspace.ErrNoTeam.Hint)
	}
	return &cobra.Command{Use: "status", Short: "team, board and lanes at a glance", Args: namedArgs(),
		RunE: a.looking(none, func(c *cobra.Command, w *workspace.Workspace, _ []string) error {
			o, err := readOverview(c.Context(), w, a.Now())
			if err != nil {
				return err
			}
			// The directory of the state may exist before anything has happened in it.
			if o.Run.StartedAt == 0 && len(o.Members) == 0 && len(o.Tasks) == 0 {
				return none()
			}
			return a.print(newStatus(o), o.Write)
		})}
}

// teamStatus is how a team stands, for programs. It is what --json prints, so its field names are a format that
// programs rely on.
type teamStatus struct {
	Team     muster.Name               `json:"team"`
	Run      muster.Run                `json:"run"`
	Alive    bool                      `json:"alive"` // a process of the team lives
	Members  []muster.Member           `json:"members"`
	Board    map[string]int            `json:"board"` // by view.BoardLabel
	Requests []muster.Request          `json:"requests"`
	Needy    []muster.Task             `json:"needs_attention"`
	Lanes    map[muster.LaneStatus]int `json:"lanes"`
	Mail     int                       `json:"mail"` // waits for the user
}

// newStatus returns an overview as programs read it. Lists and maps without content are printed as [] and {}. The
// team is alive when a living process hosts any of its members.
func newStatus(o view.Overview) teamStatus {
	s := teamStatus{Team: o.Team, Run: o.Run, Members: []muster.Member{}, Board: o.Board,
		Requests: emptyNotNil(o.Requests), Needy: []muster.Task{}, Lanes: o.Lanes, Mail: o.Mail}
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

// recentEvents is how many events are read to see what members do right now. What a member does now is among the
// last few events of each, and a long journal must not make the command slow.
const recentEvents = 300

// readOverview reads how the team stands. The parts are read one after the other while the team works, so they may
// differ by a moment.
func readOverview(ctx context.Context, w *workspace.Workspace, now time.Time) (o view.Overview, err error) {
	o = view.Overview{Team: w.Name(ctx), Now: now, Board: map[string]int{}}
	if o.Run, err = w.Runs().Look(ctx); err != nil {
		return o, err
	}
	if o.Members, err = listMembers(ctx, w); err != nil {
		return o, err
	}
	if o.Tasks, err = w.Board().List(ctx); err != nil {
		return o, err
	}
	for _, t := range o.Tasks {
		o.Board[view.BoardLabel(t)]++
	}
	if o.Requests, err = w.Requests(ctx).Pending(ctx); err != nil {
		return o, err
	}
	if o.Lanes, err = countLanes(ctx, w); err != nil {
		return o, err
	}
	mail, _, err := waitingMail(ctx, w.Mail(ctx), muster.User)
	if err != nil {
		return o, err
	}
	o.Mail = len(mail)
	recent, err := readRecent(ctx, w.Journal())
	if err != nil {
		return o, err
	}
	for _, e := range recent {
		o.Presence.Apply(e)
	}
	applyRecent(&o, recent)
	return o, nil
}

// readRecent returns the last events. It leaves out those that cannot be read; muster doctor counts them. They
// stand in the order in which they happened.
func readRecent(ctx context.Context, j *journal.Journal) (recent []muster.Event, err error) {
	from, err := j.Tail(ctx, recentEvents)
	if err != nil {
		return nil, err
	}
	for e, err := range j.Read(ctx, from) {
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			return nil, err
		}
		if err == nil {
			recent = append(recent, e.Event)
		}
	}
	return recent, nil
}

// applyRecent computes for how long processes of the team have lived in the run. It also counts the turns that
// members' records do not have yet, because a record is written only when a status changes. recent are the last
// events. A run whose processes have all ended is counted up to its last event, and not up to now.
func applyRecent(o *view.Overview, recent []muster.Event) {
	isAlive := false
	for i := range o.Members {
		m := &o.Members[i]
		isAlive = isAlive || m.Alive
		for _, e := range recent {
			if e.Kind == journal.TurnStarted && e.Member == m.Name {
				m.Turns = max(m.Turns, int(e.Number("turns")))
			}
		}
	}
	// While a process lives, the run lasts until now.
	end := o.Now
	if n := len(recent); n > 0 && !isAlive && recent[n-1].At >= o.Run.StartedAt {
		end = muster.Time(recent[n-1].At)
	}
	away := time.Duration(o.Run.Away * float64(time.Second))
	o.Lived = end.Sub(muster.Time(o.Run.StartedAt)) - away
}

// countLanes counts lanes by status. Where no lane was ever made, git is not asked. Starting git is the slowest
// part of the command.
func countLanes(ctx context.Context, w *workspace.Workspace) (map[muster.LaneStatus]int, error) {
	n := map[muster.LaneStatus]int{}
	if !w.HasLanes() {
		return n, nil
	}
	lanes, err := w.Lanes(ctx)
	if err != nil {
		return n, err
	}
	all, err := lanes.List(ctx)
	for _, l := range all {
		n[l.Status]++
	}
	return n, err
}
