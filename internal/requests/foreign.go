package requests

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"muster"
	"muster/internal/mailbox"
	"muster/internal/safetext"
	"muster/journal"
)

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
func cut(text string) string {
	return safetext.Cut(strings.ToValidUTF8(text, "?"), mailbox.MaxMail/2)
}

// askedAs returns the id by which the asker knows a request.
func askedAs(r muster.Request) muster.RequestID {
	var id muster.RequestID
	if raw, ok := r.Extra[asked]; !ok || json.Unmarshal(raw, &id) != nil {
		return r.ID
	}
	return id
}
