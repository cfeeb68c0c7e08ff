package face

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"muster"
	"muster/internal/spend"
	"muster/internal/view"
	"muster/journal"
	"muster/llm"
)

// Past is how a team stood at earlier times of a run. It is derived from the events alone, one after the other, so it
// works for a team at work and for one that has stopped.
//
// An event does not have all that a record has: what a task depends on, who wants to be asked and the like come from
// the records as they are now, where they are given.
type Past struct {
	run      muster.Run
	presence view.Presence
	records  map[muster.TaskID]muster.Task // as they are now
	tasks    map[muster.TaskID]*muster.Task
	members  []view.Member // in the order in which they joined
	requests []muster.Request
	spending *spend.Book
	mail     int     // that waits for the user
	last     float64 // when the last event was
}

// NewPast returns the beginning of a run: no member, and the tasks that were on the board before.
func NewPast(run muster.Run, records []muster.Task) *Past {
	p := &Past{run: run, records: map[muster.TaskID]muster.Task{}, tasks: map[muster.TaskID]*muster.Task{},
		spending: spend.NewBook()}
	p.run.EndedAt, p.run.Away, p.last = 0, 0, run.StartedAt
	for _, t := range records {
		p.records[t.ID] = t
		if t.CreatedAt < run.StartedAt {
			// What has happened to it in the run, the events say. What was done before has stayed as it is.
			if before := t; t.Status != muster.Completed || t.UpdatedAt >= run.StartedAt {
				before.Status, before.Owner, before.Landed, before.Returned = muster.Pending, "", nil, ""
				t = before
			}
			p.tasks[t.ID] = &t
		}
	}
	return p
}

// Apply takes in the next event. Events of earlier runs are passed over.
func (p *Past) Apply(e muster.Event) {
	if e.At < p.run.StartedAt {
		return
	}
	// What members do at this moment is derived as for the present, by the same code.
	p.presence.Apply(e)
	switch e.Kind {
	case journal.RunStarted:
		p.run.EndedAt = 0
	case journal.RunResumed:
		// Nothing says when a process was killed, so the run was away since the event before.
		p.run.EndedAt, p.run.Away = 0, p.run.Away+max(e.At-p.last, 0)
	case journal.RunEnded: // it may be resumed later
		p.run.EndedAt = e.At
	case journal.TurnEnded:
		p.addTurn(e)
	case journal.RequestCreated:
		id, kind := muster.RequestID(e.Text("request_id")), muster.RequestKind(e.Text("kind"))
		p.requests = append(p.requests, muster.Request{ID: id, Kind: kind, From: e.Member, TaskID: e.Task,
			To: muster.Name(e.Text("to")), Plan: e.Text("text"), Status: muster.RequestPending, CreatedAt: e.At})
	case journal.RequestDecided:
		id := muster.RequestID(e.Text("request_id"))
		p.requests = slices.DeleteFunc(p.requests, func(r muster.Request) bool { return r.ID == id })
	case journal.MailSent:
		if e.Text("to") == string(muster.User) {
			p.mail++
		}
	case journal.MailDelivered: // of mail from before the run, too, so that there may be more than was counted
		if e.Member == muster.User {
			p.mail = max(0, p.mail-int(e.Number("count")))
		}
	}
	p.applyToMember(e)
	p.applyToTask(e)
	p.last = e.At
}

// addTurn adds what a turn of a member, of its subagent or of a summary has cost: each has an event of its own. Calls
// that were cut off have none, so that the ledger may have more. A price that is not known counts as such, and not as
// nothing.
func (p *Past) addTurn(e muster.Event) {
	dollars, isPriced := e.Fields["dollars"]
	// Without a price the tokens are all that tells how much a member has done.
	count := func(name string) int { return int(e.Number(name)) }
	s := spend.Sum{Calls: 1, Dollars: spend.FromFloat(e.Number("dollars")), Usage: llm.Usage{Input: count("input"),
		Output: count("output"), CacheRead: count("cache_read"), CacheWrite: count("cache_write"),
		CacheWriteLong: count("cache_write_long")}}
	if isPriced && dollars == nil {
		s.Unpriced = 1
	}
	p.spending.Total = p.spending.Total.Plus(s)
	p.spending.Members[e.Member] = p.spending.Members[e.Member].Plus(s)
	if agent := e.Text("agent"); agent != "" {
		p.spending.AddAgent(muster.Name(agent), e.Member, e.Text("role"), s)
	}
	p.spending.Tasks[e.Task] = p.spending.Tasks[e.Task].Plus(s)
}

func (p *Past) applyToMember(e muster.Event) {
	// Events of commands and of other programs have names that are no members: only work makes a member.
	i := slices.IndexFunc(p.members, func(m view.Member) bool { return m.Name == e.Member })
	if i < 0 {
		if e.Kind != journal.MemberSpawned && e.Kind != journal.MemberResumed && e.Kind != journal.TurnStarted {
			return
		}
		// The event of its first claim may come before that of its spawning.
		made := muster.Member{Name: e.Member}
		for _, t := range p.tasks {
			if t.Owner == e.Member && (t.Status == muster.InProgress || t.Status == muster.Landing) {
				made.Task = t.ID
			}
		}
		i, p.members = len(p.members), append(p.members, view.Member{Member: made})
	}
	m := &p.members[i]
	status := m.Status
	switch e.Kind {
	case journal.MemberSpawned:
		m.Role = e.Text("role")
		status = muster.Working
	case journal.MemberResumed, journal.MemberWorking:
		status = muster.Working
	case journal.TurnStarted:
		m.Turns, status = max(m.Turns, int(e.Number("turns"))), muster.Working
	case journal.MemberIdle:
		status, m.IdleReason = muster.Idle, muster.IdleReason(e.Text("reason"))
	// Its task is given back by an event of its own.
	case journal.MemberShutdown:
		status = muster.Shutdown
	case journal.TaskClaimed:
		m.Task = e.Task
	case journal.TaskCompleted, journal.TaskReleased, journal.TaskRevoked, journal.TaskAttention:
		if m.Task == e.Task {
			m.Task = 0
		}
	}
	// Since is when it began to be so, and not when it was said last.
	if status != m.Status {
		m.Status, m.Since = status, e.At
	}
}

func (p *Past) applyToTask(e muster.Event) {
	t := p.tasks[e.Task]
	if t == nil {
		if e.Kind != journal.TaskCreated {
			return
		}
		// A task that was deleted later has no record.
		record := p.records[e.Task]
		t = &muster.Task{ID: e.Task, Subject: cmp.Or(e.Text("subject"), record.Subject), Status: muster.Pending,
			DependsOn: record.DependsOn, CreatedAt: e.At}
		if record.ID == 0 {
			t.DependsOn = dependencies(e)
		}
		p.tasks[e.Task] = t
	}
	switch e.Kind {
	case journal.TaskClaimed:
		t.Status, t.Owner = muster.InProgress, e.Member
	case journal.TaskReleased, journal.TaskRevoked:
		t.Status, t.Owner = muster.Pending, ""
	case journal.TaskLanding:
		// It stays its owner's until it has landed or came back.
		t.Status = muster.Landing
	case journal.TaskReturned:
		t.Status, t.Returned = muster.InProgress, e.Text("text")
	case journal.TaskCompleted:
		t.Status, t.Owner, t.Returned, t.Result = muster.Completed, e.Member, "", e.Text("result")
		// Without a commit it was done without a change, and the board counts it apart. An overview that was made
		// before still has the old pointer, so it is a new one.
		if commit := e.Text("commit"); commit != "" {
			t.Landed = &muster.Landed{Commit: commit, Receipt: e.Text("receipt"), Check: e.Text("check"),
				Seconds: e.Number("seconds")}
		}
	case journal.LaneCreated:
		t.Worktree = muster.Name(e.Text("lane"))
	case journal.TaskAttention:
		// Nobody may claim it, so it has no owner.
		t.Status, t.Owner, t.Result = muster.NeedsAttention, "", e.Text("reason")
	case journal.TaskUpdated:
		// Of other changes, such as a new subject, no event says the value.
		if changed, _ := e.Fields["changed"].([]any); slices.Contains(changed, any("retry")) {
			t.Status = muster.Pending
		}
	case journal.TaskDeleted:
		// What waited for it waits no longer: Overview looks for the blockers that are there.
		delete(p.tasks, e.Task)
		return
	default:
		return
	}
	t.UpdatedAt = e.At
}

// dependencies returns on which tasks a new one depends, as its event says. Events of older versions do not say it, and
// no event says that a dependency was added or removed later: there the records are better, where there are some.
func dependencies(e muster.Event) (all []muster.TaskID) {
	list, _ := e.Fields["depends_on"].([]any)
	for _, x := range list {
		if id, ok := x.(float64); ok {
			all = append(all, muster.TaskID(id))
		}
	}
	return all
}

// Overview returns how the team stood after the events so far, at a time. It shares nothing with the Past that changes
// later, so it may be drawn while the next event is applied.
func (p *Past) Overview(at time.Time) view.Overview {
	o := Empty()
	o.Team, o.Run, o.Now, o.Alive, o.Mail = p.run.Team, p.run, at, p.run.EndedAt == 0, p.mail
	o.Presence, o.Spending.Total = p.presence.Clone(), p.spending.Total
	o.Spending.Members, o.Spending.Tasks = maps.Clone(p.spending.Members), maps.Clone(p.spending.Tasks)
	o.Spending.Agents = maps.Clone(p.spending.Agents)
	end := at
	if p.run.EndedAt != 0 {
		end = muster.Time(p.run.EndedAt)
	}
	o.Lived = end.Sub(muster.Time(p.run.StartedAt)) - time.Duration(p.run.Away*float64(time.Second))
	// What a task still waits for changes with the others, so it is found anew each time.
	for _, t := range p.tasks {
		x := *t
		x.BlockedBy = nil
		for _, id := range x.DependsOn {
			if d := p.tasks[id]; d != nil && d.Status != muster.Completed {
				x.BlockedBy = append(x.BlockedBy, id)
			}
		}
		o.Tasks = append(o.Tasks, x)
	}
	slices.SortFunc(o.Tasks, func(a, b muster.Task) int { return cmp.Compare(a.ID, b.ID) })
	// Members are copied, because their subjects and whether they live depend on the moment.
	for _, m := range p.members {
		// No event says when a process was killed, so who has not stopped counts as alive until the run has ended.
		m.Alive = o.Alive && m.Status != muster.Shutdown
		if t := p.tasks[m.Task]; t != nil {
			m.Subject = t.Subject
		}
		o.Members = append(o.Members, m)
	}
	o.AddHelpers()
	o.Requests = append(o.Requests, p.requests...)
	countTasks(&o)
	if o.Alive {
		o.Landings = o.Presence.Queued(at)
	}
	return o
}
