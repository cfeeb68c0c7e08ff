package cli

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/view"
	"muster/internal/workspace"
	"muster/journal"
)

// newStatusCommand returns muster status. It reads everything once and writes nothing. State without a run, a member
// or a task counts as no team.
func newStatusCommand(a *App) *cobra.Command {
	none := func() error {
		return a.printLine(newStatus(emptyOverview()), "%s: %s", workspace.ErrNoTeam.Message, workspace.ErrNoTeam.Hint)
	}
	return &cobra.Command{Use: "status", Short: "team, board and lanes at a glance", Args: namedArgs(),
		RunE: a.looking(none, func(c *cobra.Command, o opened, _ []string) error {
			now, err := readOverview(c.Context(), o, a.Now())
			if err != nil {
				return err
			}
			// The directory of the state may exist before anything has happened in it.
			if now.Run.StartedAt == 0 && len(now.Members) == 0 && len(now.Tasks) == 0 {
				return none()
			}
			return a.print(newStatus(now), now.Draw)
		})}
}

// teamStatus is how a team stands, for programs. It is what --json prints, so its field names are a format that
// programs rely on.
type teamStatus struct {
	Team     muster.Name               `json:"team"`
	Run      muster.Run                `json:"run"`
	Alive    bool                      `json:"alive"` // a process of the team lives
	Members  []view.Member             `json:"members"`
	Board    map[string]int            `json:"board"` // by view.BoardLabel
	Requests []muster.Request          `json:"requests"`
	Needy    []muster.Task             `json:"needs_attention"`
	Lanes    map[muster.LaneStatus]int `json:"lanes"`
	Mail     int                       `json:"mail"` // waits for the user
}

// newStatus returns an overview as programs read it. Lists and maps without content are printed as [] and {}. The
// team is alive when a living process hosts any of its members.
func newStatus(o view.Overview) teamStatus {
	s := teamStatus{Team: o.Team, Run: o.Run, Alive: hasAlive(o.Members), Members: emptyNotNil(o.Members),
		Board: o.Board, Requests: emptyNotNil(o.Requests), Needy: []muster.Task{}, Lanes: o.Lanes, Mail: o.Mail}
	for _, t := range o.Tasks {
		if t.Status == muster.NeedsAttention {
			s.Needy = append(s.Needy, t)
		}
	}
	return s
}

// hasAlive reports whether a living process hosts any of the members.
func hasAlive(members []view.Member) bool {
	return slices.ContainsFunc(members, func(m view.Member) bool { return m.Alive })
}

// recentEvents is how many events are read to see what members do right now. What a member does now is among the
// last few events of each, and a long journal must not make the command slow.
const recentEvents = 300

// readOverview reads how the team stands. The parts are read one after the other while the team works, so they may
// differ by a moment.
func readOverview(ctx context.Context, t opened, now time.Time) (o view.Overview, err error) {
	o = emptyOverview()
	o.Team, o.Now = t.Name(ctx), now
	if o.Run, err = t.LastRun(ctx); err != nil {
		return o, err
	}
	if o.Members, err = listMembers(ctx, t); err != nil {
		return o, err
	}
	if o.Tasks, _, err = t.Tasks().List(ctx); err != nil {
		return o, err
	}
	for _, x := range o.Tasks {
		o.Board[view.BoardLabel(x)]++
	}
	if o.Requests, err = t.Requests().Pending(ctx); err != nil {
		return o, err
	}
	// Where no lane was ever made, git is not started: that would be the slowest part of the command.
	lanes, err := t.Lanes().List(ctx)
	if err != nil {
		return o, err
	}
	for _, l := range lanes {
		o.Lanes[l.Status]++
	}
	// Mail is only counted: it is printed by muster mail list.
	mail, err := t.Mail().Pending(ctx, muster.User)
	if err != nil {
		return o, err
	}
	o.Mail = len(mail)
	return o, readRecent(ctx, t.Journal(), &o)
}

// emptyOverview returns an overview without content. Its maps are printed as {}.
func emptyOverview() view.Overview {
	return view.Overview{Board: map[string]int{}, Lanes: map[muster.LaneStatus]int{}}
}

// readRecent takes from the last events what the records do not have: what members do now, and the turns since their
// records were written, because a record is written only when a status changes. It also computes for how long
// processes of the team have lived in the run. A run whose processes have all ended is counted up to its last event,
// and not up to now. Events that cannot be read are left out; muster doctor counts them.
func readRecent(ctx context.Context, j *journal.Journal, o *view.Overview) error {
	from, err := j.Tail(ctx, recentEvents)
	if err != nil {
		return err
	}
	last := muster.Event{}
	for e, err := range j.Read(ctx, from) {
		if errors.Is(err, muster.ErrCorrupt) {
			continue
		}
		if err != nil {
			return err
		}
		last = e.Event
		o.Presence.Apply(last)
		// The events know more turns than the record of a member that works.
		i := slices.IndexFunc(o.Members, func(m view.Member) bool { return m.Name == last.Member })
		if i >= 0 && last.Kind == journal.TurnStarted {
			o.Members[i].Turns = max(o.Members[i].Turns, int(last.Number("turns")))
		}
	}
	end := o.Now // while a process lives, the run lasts until now
	if last.Kind != "" && last.At >= o.Run.StartedAt && !hasAlive(o.Members) {
		end = muster.Time(last.At)
	}
	// The time between the death of a process and the resume of its run is not counted.
	o.Lived = end.Sub(muster.Time(o.Run.StartedAt)) - time.Duration(o.Run.Away*float64(time.Second))
	return nil
}
