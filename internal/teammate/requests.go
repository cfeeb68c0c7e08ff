package teammate

import (
	"context"
	"fmt"

	"muster"
	"muster/internal/requests"
	"muster/llm"
	"muster/tool"
)

// Plan asks for approval of a plan for the task in hand. The member is parked until it is decided.
func (m *Member) Plan(ctx context.Context, plan string) (llm.Result, error) {
	t, ok := m.Hand()
	switch {
	case !ok:
		return llm.ErrorResult("You have no task in hand: a plan is for a task."), nil
	case plan == "":
		return llm.ErrorResult("The plan is empty: say what you will change, where, and how it can be undone."), nil
	}
	r, err := m.planRequest(ctx, t, plan)
	if err != nil {
		return llm.Result{}, err
	}
	done := m.doing(ctx, fmt.Sprintf("waits for plan %s", r.ID))
	r, err = m.decision(ctx, r.ID)
	done()
	if err != nil {
		return llm.Result{}, err
	}
	m.mu.Lock()
	m.answered[r.ID] = true
	m.mu.Unlock()
	if r.Status == muster.RequestApproved {
		text := "Approved by " + string(r.ResolvedBy) + "."
		if r.Response != "" {
			text += " " + r.Response
		}
		return tool.Text(text), nil
	}
	return llm.ErrorResult("The plan is %s. %s Submit another, or give the task back.", r.Status, r.Response), nil
}

// decision waits for the answer to a plan, or until the task is no longer the member's: then the plan is void.
func (m *Member) decision(ctx context.Context, id muster.RequestID) (muster.Request, error) {
	parked, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	changed := m.Board.Watch(parked)
	go func() {
		for {
			if err := m.stillMine(parked); err != nil && parked.Err() == nil {
				stop(err)
			}
			select {
			case <-parked.Done():
				return
			case <-changed:
			}
		}
	}()
	r, err := m.Requests.Await(parked, id)
	if err == nil || context.Cause(ctx) != nil {
		return r, err
	}
	return r, m.lost(ctx, err)
}

// planRequest is the request for this plan, task and claim: the one asked before a crash, or a new one. Only the newest
// plan of a claim counts.
func (m *Member) planRequest(ctx context.Context, t muster.Task, plan string) (muster.Request, error) {
	all, err := m.Requests.List(ctx)
	if err != nil {
		return muster.Request{}, err
	}
	var last muster.Request
	for _, r := range all { // oldest first
		if r.Kind == muster.AskPlan && r.From == m.name() && r.TaskID == t.ID && r.Fence == t.Fence {
			last = r
		}
	}
	if last.PlanHash == requests.PlanHash(plan) && (last.Status == muster.RequestPending || last.Status == muster.RequestApproved) {
		return last, nil
	}
	return m.Requests.Ask(ctx, muster.Request{Kind: muster.AskPlan, From: m.name(), To: muster.Lead, Plan: plan,
		PlanHash: requests.PlanHash(plan), TaskID: t.ID, Fence: t.Fence})
}

// cancelPlans takes back the plans of a claim that is over: nobody need decide them any more.
func (m *Member) cancelPlans(ctx context.Context, t muster.Task, why string) error {
	pending, err := m.Requests.Pending(ctx)
	if err != nil {
		return err
	}
	for _, r := range pending {
		if r.Kind == muster.AskPlan && r.From == m.name() && r.TaskID == t.ID && r.Fence == t.Fence {
			if _, err := m.Requests.Cancel(ctx, r.ID, m.name(), why); err != nil {
				return err
			}
		}
	}
	return nil
}

// requirePlan says why a tool that changes something is refused: the task wants an approved plan first. The lead
// decides plans and needs none.
func (m *Member) requirePlan(ctx context.Context, name string) error {
	t, ok := m.Hand()
	if !ok || m.lead() || !(t.RequirePlan || m.Me().RequirePlan) {
		return nil
	}
	all, err := m.Requests.List(ctx)
	if err != nil {
		return tool.Fatal(err)
	}
	if requests.Approved(all, t.ID, t.Fence) {
		return nil
	}
	return muster.Errorf(muster.Invalid, "Task #%d needs an approved plan before %s may run", t.ID, name).
		WithHint("read what you need, then call submit_plan.")
}

// Leave answers a shutdown request.
func (m *Member) Leave(ctx context.Context, id muster.RequestID, approve bool, reason string) error {
	r, err := m.Requests.Get(ctx, id)
	if err != nil {
		return err
	}
	if r.Kind != muster.AskShutdown {
		return muster.Errorf(muster.Invalid, "request %s is no shutdown but a %s request", id, r.Kind)
	}
	r, _, err = m.Requests.Decide(ctx, id, m.name(), approve, reason)
	if err == nil && r.Status == muster.RequestApproved {
		m.mu.Lock()
		m.leaving = true
		m.mu.Unlock()
	}
	return err
}

// leaveAtRest grants a shutdown that waits for an idle member, without asking its model.
func (m *Member) leaveAtRest(ctx context.Context) (bool, error) {
	all, err := m.Requests.Pending(ctx)
	if err != nil {
		return false, err
	}
	for _, r := range all {
		if r.Kind == muster.AskShutdown && r.To == m.name() {
			_, _, err := m.Requests.Decide(ctx, r.ID, m.name(), true, "idle")
			return err == nil, err
		}
	}
	return false, nil
}
