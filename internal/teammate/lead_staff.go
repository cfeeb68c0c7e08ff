package teammate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"muster"
	"muster/internal/text"
)

// staff spawns the lead's teammates. In a run with a playbook it also asks those to leave who are in the way.
type staff struct {
	team       *Overview
	checkModel func(name string) error // refuses the name of a model that no member can have; nil refuses none
	spawned    func()                  // called after each spawn; or nil
	diary      *diary
}

const anyRole = "coder" // the role of the teammates that are spawned for tasks of no role

func (s *staff) Spawn(ctx context.Context, m muster.Member) (muster.Member, error) {
	// The supervisor would refuse the model too, but only after the record was written.
	if s.checkModel != nil && m.Model != "" {
		if err := s.checkModel(m.Model); err != nil {
			return muster.Member{}, err
		}
	}
	run, runErr := s.team.Run(ctx)
	// Two spawns at the same time could both see room for one, but the lead's calls that write run one by one.
	n, err := s.team.Roster.Teammates(ctx)
	if err = cmp.Or(runErr, err); err != nil {
		return muster.Member{}, err
	}
	if n >= run.Cap {
		return muster.Member{}, muster.Errorf(muster.Invalid, "%d teammates live and %d is the most this run may have "+
			"(--teammates): wait for them, or shut one down first", n, run.Cap)
	}
	m.StartedBy, m.Status = s.diary.name, muster.Working
	m, err = s.team.Roster.Add(ctx, m)
	if err == nil && s.spawned != nil {
		s.spawned()
	}
	return m, err
}

// progress is Overview.Progress, but in a run with a playbook it first spawns the teammates that the ready tasks want.
// A task that waits until a teammate has left is not reported as one without a taker.
func (s *staff) progress(ctx context.Context) (p TeamProgress, err error) {
	run, err := s.team.Run(ctx)
	if err != nil {
		return p, err
	}
	isStaffed := run.Playbook != nil && run.Cap > 0
	for again := isStaffed; ; {
		if again {
			_, err = s.fill(ctx, run)
		}
		if err == nil {
			p, err = s.team.Progress(ctx)
		}
		if err != nil || !isStaffed || p.Stuck == "" && len(p.Unclaimable) == 0 {
			return p, err
		}
		// Somebody may have left between the two. Whoever is spawned now changes the progress.
		f, err := s.fill(ctx, run)
		if err != nil || len(f.spawn)+len(f.leave) == 0 {
			if f.isFull {
				p.Unclaimable = nil
			}
			return p, err
		}
		again = false
	}
}

type staffing struct {
	spawn  []string      // the roles of teammates to spawn
	leave  []muster.Name // idle teammates whose place is wanted for a role that nobody has
	isFull bool          // there is no room for another teammate
}

func (s *staff) fill(ctx context.Context, run muster.Run) (f staffing, err error) {
	members, errMembers := s.team.Roster.List(ctx)
	tasks, errTasks := s.team.Board.List(ctx)
	pending, err := s.team.Requests.Pending(ctx)
	if err = cmp.Or(errMembers, errTasks, err); err != nil {
		return f, err
	}
	f = newStaffing(run.Cap, tasks, members, s.team.taking(members))
	f.leave = slices.DeleteFunc(f.leave, func(name muster.Name) bool {
		return slices.ContainsFunc(pending, func(r muster.Request) bool {
			return r.Kind == muster.AskShutdown && r.To == name
		})
	})
	for i, role := range f.spawn {
		m, err := s.spawnFor(ctx, run, role, members)
		if err != nil { // the lead is told of a task that nobody may take
			s.diary.dropped(ctx, "spawning a teammate for a playbook", err)
			f.spawn = f.spawn[:i]
			break
		}
		members = append(members, m)
	}
	for _, name := range f.leave {
		if _, err := s.team.Requests.Ask(ctx, muster.Request{Kind: muster.AskShutdown, From: muster.System, To: name,
			Reason: "a teammate of another role is needed"}); err != nil {
			return f, err
		}
	}
	return f, nil
}

// newStaffing returns what is lacking. Each ready task wants a teammate without a task, of its role if it has one. If
// there is none, one is spawned while there is room; otherwise an idle teammate leaves whom no ready task wants.
func newStaffing(most int, tasks []muster.Task, members []muster.Member, mayTake taking) (s staffing) {
	busy := map[muster.Name]bool{}
	var ready []muster.Task
	for _, t := range tasks {
		if t.Claimed() {
			busy[t.Owner] = true
		} else if t.Claimable(t.ClaimRole) {
			ready = append(ready, t)
		}
	}
	slices.SortStableFunc(ready, func(a, b muster.Task) int { return cmp.Compare(b.Priority, a.Priority) })
	var free []muster.Member
	living := 0
	for _, m := range members {
		if m.Name == muster.Lead || m.Status == muster.Shutdown {
			continue
		}
		if living++; !busy[m.Name] {
			free = append(free, m)
		}
	}
	// Tasks of a role choose first: those of none are for everybody.
	served := map[muster.TaskID]bool{}
	for _, hasRole := range []bool{true, false} {
		for _, t := range ready {
			i := slices.IndexFunc(free, func(m muster.Member) bool { return mayTake.allows(t, m.Role) })
			if hasRole == (t.ClaimRole != "") && i >= 0 {
				free, served[t.ID] = slices.Delete(free, i, i+1), true
			}
		}
	}
	for _, t := range ready {
		role := cmp.Or(t.ClaimRole, anyRole)
		isIdle := func(m muster.Member) bool { return m.Status == muster.Idle && len(askedOf(m)) == 0 }
		switch i := slices.IndexFunc(free, isIdle); {
		case served[t.ID] || !mayTake.allows(t, role): // nobody could take it: the lead is told
		case living+len(s.spawn) < most:
			s.spawn = append(s.spawn, role)
		case i >= 0 && !canBeClaimed(t, members, nil, mayTake):
			s.leave = append(s.leave, free[i].Name)
			free = slices.Delete(free, i, i+1)
		}
	}
	s.isFull = living+len(s.spawn) >= most
	return s
}

func (s *staff) spawnFor(
	ctx context.Context, run muster.Run, role string, members []muster.Member,
) (muster.Member, error) {
	base := string(muster.Slug(role, anyRole))
	base = base[:min(len(base), 24)]
	for n := 1; ; n++ {
		name := muster.Name(fmt.Sprintf("%s-%d", base, n))
		if slices.ContainsFunc(members, func(m muster.Member) bool {
			return m.Name == name && (m.Status != muster.Shutdown || m.Role != role)
		}) {
			continue
		}
		m, err := s.Spawn(ctx, muster.Member{Name: name, Role: role,
			Prompt: "The goal of the team: " + text.CutBytes(run.Goal, maxQuote)})
		if !errors.Is(err, muster.ErrHeld) || n > len(members)+maxHeldNames {
			return m, err
		}
	}
}

const maxHeldNames = 20
