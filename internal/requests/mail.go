package requests

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"muster"
	"muster/internal/mailbox"
	"muster/internal/text"
	"muster/journal"
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
// was cancelled or expired, or that the runtime itself has made.
func answer(r muster.Request) (muster.Message, bool) {
	yes := r.Status == muster.RequestApproved
	m := muster.Message{ID: muster.MessageID("answer-" + r.ID), From: r.ResolvedBy, To: r.From, RequestID: askedAs(r),
		TaskID: r.TaskID, Approve: &yes, Feedback: r.Response}
	verdict := "rejected"
	switch {
	case !yes && r.Status != muster.RequestRejected, r.From == "", r.From == muster.System:
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
	case r.Kind == muster.AskShutdown && r.From == muster.User: // the command that asked waits for the record too
		return m, false
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

// Other programs ask by mail alone: they keep no records that we could read. FromMail makes the record.

// asked names, among the fields of a request that came as a mail, the id that its asker gave it, if that is no id of
// ours. The answer is mailed with it.
const asked = "asked_as"

// FromMail records the request that a mail of another program brings to a member, and returns it as it stands; ok is
// false for a mail that brings none. Such a request asks and never forces: it has no deadline, and whoever is asked
// may leave it. A request to the lead to shut down stays a mail, because the end of the lead is the end of the team.
// A mail that is read twice gives one record: the id comes from the mail.
func (q *Requests) FromMail(
	ctx context.Context, m muster.Message, to muster.Name,
) (r muster.Request, ok bool, err error) {
	r = muster.Request{ID: m.RequestID, From: m.From, To: to, Status: muster.RequestPending, TaskID: m.TaskID,
		CreatedAt: muster.UnixTime(time.Now())}
	r.UpdatedAt = r.CreatedAt
	switch {
	case m.From == "" || m.From == to:
		return r, false, nil
	case m.Type == muster.MailPlan && to == muster.Lead:
		r.Kind, r.Plan = muster.AskPlan, cut(cmp.Or(m.Plan, m.Content))
		r.PlanHash = PlanHash(r.Plan)
	case m.Type == muster.MailShutdown && to != muster.Lead:
		r.Kind, r.Reason = muster.AskShutdown, cut(m.Content)
	default:
		return r, false, nil
	}
	if !idRule().MatchString(string(m.RequestID)) {
		parts := []string{string(m.ID), string(m.From), string(to), m.Content}
		sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
		r.ID = muster.RequestID(hex.EncodeToString(sum[:4]))
		if m.RequestID != "" {
			id, err := json.Marshal(muster.RequestID(cut(string(m.RequestID))))
			if err != nil {
				return r, false, err
			}
			r.Extra = muster.Extra{asked: id}
		}
	}
	// Of two records of one id the first counts: a mail cannot change what is asked or decided.
	_, err = q.items.Create(ctx, string(r.ID), r)
	if errors.Is(err, muster.ErrStale) {
		there, _, err := q.read(ctx, r.ID)
		ok = err == nil && there.Kind == r.Kind && there.From == r.From && there.To == to
		return there, ok, ignoreUnreadable(err)
	}
	if err != nil {
		return r, false, err
	}
	q.emit(ctx, journal.RequestCreated, r, map[string]any{"to": r.To, "text": cmp.Or(r.Plan, r.Reason)})
	return r, true, nil
}

// ignoreUnreadable drops the error of a record that cannot be read, or is gone by now: the mail is delivered as it is.
func ignoreUnreadable(err error) error {
	if errors.Is(err, muster.ErrCorrupt) || errors.Is(err, muster.ErrNotFound) {
		return nil
	}
	return err
}

// cut returns a text of another program as a record has it.
func cut(s string) string {
	return text.CutBytes(strings.ToValidUTF8(s, "?"), mailbox.MaxMail/2)
}

// askedAs returns the id by which the asker knows a request.
func askedAs(r muster.Request) muster.RequestID {
	var id muster.RequestID
	if raw, ok := r.Extra[asked]; !ok || json.Unmarshal(raw, &id) != nil {
		return r.ID
	}
	return id
}
