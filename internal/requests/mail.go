package requests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"muster"
)

// question returns the mail about a pending request to its addressee. Its id is derived from the request's,
// so it is read once however often it is sent.
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

// answer returns the mail with the decision to the member that asked, or false when there is none. Whoever
// asks for a permission waits for the record itself and gets no mail. Nor is there one for a request that
// was cancelled or expired.
func answer(r muster.Request) (muster.Message, bool) {
	yes := r.Status == muster.RequestApproved
	m := muster.Message{ID: muster.MessageID("answer-" + r.ID), From: r.ResolvedBy, To: r.From, RequestID: askedAs(r),
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
		if r.TaskID == 0 { // of another program
			m.Content = fmt.Sprintf("Your plan is %s.", verdict)
		}
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

// A request names in its field effects what must still follow from its last change: "mail". The process
// that changed it sends the mail and clears the field. If it dies before that, another process does so at
// its next Settle, so a crash between the record and the mail loses nothing. Mail that is sent twice has
// the same id.
const effects = "effects"

// queueMail notes in r that its mail must still be sent, or that it has been. It copies Extra, which r may
// share with the cache of the collection.
func queueMail(r *muster.Request, mails bool) {
	x := muster.Extra{}
	maps.Copy(x, r.Extra)
	delete(x, effects)
	if mails {
		x[effects] = json.RawMessage(`["mail"]`)
	}
	r.Extra = x
}

// hasQueuedMail reports whether mail about r must still be sent.
func hasQueuedMail(r muster.Request) bool { return r.Extra[effects] != nil }

// sendQueued sends the mail that r names and then clears it from the record at rev.
func (q *Requests) sendQueued(ctx context.Context, r muster.Request, rev muster.Rev) (muster.Request, error) {
	if !hasQueuedMail(r) {
		return r, nil
	}
	m, ok := answer(r)
	if !Final(r) {
		m, ok = question(r), true
	}
	// The mail is sent before the record is cleared. A crash between the two leaves it queued, and it is
	// sent again with the same id, which its reader recognises.
	if ok {
		// NotFound means that the addressee has left the team: the mail is dropped.
		if _, err := q.post.Send(ctx, m); err != nil && !errors.Is(err, muster.ErrNotFound) {
			return r, err
		}
	}
	queueMail(&r, false)
	if _, err := q.items.Put(ctx, string(r.ID), r, rev); err != nil && !errors.Is(err, muster.ErrStale) {
		return r, err
	}
	// When the record is stale, another process has changed it since and sends the mail about that change.
	return r, nil
}

// Settle sends the mail that a process left unsent when it died. It may be called any number of times.
func (q *Requests) Settle(ctx context.Context) error {
	all, err := q.List(ctx)
	if err != nil {
		return err
	}
	for _, r := range all {
		if !hasQueuedMail(r) {
			continue
		}
		r, rev, err := q.read(ctx, r.ID)
		if err == nil {
			_, err = q.sendQueued(ctx, r, rev)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
