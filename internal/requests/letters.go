package requests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"muster"
)

// question is the mail that tells of a pending request. Its id comes from the request's, so it is read once however
// often it is sent.
func question(r muster.Request) muster.Message {
	m := muster.Message{ID: muster.MessageID("ask-" + r.ID), Type: muster.MailMessage, From: r.From, To: r.To,
		RequestID: r.ID, TaskID: r.TaskID, Plan: r.Plan}
	switch r.Kind {
	case muster.AskPlan:
		m.Type = muster.MailPlan
		m.Content = fmt.Sprintf("%s asks you to approve its plan for task %d.", r.From, r.TaskID)
	case muster.AskShutdown:
		m.Type = muster.MailShutdown
		m.Content = fmt.Sprintf("%s asks you to shut down.", r.From)
		if r.Reason != "" {
			m.Content += " Reason: " + r.Reason
		}
	default:
		m.Content = fmt.Sprintf("%s asks for permission: %s", r.From, r.Reason)
	}
	return m
}

// answer is the mail that tells who asked; a permission's asker waits for the record and gets none, nor does anyone
// get one for a request that was taken back or expired.
func answer(r muster.Request) (muster.Message, bool) {
	yes := r.Status == muster.RequestApproved
	m := muster.Message{ID: muster.MessageID("answer-" + r.ID), From: r.ResolvedBy, To: r.From, RequestID: r.ID,
		TaskID: r.TaskID, Approve: &yes, Feedback: r.Response}
	verdict := "rejected"
	switch {
	case !yes && r.Status != muster.RequestRejected, r.From == "":
		return m, false
	case r.Kind == muster.AskPlan:
		if yes {
			verdict = "approved: go on"
		}
		m.Type = muster.MailPlanAnswer
		m.Content = fmt.Sprintf("Your plan for task %d is %s.", r.TaskID, verdict)
	case r.Kind == muster.AskShutdown:
		verdict = "goes on working"
		if yes {
			verdict = "shuts down"
		}
		m.Type = muster.MailShutdownAnswer
		m.Content = fmt.Sprintf("%s %s.", r.To, verdict)
	default:
		return m, false
	}
	return m, true
}

// A request names in its effects what must still follow from its last change: "mail". Whoever comes by sends it, any number
// of times, and clears it. So a crash between the record and the mail loses nothing.
const (
	effects = "effects"
	mail    = `["mail"]`
)

func owe(r *muster.Request, mails bool) {
	x := muster.Extra{}
	for k, v := range r.Extra {
		if k != effects {
			x[k] = v
		}
	}
	if mails {
		x[effects] = json.RawMessage(mail)
	}
	if r.Extra = x; len(x) == 0 {
		r.Extra = nil
	}
}

func owes(r muster.Request) bool { return len(r.Extra[effects]) > 0 }

// tell sends the mail that r owes.
func (q *Requests) tell(ctx context.Context, r muster.Request, rev muster.Rev) (muster.Request, error) {
	if !owes(r) {
		return r, nil
	}
	m, ok := answer(r)
	if !Final(r) {
		m, ok = question(r), true
	}
	if ok {
		// NotFound: nobody is there any more to be told.
		if _, err := q.post.Send(ctx, m); err != nil && !errors.Is(err, muster.ErrNotFound) {
			return r, err
		}
	}
	owe(&r, false)
	if _, err := q.items.Put(ctx, string(r.ID), r, rev); err != nil && !errors.Is(err, muster.ErrStale) {
		return r, err // when Stale, it went on meanwhile, and what it owes now is the other's
	}
	return r, nil
}

// Settle sends the mail that a crash kept from being sent. Any number of times.
func (q *Requests) Settle(ctx context.Context) error {
	all, err := q.List(ctx)
	if err != nil {
		return err
	}
	for _, r := range all {
		if !owes(r) {
			continue
		}
		r, rev, err := q.read(ctx, r.ID)
		if err != nil {
			return err
		}
		if _, err := q.tell(ctx, r, rev); err != nil {
			return err
		}
	}
	return nil
}
