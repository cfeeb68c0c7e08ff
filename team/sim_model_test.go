package team_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/llm"
)

// simModel speaks for every member. What it says follows from how things stand, read past all faults, and from dice; now
// and then it fails, talks nonsense, or goes round in circles.
type simModel struct{ s *sim }

func (m simModel) Reply(ctx context.Context, r llm.Request, _ func(llm.Delta)) (llm.Reply, error) {
	s := m.s
	name, _, _ := strings.Cut(r.CacheKey, "@")
	who := muster.Name(name)
	s.valid(who, r)
	s.mu.Lock()
	n := s.turns[name]
	s.turns[name]++
	s.turns[""]++
	all := s.turns[""]
	s.mu.Unlock()
	switch {
	case all == simWords:
		s.calm.Store(true)
		s.still.Store(true)
		s.tidyUp()
	case all > 4*simWords:
		if all == 4*simWords+1 {
			s.broken("%d turns, %d of them without any fault, and no end", all, 3*simWords)
		}
		return llm.Reply{}, llm.Errorf(llm.Denied, "the simulation ends")
	}
	d := s.dice("model "+name, n)
	pause := time.NewTimer(time.Duration(d.Int64N(int64(15 * time.Second))))
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
		return llm.Reply{}, context.Cause(ctx)
	}
	if !s.calm.Load() {
		if err := m.fails(ctx, who, d); err != nil {
			return llm.Reply{}, err
		}
		if rep, ok := m.nonsense(who, n, d); ok {
			s.say("%s talks nonsense: %.120v", who, rep)
			return rep, nil
		}
	}
	p := &simTalk{s: s, who: who, n: n, d: d}
	if who == muster.Lead {
		p.lead(ctx)
	} else {
		p.teammate(ctx)
	}
	if p.err != nil {
		return llm.Reply{}, llm.Errorf(llm.Incomplete, "the simulation ends: %v", p.err)
	}
	s.say("%s: %s%s", who, p.text, p.gist())
	return p.reply(), nil
}

func (m simModel) fails(ctx context.Context, who muster.Name, d *rand.Rand) error {
	if d.IntN(14) > 0 {
		return nil
	}
	e := llm.Errorf(llm.Overloaded, "simulated")
	switch d.IntN(12) {
	case 0, 1:
		e.After = time.Duration(d.IntN(30)) * time.Second
	case 2:
		e.Kind, e.After = llm.Limited, time.Duration(1+d.IntN(90))*time.Second
	case 3, 4:
		e.Kind = llm.Incomplete
	case 5, 6:
		e.Kind = llm.ContextFull
	case 7:
		e.Kind = llm.BadRequest
	case 8:
		e.Kind = []llm.Kind{llm.Spent, llm.Denied}[d.IntN(2)] // they stop the team
	case 9:
		m.s.faults.Add(1)
		m.s.say("%s's model hangs", who)
		<-ctx.Done()
		return context.Cause(ctx)
	}
	m.s.faults.Add(1)
	m.s.say("%s's model: %v after %v", who, e, e.After)
	return e
}

func (m simModel) nonsense(who muster.Name, n int, d *rand.Rand) (llm.Reply, bool) {
	same := func(tool string, in map[string]any) (llm.Reply, bool) {
		r, err := calls(fmt.Sprintf("%s-%d", who, n), tool, in)
		return r, err == nil
	}
	if m.s.dice("loop "+string(who), n/8).IntN(15) == 0 {
		m.s.faults.Add(1)
		return same("task_get", map[string]any{"task_id": 999})
	}
	if d.IntN(15) > 0 {
		return llm.Reply{}, false
	}
	m.s.faults.Add(1)
	switch d.IntN(9) {
	case 0:
		return same("no_such_tool", map[string]any{"x": 1})
	case 1:
		return same("complete_task", map[string]any{"task_id": "seven"})
	case 2:
		return same("send_message", map[string]any{})
	case 3:
		return same("complete_task", map[string]any{"task_id": 1 + d.IntN(12), "summary": "not mine, perhaps"})
	case 4: // cut in the middle: its calls must not run
		r, _ := same("task_create", map[string]any{"subject": "never"})
		r.Stop = llm.StopMax
		return r, true
	case 5:
		return llm.Reply{Stop: llm.StopRefused, Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{llm.Text{Text: "I will not."}}}}, true
	case 6:
		r, _ := says("A moment.")
		r.Stop = llm.StopPaused
		return r, true
	case 7: // two calls under one id
		r, _ := same("task_list", map[string]any{})
		r.Message.Parts = append(r.Message.Parts, r.Message.Parts[0])
		return r, true
	}
	return llm.Reply{Stop: llm.StopEnd, Message: llm.Message{Role: llm.Assistant}}, true
}

// simTalk is one reply while it is made.
type simTalk struct {
	s    *sim
	who  muster.Name
	n    int
	d    *rand.Rand
	text string
	todo []llm.Part
	err  error
}

type args = map[string]any

func (p *simTalk) call(tool string, in args) {
	data, err := json.Marshal(in)
	if err != nil {
		p.err = err
	}
	p.todo = append(p.todo, llm.Call{ID: fmt.Sprintf("%s-%d-%d", p.who, p.n, len(p.todo)), Name: tool, Input: data})
}

func (p *simTalk) gist() string {
	var b strings.Builder
	for _, c := range p.todo {
		fmt.Fprintf(&b, " %s%s", c.(llm.Call).Name, c.(llm.Call).Input)
	}
	return b.String()
}

func (p *simTalk) reply() llm.Reply {
	if len(p.todo) == 0 {
		if p.text == "" {
			p.text = "Nothing to do."
		}
		r, _ := says(p.text)
		return r
	}
	parts := p.todo
	if p.text != "" {
		parts = append([]llm.Part{llm.Text{Text: p.text}}, parts...)
	}
	return llm.Reply{Stop: llm.StopTools, Message: llm.Message{Role: llm.Assistant, Parts: parts}}
}

func (p *simTalk) lead(ctx context.Context) {
	tasks, err := p.s.o.board.List(ctx)
	p.err = err
	bySubject := map[any]muster.TaskID{}
	var mine, needy []muster.Task
	open := 0
	for _, t := range tasks {
		if bySubject[t.Subject] == 0 {
			bySubject[t.Subject] = t.ID
		}
		switch {
		case t.Owner == muster.Lead && t.Status == muster.InProgress:
			mine = append(mine, t)
		case t.Status == muster.NeedsAttention:
			needy = append(needy, t)
		}
		if t.Open() {
			open++
		}
	}
	for _, k := range p.s.plan.tasks {
		if bySubject[k.subject] != 0 || len(p.todo) >= 4 {
			continue
		}
		in := args{"subject": k.subject, "priority": k.priority, "require_plan": k.plan, "claim_role": k.role}
		var on []any
		for _, subject := range k.on {
			if id := bySubject[subject]; id != 0 {
				on = append(on, id)
			} else {
				on = nil
				break
			}
		}
		if len(k.on) > 0 && on == nil {
			continue // its blockers first
		}
		in["blocked_by"] = on
		p.call("task_create", in)
	}
	members, err := p.s.o.roster.List(ctx)
	if err != nil {
		p.err = err
	}
	alive, living := map[muster.Name]bool{}, 0
	for _, m := range members {
		if alive[m.Name] = m.Status != muster.Shutdown; alive[m.Name] && m.Name != muster.Lead {
			living++
		}
	}
	for _, m := range p.s.plan.members {
		known, on := alive[m.name], false
		_, on = alive[m.name]
		if !known && (!on || open > 0) && len(p.todo) < 6 && living < simTeam {
			living++
			p.call("spawn_teammate", args{"name": m.name, "role": m.role, "prompt": "Work on what is there.", "require_plan": m.plan})
		}
	}
	if pending, err := p.s.o.requests.Pending(ctx); err == nil {
		for _, q := range pending {
			if q.To == muster.Lead && q.Kind == muster.AskPlan && len(p.todo) < 6 {
				p.call("review_plan", args{"request_id": q.ID, "approve": p.s.calm.Load() || p.d.IntN(4) > 0, "feedback": "well"})
			}
		}
	}
	for _, t := range needy {
		if p.s.calm.Load() || p.d.IntN(3) > 0 {
			p.call("task_update", args{"task_id": t.ID, "status": "pending"})
		}
	}
	switch {
	case len(p.todo) > 0:
	case p.s.calm.Load() && p.urge(tasks, members):
	case len(mine) > 0:
		p.call("complete_task", args{"task_id": mine[0].ID, "summary": "done by the lead"})
	case open == 0 && len(needy) == 0:
		p.text = "All is done."
	case !p.s.calm.Load() && p.d.IntN(12) == 0:
		p.text = "I have said all."
	case !p.s.calm.Load() && p.d.IntN(8) == 0:
		p.call("send_message", args{"to": p.s.plan.members[p.d.IntN(len(p.s.plan.members))].name, "content": fmt.Sprintf("How is it going %d?", p.n)})
	default:
		p.call("wait", args{})
	}
}

func (p *simTalk) urge(tasks []muster.Task, members []muster.Member) bool {
	for _, m := range members {
		if m.Status == muster.Idle && slices.ContainsFunc(tasks, func(t muster.Task) bool { return t.Owner == m.Name && t.Status == muster.InProgress }) {
			p.call("send_message", args{"to": m.Name, "content": fmt.Sprintf("Go on with it (%d).", p.n)})
		}
	}
	return len(p.todo) > 0
}

func (p *simTalk) teammate(ctx context.Context) {
	tasks, err := p.s.o.board.List(ctx)
	p.err = err
	var hand muster.Task
	for _, t := range tasks {
		if t.Owner == p.who && (t.Status == muster.InProgress || t.Status == muster.Landing) {
			hand = t
		}
	}
	calm := p.s.calm.Load()
	if hand.ID == 0 {
		switch {
		case !calm && p.d.IntN(4) == 0 && len(tasks) > 0:
			p.call("claim_task", args{"task_id": tasks[p.d.IntN(len(tasks))].ID})
		case p.d.IntN(2) == 0:
			p.call("idle", args{})
		default:
			p.text = "I wait."
		}
		return
	}
	if !calm {
		switch p.d.IntN(14) {
		case 0:
			p.call("send_message", args{"to": []string{"lead", "user", "m1", "m2"}[p.d.IntN(4)], "content": fmt.Sprintf("%s says %d", p.who, p.n)})
			return
		case 1:
			p.call("send_message", args{"to": "lead", "content": fmt.Sprintf("%s asks %d: what now?", p.who, p.n)})
			return
		case 2:
			p.call("release_task", args{"task_id": hand.ID, "reason": "I cannot"})
			return
		case 3:
			p.call("task_list", args{})
			p.call("read_inbox", args{})
			p.call("list_teammates", args{})
			return
		case 4:
			p.text = "I stop here."
			return
		case 5:
			p.call("broadcast", args{"content": fmt.Sprintf("%s to all %d", p.who, p.n)})
			return
		}
	}
	me, err := p.s.o.roster.Get(ctx, p.who)
	if err != nil {
		p.err = err
		return
	}
	if (hand.RequirePlan || me.RequirePlan) && !p.approved(ctx, hand) {
		p.call("submit_plan", args{"plan": fmt.Sprintf("do %d", p.n)})
		return
	}
	for _, k := range p.s.plan.tasks {
		if k.change && k.subject == hand.Subject {
			p.call("write_file", args{"path": hand.Subject + ".txt", "content": hand.Subject + "\n"})
		}
	}
	p.call("complete_task", args{"task_id": hand.ID, "summary": "done by " + string(p.who)})
}

func (p *simTalk) approved(ctx context.Context, t muster.Task) bool {
	all, err := p.s.o.requests.List(ctx)
	if err != nil {
		p.err = err
	}
	yes := false
	for _, q := range all {
		if q.Kind == muster.AskPlan && q.From == p.who && q.TaskID == t.ID && q.Fence == t.Fence {
			yes = q.Status == muster.RequestApproved
		}
	}
	return yes
}
