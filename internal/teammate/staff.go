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

// anyRole is the role of the teammates that are spawned for tasks of no role.
const anyRole = "coder"

// staffedProgress is Progress, but in a run with a playbook the teammates that the ready tasks want are spawned first:
// while the lead sleeps nobody else does. A task that waits until a teammate has left is not told as one that nobody
// may take.
func (l *lead) staffedProgress(ctx context.Context) (p TeamProgress, err error) {
	run, err := l.Run(ctx)
	if err != nil {
		return p, err
	}
	isStaffed := run.Playbook != nil && run.Cap > 0
	for again := isStaffed; ; {
		if again {
			_, err = l.staff(ctx, run)
		}
		if err == nil {
			p, err = l.Progress(ctx)
		}
		if err != nil || !isStaffed || p.Stuck == "" && len(p.Unclaimable) == 0 {
			return p, err
		}
		// Somebody may have left between the two. Whoever is spawned now changes the progress.
		s, err := l.staff(ctx, run)
		if err != nil || !s.acts() {
			if s.isFull {
				p.Unclaimable = nil
			}
			return p, err
		}
		again = false
	}
}

// staffing is what a run with a playbook lacks.
type staffing struct {
	spawn  []string      // the roles of teammates to spawn
	leave  []muster.Name // idle teammates whose place is wanted for a role that nobody has
	isFull bool          // there is no room for another teammate
}

// acts reports whether the staffing changes something.
func (s staffing) acts() bool { return len(s.spawn)+len(s.leave) > 0 }

// staff spawns the teammates that ready tasks want, and asks those to leave who are in the way.
func (l *lead) staff(ctx context.Context, run muster.Run) (s staffing, err error) {
	members, errMembers := l.Roster.List(ctx)
	tasks, errTasks := l.Board.List(ctx)
	pending, err := l.Requests.Pending(ctx)
	if err = cmp.Or(errMembers, errTasks, err); err != nil {
		return s, err
	}
	s = newStaffing(run.Cap, tasks, members, l.taking(members))
	s.leave = slices.DeleteFunc(s.leave, func(name muster.Name) bool {
		return slices.ContainsFunc(pending, func(r muster.Request) bool {
			return r.Kind == muster.AskShutdown && r.To == name
		})
	})
	for i, role := range s.spawn {
		m, err := l.spawnFor(ctx, run, role, members)
		if err != nil { // the lead is told of a task that nobody may take
			l.diary.dropped(ctx, "spawning a teammate for a playbook", err)
			s.spawn = s.spawn[:i]
			break
		}
		members = append(members, m)
	}
	for _, name := range s.leave {
		if _, err := l.Requests.Ask(ctx, muster.Request{Kind: muster.AskShutdown, From: muster.System, To: name,
			Reason: "a teammate of another role is needed"}); err != nil {
			return s, err
		}
	}
	return s, nil
}

// newStaffing returns what is lacking. Each ready task wants a teammate without a task, and of its role if it has one.
// Where there is none, one is spawned, as long as there is room. Where there is no room and nobody has the role, the
// place of somebody is wanted whom no ready task wants.
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

// spawnFor spawns a teammate under the first free name of its role. One that has shut down lives again.
func (l *lead) spawnFor(
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
		m, err := l.caller().Spawn(ctx, muster.Member{Name: name, Role: role,
			Prompt: "The goal of the team: " + text.CutBytes(run.Goal, maxQuote)})
		if !errors.Is(err, muster.ErrHeld) || n > len(members)+maxHeldNames {
			return m, err
		}
	}
}

// maxHeldNames is how many names are passed over that somebody has taken meanwhile.
const maxHeldNames = 20
