package view

import (
	"maps"
	"slices"

	"muster"
	"muster/internal/spend"
	"muster/journal"
)

// Past is how a team stood at a moment, as far as the events until then tell. It is for looking back: what a task
// depends on, and what is in an inbox, no event has. The zero value is ready.
//
// Events are for people: a member that was killed ends without one, so it looks as it did last. Nothing is decided by
// what stands here.
type Past struct{ o Overview }

// Overview returns how the team stood after the last event. It shares nothing with the Past that can change.
func (p *Past) Overview() Overview {
	// What is drawn may still be drawn when the next event is applied.
	o := p.o
	o.Members, o.Tasks = append([]Member{}, p.o.Members...), append([]muster.Task{}, p.o.Tasks...)
	o.Requests, o.Spending.Members = append([]muster.Request{}, p.o.Requests...), maps.Clone(p.o.Spending.Members)
	o.Board, o.Needy = map[string]int{}, nil
	// The activities are changed in place, so they are copied, too.
	o.Presence.members = nil
	for _, a := range p.o.Presence.members {
		one := *a
		o.Presence.members = append(o.Presence.members, &one)
	}
	for _, t := range o.Tasks {
		o.Board[BoardLabel(t)]++
		if t.Status == muster.NeedsAttention {
			o.Needy = append(o.Needy, t)
		}
	}
	o.Lived = o.Now.Sub(muster.Time(o.Run.StartedAt))
	return o
}

// Subject names a task; "" is unknown.
func (p *Past) Subject(id muster.TaskID) string {
	if i := slices.IndexFunc(p.o.Tasks, func(t muster.Task) bool { return t.ID == id }); i >= 0 {
		return p.o.Tasks[i].Subject
	}
	return ""
}

// Apply adds what an event tells. Events come in their order.
func (p *Past) Apply(e muster.Event) {
	p.o.Now = muster.Time(e.At)
	p.o.Presence.Apply(e)
	switch e.Kind {
	case journal.RunStarted:
		p.o.Run = muster.Run{Goal: e.Text("goal"), Target: e.Text("target"), StartedAt: e.At}
		p.o.Alive = true
	// What the run was started for stays when it goes on.
	case journal.RunResumed:
		p.o.Run.EndedAt, p.o.Alive = 0, true
	case journal.RunEnded:
		p.o.Run.EndedAt, p.o.Alive = e.At, false
	// A request is there while it waits: what was decided is told by the events around it.
	case journal.RequestCreated:
		p.o.Requests = append(p.o.Requests, muster.Request{ID: muster.RequestID(e.Text("request_id")), From: e.Member,
			Kind: muster.RequestKind(e.Text("kind")), To: muster.Name(e.Text("to")), TaskID: e.Task,
			Plan: e.Text("text"), Status: muster.RequestPending, CreatedAt: e.At})
	case journal.RequestDecided:
		id := muster.RequestID(e.Text("request_id"))
		p.o.Requests = slices.DeleteFunc(p.o.Requests, func(r muster.Request) bool { return r.ID == id })
	}
	p.applyToMember(e)
	p.applyToTask(e)
}

// applyToMember adds what an event tells of its member.
func (p *Past) applyToMember(e muster.Event) {
	// Another program may write events of members that no event has introduced; they are left out.
	i := slices.IndexFunc(p.o.Members, func(m Member) bool { return m.Name == e.Member })
	if e.Kind == journal.MemberSpawned && i < 0 {
		i = len(p.o.Members)
		p.o.Members = append(p.o.Members, Member{Member: muster.Member{Name: e.Member}})
	}
	if i < 0 { // the user, or the runtime
		return
	}
	m := &p.o.Members[i]
	switch e.Kind {
	case journal.MemberSpawned:
		m.Role, m.Alive, m.Status, m.Since = e.Text("role"), true, muster.Working, e.At
	case journal.MemberResumed, journal.MemberWorking:
		m.Alive, m.Status, m.Since = true, muster.Working, e.At
	case journal.MemberIdle:
		m.Status, m.IdleReason, m.Since = muster.Idle, muster.IdleReason(e.Text("reason")), e.At
	case journal.MemberShutdown:
		m.Status, m.Alive, m.Task, m.Since = muster.Shutdown, false, 0, e.At
	case journal.TurnStarted:
		m.Turns = int(e.Number("turns"))
	// What a turn has cost is in its event, as far as its price is known.
	case journal.TurnEnded:
		s := spend.Sum{Calls: 1, Dollars: spend.FromFloat(e.Number("dollars"))}
		s.Input, s.Output = int(e.Number("input")), int(e.Number("output"))
		if p.o.Spending.Members == nil {
			p.o.Spending.Members = map[muster.Name]spend.Sum{}
		}
		p.o.Spending.Members[e.Member] = p.o.Spending.Members[e.Member].Plus(s)
		p.o.Spending.Total = p.o.Spending.Total.Plus(s)
	case journal.TaskClaimed:
		m.Task = e.Task
	case journal.TaskCompleted, journal.TaskReleased, journal.TaskRevoked, journal.TaskAttention:
		if m.Task == e.Task {
			m.Task = 0
		}
	}
}

// applyToTask adds what an event tells of its task.
func (p *Past) applyToTask(e muster.Event) {
	i := slices.IndexFunc(p.o.Tasks, func(t muster.Task) bool { return t.ID == e.Task })
	if e.Kind == journal.TaskCreated && i < 0 {
		i = len(p.o.Tasks)
		p.o.Tasks = append(p.o.Tasks, muster.Task{ID: e.Task, Subject: e.Text("subject"), Status: muster.Pending,
			CreatedBy: e.Member, CreatedAt: e.At})
	}
	if i < 0 {
		return
	}
	// The last event that tells of a task says how it stands: events come in the order of what they tell.
	t := &p.o.Tasks[i]
	switch e.Kind {
	case journal.TaskClaimed:
		t.Status, t.Owner = muster.InProgress, e.Member
	case journal.TaskReleased, journal.TaskRevoked:
		t.Status, t.Owner = muster.Pending, ""
	case journal.TaskLanding:
		t.Status = muster.Landing
	// Work that comes back is the owner's again.
	case journal.TaskReturned:
		t.Status, t.Returned = muster.InProgress, e.Text("reason")
	case journal.TaskAttention:
		t.Status, t.Owner, t.Result = muster.NeedsAttention, "", e.Text("reason")
	case journal.TaskCompleted:
		t.Status, t.Result = muster.Completed, e.Text("result")
		if c := e.Text("commit"); c != "" {
			t.Landed = &muster.Landed{Commit: c, Receipt: e.Text("receipt"), Check: e.Text("check"),
				Seconds: e.Number("seconds")}
		}
	case journal.TaskUpdated:
		if e.Text("changed") == "retry" {
			t.Status = muster.Pending
		}
	case journal.TaskDeleted:
		p.o.Tasks = slices.Delete(p.o.Tasks, i, i+1)
	case journal.LaneCreated:
		t.Worktree = muster.Name(e.Text("lane"))
	}
	if i < len(p.o.Tasks) {
		t.UpdatedAt = e.At
	}
}
