package teammate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"muster"
	"muster/internal/landing"
	"muster/internal/prompt"
	"muster/internal/requests"
	"muster/internal/text"
	"muster/llm"
	"muster/tool"
)

func (c *claims) Complete(ctx context.Context, id muster.TaskID, summary string) (llm.Result, error) {
	t, ok := c.CurrentTask()
	if !ok && id == 0 {
		if text, err := c.own.complete(ctx); text != "" || err != nil {
			return llm.ErrorResult("%s", text), err
		}
		t, _ = c.CurrentTask()
	}
	if id == 0 {
		id = t.ID
	}
	if t.ID == 0 || t.ID != id {
		if now, err := c.board.Get(ctx, id); err == nil && now.Status == muster.Completed {
			return llm.ErrorResult("Task %d is completed already.", id), nil
		}
		return llm.ErrorResult("You do not hold task %d: call claim_task first.", id), nil
	}
	// A job could write into the lane while its files are committed.
	if n := c.jobs.Running(); n > 0 {
		return llm.ErrorResult("%d of your background jobs still run: wait for them, or stop them "+
			"with check_background, before you call complete_task.", n), nil
	}
	if dir, err := c.dir(ctx); err == nil { // else there is no lane
		c.hooks.runner.Settle(ctx, dir)
	}
	// The landing is a record with this claim's fence: after a crash it is recovered, and a lost claim is refused.
	defer c.presence.showActivity(ctx, "lands")()
	warning := ""
	v, err := c.lander.LandWith(ctx, t.ID, t.Fence, summary, c.name, landing.Owner{Review: c.review,
		Model: c.hooks.model,
		Unchanged: func(ctx context.Context) error {
			if warning = c.nothingLands(ctx); warning != "" {
				return errWarned
			}
			return nil
		}})
	if errors.Is(err, errWarned) {
		return llm.ErrorResult("%s", warning), nil
	}
	if err != nil {
		if err = c.onClaimLost(ctx, err); !isLostClaim(err) && ctx.Err() == nil {
			// Only the model reads the error, and it may have no more to say. People find the reason with the task.
			why := muster.PlainText(err)
			if hint := muster.HintOf(err); hint != "" {
				why += " (" + hint + ")"
			}
			c.diary.dropped(ctx, "noting why a task did not land", c.board.Refuse(ctx, t.ID, t.Fence, why))
		}
		return llm.Result{}, err
	}
	switch v.Task.Status {
	case muster.NeedsAttention:
		c.finishTask(ctx)
		return llm.ErrorResult("%s", cmp.Or(v.Text,
			fmt.Sprintf("Task #%d failed to land too often. It needs attention, and is no longer yours.", t.ID))), nil
	case muster.Completed:
		c.finishTask(ctx)
		return tool.Text(completedText(v.Task, v.Changes, v.Note)), nil
	}
	// The work came back with the same claim: its owner goes on in the same lane.
	c.setTask(v.Task)
	c.phase.noteChange()
	c.collisions.Returned(t.ID)
	return llm.ErrorResult("%s", cmp.Or(v.Text,
		fmt.Sprintf("Task #%d did not land: fix it in your lane, and call complete_task again.", t.ID))), nil
}

func (c *claims) finishTask(ctx context.Context) {
	t, _ := c.CurrentTask()
	c.lanes.leave(ctx, t.Worktree)
	c.endTask()
}

var errWarned = muster.Errorf(muster.Invalid, "nothing would land")

const maxNamed = 5

// nothingLands returns, once each, why the lane holds nothing: git ignores its files, or they are gone.
func (c *claims) nothingLands(ctx context.Context) string {
	h := c.held.get()
	if h.warnedIgnored {
		return ""
	}
	if files, err := c.worktrees.Ignored(ctx, h.task.Worktree); err == nil && len(files) > 0 {
		c.held.change(func(h *claim) { h.warnedIgnored = true })
		return fmt.Sprintf("Nothing of task #%d would land: your lane has no change but what git ignores (%s), and "+
			"that goes with the lane. git add -f what belongs into the repository; or complete the task again if "+
			"nothing does.", h.task.ID, text.List(files, maxNamed))
	}
	if h.wrote && !h.warnedLost {
		c.held.change(func(h *claim) { h.warnedLost = true })
		return fmt.Sprintf("Nothing of task #%d would land: your lane has no change, and you have written files in "+
			"it. If you or a command took them back on purpose, complete the task again; if not, write them again.",
			h.task.ID)
	}
	return ""
}

// resumeLanding resumes a landing of the current task that an error has cut off, and returns what the owner reads of
// it. No other process will.
func (c *claims) resumeLanding(ctx context.Context, id muster.TaskID) (string, error) {
	res, err := c.Complete(ctx, id, "")
	if err != nil {
		if res, err = tool.FromError(tool.Classify(err)); err != nil {
			return "", err
		}
	}
	c.held.change(func(h *claim) { h.landingResumed = true })
	return text.EscapeTags(res.Text()), nil
}

func (c *claims) isLandingCutOff() bool {
	h := c.held.get()
	return h.task.Status == muster.Landing && !h.landingResumed
}

func (c *claims) Completed(ctx context.Context, id muster.TaskID) (llm.Result, bool) {
	t, err := c.board.Get(ctx, id)
	if id == 0 {
		t, err = c.lastCompleted(ctx)
	}
	if err != nil || t.Status != muster.Completed {
		return llm.Result{}, false
	}
	return tool.Text(completedText(t, "", "")), true
}

// lastCompleted returns the task that the member has completed last, unless it has one in hand, or a lane of which it
// may have wanted to make one.
func (c *claims) lastCompleted(ctx context.Context) (last muster.Task, err error) {
	_, hasTask := c.CurrentTask()
	if _, hasLane := c.own.get(); hasTask || hasLane {
		return last, nil
	}
	all, err := c.board.List(ctx)
	for _, t := range all {
		if t.Status == muster.Completed && t.CompletedBy == c.name && t.UpdatedAt >= last.UpdatedAt {
			last = t
		}
	}
	return last, err
}

// completedText says how a task was completed. changes and note are those of its landing's verdict; "" is not known.
func completedText(t muster.Task, changes, note string) string {
	if t.Landed == nil {
		return fmt.Sprintf("Task #%d is completed; its lane had no change, so nothing landed.", t.ID)
	}
	said := fmt.Sprintf("Task #%d landed as %.7s", t.ID, t.Landed.Commit)
	if changes != "" {
		said += ": " + changes
	}
	said += "."
	if t.Landed.Receipt == muster.ReceiptStillRed {
		said += " The check is still red, as it was before."
	}
	if note != "" {
		said += "\n" + note
	}
	return said
}

// plans asks for approval of plans and holds back the tools that need one. A plan is void when its claim is over.
type plans struct {
	claims   *claims
	requests *requests.Requests
	returned sync.Map // the ids of the plans whose answer submit_plan has returned: mail with it is void
}

func (p *plans) hasReturned(id muster.RequestID) bool {
	_, ok := p.returned.Load(id)
	return ok
}

func (p *plans) Plan(ctx context.Context, plan string) (llm.Result, error) {
	t, ok := p.claims.CurrentTask()
	switch {
	case !ok:
		return llm.ErrorResult("You hold no task. A plan is for a task: call claim_task first."), nil
	case plan == "":
		return llm.ErrorResult("The plan is empty: say what you will change, where, and how it can be undone."), nil
	}
	r, err := p.request(ctx, t, plan)
	if err != nil {
		return llm.Result{}, err
	}
	// The request is a record: after a crash the member finds it again.
	done := p.claims.presence.showActivity(ctx, fmt.Sprintf("waits for plan %s", r.ID))
	r, err = p.await(ctx, r.ID)
	done()
	if err != nil {
		return llm.Result{}, err
	}
	// The answer is on its way as mail too. The model reads it once, as the result of this call.
	p.returned.Store(r.ID, struct{}{})
	if r.Status == muster.RequestApproved {
		return tool.Text(strings.TrimSuffix(fmt.Sprintf("Approved by %s. %s", r.ResolvedBy, r.Response), " ")), nil
	}
	return llm.ErrorResult("The plan is %s. %s Call submit_plan with another plan, or release_task.", r.Status,
		r.Response), nil
}

// await waits for the answer to a request, or until the task is no longer the member's.
func (p *plans) await(ctx context.Context, id muster.RequestID) (muster.Request, error) {
	defer noteWait(ctx, time.Now())
	waiting, stop := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	defer watch.Wait() // nothing of a member outlives it
	defer stop(nil)
	// A parked member calls no tool that would check its claim.
	changed := p.claims.board.Watch(waiting) // before the first check, so that no change is missed
	check := func() {
		if err := p.claims.check(waiting); err != nil {
			stop(err)
		}
	}
	watch.Go(func() {
		check()
		for range changed { // it is closed when the wait is over
			check()
		}
	})
	r, err := p.requests.Await(waiting, id)
	if err == nil || context.Cause(ctx) != nil {
		return r, err
	}
	return r, p.claims.onClaimLost(ctx, err)
}

// request returns the request for a plan of a claim: that of before a crash, or a new one. Only the newest counts.
func (p *plans) request(ctx context.Context, t muster.Task, plan string) (muster.Request, error) {
	all, err := p.requests.List(ctx)
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
	return p.requests.Ask(ctx, muster.Request{Kind: muster.AskPlan, From: p.claims.name, To: muster.Lead, Plan: plan,
		PlanHash: hash, TaskID: t.ID, Fence: t.Fence})
}

func (p *plans) isPlanFor(r muster.Request, t muster.Task) bool {
	return r.Kind == muster.AskPlan && r.From == p.claims.name && r.TaskID == t.ID && r.Fence == t.Fence
}

func (p *plans) state(ctx context.Context, t muster.Task) (note string, err error) {
	all, err := p.requests.List(ctx)
	for _, r := range all { // oldest first
		if p.isPlanFor(r, t) {
			note = prompt.Reminder("Your plan %s for task #%d is %s. %s\nIt says: %s", r.ID, t.ID, r.Status,
				text.EscapeTags(r.Response), text.EscapeTags(text.CutBytes(r.Plan, maxQuote)))
		}
	}
	return note, err
}

func (p *plans) cancel(ctx context.Context, t muster.Task, why string) error {
	return p.requests.Withdraw(ctx, p.claims.name, why, func(r muster.Request) bool { return p.isPlanFor(r, t) })
}

// require says why a tool that changes something is refused before a plan is approved. The lead needs none.
func (p *plans) require(ctx context.Context, toolName string) error {
	t, ok := p.claims.CurrentTask()
	if !ok || p.claims.name == muster.Lead || !t.RequirePlan && !p.claims.presence.Me().RequirePlan {
		return nil
	}
	approved, err := p.isApproved(ctx, t)
	if err != nil {
		return tool.Fatal(err)
	}
	if approved {
		return nil
	}
	return muster.Errorf(muster.Invalid, "Task #%d needs an approved plan before %s may run", t.ID, toolName).
		WithHint("read what you need, then call submit_plan.")
}

func (p *plans) isApproved(ctx context.Context, t muster.Task) (bool, error) {
	all, err := p.requests.List(ctx)
	return requests.Approved(all, t.ID, t.Fence), err
}

func (p *plans) gate(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) {
	if err := p.require(ctx, c.Name); err != nil {
		return tool.FromError(err)
	}
	return next(ctx, c)
}
