package teammate

import (
	"context"
	"fmt"
	"strings"

	"muster"
	"muster/internal/requests"
	"muster/llm"
	"muster/tool"
)

// plans asks for approval of plans and holds back the tools that need one. A plan is for one
// claim: it is void when the claim is over.
type plans struct{ *self }

// Plan asks for approval of a plan for the current task. The member is parked until it is
// decided.
func (p *plans) Plan(ctx context.Context, plan string) (llm.Result, error) {
	t, ok := p.claims.CurrentTask()
	switch {
	case !ok:
		return llm.ErrorResult("You have no task in hand: a plan is for a task."), nil
	case plan == "":
		return llm.ErrorResult("The plan is empty: say what you will change, where, and how it can be undone."), nil
	}
	r, err := p.request(ctx, t, plan)
	if err != nil {
		return llm.Result{}, err
	}
	// The request is a record. A process that dies while it waits finds it again with
	// request, and waits for the same one.
	done := p.presence.showActivity(ctx, fmt.Sprintf("waits for plan %s", r.ID))
	r, err = p.await(ctx, r.ID)
	done()
	if err != nil {
		return llm.Result{}, err
	}
	// The answer is on its way as mail too. The model reads it once, as the result of this
	// call.
	p.conversation.returned.Store(r.ID, true)
	if r.Status == muster.RequestApproved {
		return tool.Text(strings.TrimSuffix(fmt.Sprintf("Approved by %s. %s", r.ResolvedBy, r.Response), " ")), nil
	}
	return llm.ErrorResult("The plan is %s. %s Submit another, or give the task back.", r.Status, r.Response), nil
}

// await waits for the answer to a plan, or until the task is no longer the member's: then the
// plan is void.
func (p *plans) await(ctx context.Context, id muster.RequestID) (muster.Request, error) {
	waiting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	// A parked member calls no tool that would check its claim. Without this watch it would
	// wait for the approval of a plan for a task that somebody else works on.
	changed := p.Board.Watch(waiting) // before the first check, so that no change is missed
	check := func() {
		if err := p.claims.check(waiting); err != nil {
			stop(err)
		}
	}
	go func() {
		check()
		for range changed { // it is closed when the wait is over
			check()
		}
	}()
	r, err := p.Requests.Await(waiting, id)
	if err == nil || context.Cause(ctx) != nil {
		return r, err
	}
	return r, p.claims.onClaimLost(ctx, err)
}

// request returns the request for this plan, task and claim: the one that was made before a
// crash, or a new one. Only the newest plan of a claim counts.
func (p *plans) request(ctx context.Context, t muster.Task, plan string) (muster.Request, error) {
	all, err := p.Requests.List(ctx)
	if err != nil {
		return muster.Request{}, err
	}
	hash := requests.PlanHash(plan)
	var last muster.Request
	for _, r := range all { // oldest first
		if p.isPlanFor(r, t) {
			last = r
		}
	}
	if last.PlanHash == hash && (last.Status == muster.RequestPending || last.Status == muster.RequestApproved) {
		return last, nil
	}
	return p.Requests.Ask(ctx, muster.Request{Kind: muster.AskPlan, From: p.name(), To: muster.Lead, Plan: plan,
		PlanHash: hash, TaskID: t.ID, Fence: t.Fence})
}

// isPlanFor reports whether a request is the member's plan for a claim.
func (p *plans) isPlanFor(r muster.Request, t muster.Task) bool {
	return r.Kind == muster.AskPlan && r.From == p.name() && r.TaskID == t.ID && r.Fence == t.Fence
}

// cancel cancels the plans of a claim that is over, so that nobody decides them.
func (p *plans) cancel(ctx context.Context, t muster.Task, why string) error {
	return p.Requests.Withdraw(ctx, p.name(), why, func(r muster.Request) bool { return p.isPlanFor(r, t) })
}

// require says why a tool that changes something is refused: the task needs an approved plan
// first. The lead decides plans and needs none.
func (p *plans) require(ctx context.Context, toolName string) error {
	t, ok := p.claims.CurrentTask()
	if !ok || p.isLead() || !t.RequirePlan && !p.presence.Me().RequirePlan {
		return nil
	}
	all, err := p.Requests.List(ctx)
	if err != nil {
		return tool.Fatal(err)
	}
	if requests.Approved(all, t.ID, t.Fence) {
		return nil
	}
	return muster.Errorf(muster.Invalid, "Task #%d needs an approved plan before %s may run", t.ID, toolName).
		WithHint("read what you need, then call submit_plan.")
}

// gate is a decorator that refuses a tool while a required plan is not approved.
func (p *plans) gate(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) {
	if err := p.require(ctx, c.Name); err != nil {
		return tool.FromError(err)
	}
	return next(ctx, c)
}
