package teamtools

import (
	"context"
	"fmt"

	"muster"
	"muster/llm"
	"muster/tool"
)

// submitPlan asks the lead for approval of a plan, and waits for the decision. After a crash the call continues to wait
// for the same decision.
func (k toolset) submitPlan() llm.Tool {
	type in struct {
		Plan string `json:"plan" jsonschema:"what you will change, where, and how it can be undone"`
	}
	submit := resultTool("submit_plan", "Ask lead to approve your plan for the task in hand. Returns when it is "+
		"decided.",
		func(ctx context.Context, in in) (llm.Result, error) {
			return k.caller.Plan(ctx, in.Plan)
		})
	return tool.Recoverable(submit, func(ctx context.Context, in in, resume bool) (llm.Result, bool, error) {
		// Without a claimed task the plan is for a claim that was lost, and nobody waits for its approval.
		if _, ok := k.caller.CurrentTask(); !ok || !resume {
			return llm.Result{}, false, nil
		}
		r, err := k.caller.Plan(ctx, in.Plan)
		return r, true, err
	})
}

// reviewPlan decides on a plan. Only the first decision counts; a later one is told what stands.
func (k toolset) reviewPlan() llm.Tool {
	type in struct {
		RequestID muster.RequestID `json:"request_id"`
		Approve   bool             `json:"approve"`
		Feedback  string           `json:"feedback,omitempty"`
	}
	return textTool("review_plan", "Approve or reject a plan that waits for you; with a rejection, say what to do "+
		"instead.",
		func(ctx context.Context, in in) (string, error) {
			r, err := k.Requests.Get(ctx, in.RequestID)
			if err == nil && r.Kind != muster.AskPlan {
				err = muster.Errorf(muster.Invalid, "request %s is no plan but a %s request", r.ID, r.Kind)
			}
			if err != nil {
				return "", err
			}
			// The decision is one write: of two reviews at the same time one counts, and the other reads which.
			r, now, err := k.Requests.Decide(ctx, in.RequestID, k.caller.Me().Name, in.Approve, in.Feedback)
			if err == nil && !now {
				return fmt.Sprintf("Request %s was %s by %s before: that stands.", r.ID, r.Status, r.ResolvedBy), nil
			}
			return answer(err, "Request %s of %s is %s.", r.ID, r.From, r.Status)
		})
}

// requestShutdown asks a teammate to shut down. It only records the request: the teammate answers it, an idle one
// without asking its model, and a supervisor ends one that has not answered in time.
func (k toolset) requestShutdown() llm.Tool {
	type in struct {
		Teammate muster.Name `json:"teammate"`
		Reason   string      `json:"reason,omitempty"`
		Force    bool        `json:"force,omitempty" jsonschema:"do not ask"`
	}
	return textTool("request_shutdown", "Ask a teammate to shut down. An idle one stops at once; a working one may "+
		"refuse with a reason, which is mailed to you. At the end of a run nobody needs it.",
		func(ctx context.Context, in in) (string, error) {
			m, err := k.Roster.Get(ctx, in.Teammate)
			switch {
			case err != nil:
				return "", err
			case m.Name == muster.Lead:
				return "", muster.Errorf(muster.Invalid,
					"lead is not shut down this way: end your turn with nothing open")
			case m.Status == muster.Shutdown:
				return fmt.Sprintf("%s is shut down already.", m.Name), nil
			}
			r, err := k.Requests.Ask(ctx, muster.Request{Kind: muster.AskShutdown, From: k.caller.Me().Name, To: m.Name,
				Reason: in.Reason, Force: in.Force})
			return answer(err, "Shutdown request %s sent to %s.", r.ID, m.Name)
		})
}

// respondShutdown answers a shutdown request. A refusal needs a reason, which is mailed to the lead. After a grant the
// life of the caller ends with this round of tools.
func (k toolset) respondShutdown() llm.Tool {
	type in struct {
		RequestID muster.RequestID `json:"request_id"`
		Approve   bool             `json:"approve"`
		Reason    string           `json:"reason,omitempty" jsonschema:"why not now"`
	}
	return textTool("respond_shutdown", "Answer a shutdown request. Refuse only with work in hand that would be lost "+
		"or is nearly done.",
		func(ctx context.Context, in in) (string, error) {
			if !in.Approve && in.Reason == "" {
				return "", muster.Errorf(muster.Invalid, "say why not: reason is empty")
			}
			text := "Refused; go on."
			if in.Approve {
				text = "You shut down after this."
			}
			return text, k.caller.Leave(ctx, in.RequestID, in.Approve, in.Reason)
		})
}
