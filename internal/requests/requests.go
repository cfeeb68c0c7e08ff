// Package requests lets one member ask another for a decision: to shut down, to approve a plan, to give
// permission.
//
// Its type is Requests. Each request is one document and one small state machine (state.go): it is pending
// until it is approved, rejected, cancelled, or past its deadline, and that is final. The document decides. It is
// written by compare-and-set before any mail about it is sent, and names the mail that must still follow
// (mail.go), so a crash loses none. Mail that is sent twice has the same id, so it is read once.
//
// Who decides is told by the runtime, never by a text. What follows from a decision, such as stopping a
// member or starting work on a plan, does not belong here.
package requests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"muster"
	"muster/internal/corruption"
	"muster/internal/mailbox"
	"muster/internal/state"
	"muster/internal/text"
	"muster/journal"
)

// Requests are the requests of a team. Several values, in several processes, may work on one state. A
// Requests is safe for concurrent use.
type Requests struct {
	items   *state.Collection[muster.Request]
	post    *mailbox.Mail
	journal *journal.Journal

	// seen has since when this process sees each request wait. The lock of items guards it.
	seen map[muster.RequestID]time.Time
}

// New returns the requests of the team in s.
func New(s muster.Store, p *mailbox.Mail, j *journal.Journal) *Requests {
	q := &Requests{post: p, journal: j, seen: map[muster.RequestID]time.Time{}}
	q.items = state.New(state.Options[muster.Request]{
		Table: s.Table(muster.TableRequests), Name: muster.TableRequests, Decode: decode, Encode: encode,
		OnChange: q.onChange, Reporter: corruption.New(s.Log(), s.Inbox(), j),
	})
	return q
}

// Ask records the request, then mails it to whom it is for. It gets an id if it has none, and its kind's
// deadline if that has one. Asking again with the same id mails it again if it still waits, and returns it
// as it stands. Errors: Invalid; NotFound when nobody has the addressee's name.
func (q *Requests) Ask(ctx context.Context, r muster.Request) (muster.Request, error) {
	if err := q.prepare(ctx, &r); err != nil {
		return muster.Request{}, err
	}
	// The mail is checked before the record is written: a record whose mail can never be sent would wait
	// for somebody who does not hear of it.
	if err := q.post.Check(ctx, question(r)); err != nil {
		return muster.Request{}, err
	}
	queueMail(&r, isMailed(r))
	// With an id that the caller has fixed, a caller that crashed may ask again and gets the same request.
	isNewID := r.ID == ""
	if !isNewID && !idRule().MatchString(string(r.ID)) {
		return muster.Request{}, muster.Errorf(muster.Invalid,
			"%q cannot be a request's id: it is eight hex digits", string(r.ID))
	}
	for {
		if isNewID { // eight hex digits; Create finds out whether they are taken
			r.ID = muster.RequestID(fmt.Sprintf("%08x", rand.Uint32()))
		}
		rev, err := q.items.Create(ctx, string(r.ID), r)
		switch {
		case err == nil:
			if isForReading(r) {
				q.emit(ctx, journal.RequestCreated, r, map[string]any{"to": r.To, "text": cmp.Or(r.Plan, r.Reason)})
			}
			return q.sendQueued(ctx, r, rev)
		case !errors.Is(err, muster.ErrStale):
			return muster.Request{}, err
		case isNewID:
			continue
		}
		there, rev, err := q.read(ctx, r.ID)
		switch {
		case err != nil:
			return muster.Request{}, err
		case there.Kind != r.Kind || there.From != r.From || there.To != r.To:
			return muster.Request{}, muster.Errorf(muster.Held,
				"the id %s belongs to another request: %s", r.ID, title(there))
		case !Final(there):
			queueMail(&there, isMailed(there))
		}
		return q.sendQueued(ctx, there, rev)
	}
}

// isForReading reports whether somebody has to read a request. The runtime carries out an interruption by itself, and
// tells of its outcome.
func isForReading(r muster.Request) bool { return r.Kind != muster.AskInterrupt }

// isMailed reports whether a request is mailed to whom it is for. The user finds a permission under what needs an
// answer, and would have to put away the mail about it as well.
func isMailed(r muster.Request) bool {
	return isForReading(r) && (r.Kind != muster.AskPermission || r.To != muster.User)
}

// prepare fills in the fields of a new request that are not the asker's to choose: that it is pending, its
// times, its deadline and the digest of its plan. Errors: Invalid for a request that nobody could decide.
func (q *Requests) prepare(ctx context.Context, r *muster.Request) error {
	now := time.Now()
	r.Status, r.ResolvedBy, r.ResolvedAt, r.Response, r.Scope = muster.RequestPending, "", 0, "", muster.ScopeOnce
	r.CreatedAt = muster.UnixTime(now)
	r.UpdatedAt = r.CreatedAt
	if wait, ends := waits[r.Kind]; ends && r.Deadline == 0 {
		r.Deadline = muster.UnixTime(now.Add(wait))
	}
	switch r.Kind {
	case muster.AskShutdown, muster.AskPermission, muster.AskInterrupt:
	case muster.AskPlan:
		if r.Plan == "" {
			return muster.Errorf(muster.Invalid, "the plan is empty")
		}
		if r.PlanHash = PlanHash(r.Plan); r.TaskID == 0 {
			return muster.Errorf(muster.Invalid, "a plan is for a task, and none is named")
		}
		return q.supersedeOlder(ctx, r)
	default:
		return muster.Errorf(muster.Invalid, "there is no kind of request %q", string(r.Kind))
	}
	return nil
}

// supersedeOlder dates a plan after all earlier plans for the same claim. Of several plans the newest
// counts, also when the clock was set back between them.
func (q *Requests) supersedeOlder(ctx context.Context, r *muster.Request) error {
	all, err := q.List(ctx)
	for _, o := range all {
		if o.Kind == r.Kind && o.TaskID == r.TaskID && o.Fence == r.Fence {
			r.CreatedAt = max(r.CreatedAt, o.CreatedAt+1e-6)
		}
	}
	r.UpdatedAt = r.CreatedAt
	return err
}

// Decide answers a request for by, who must be its addressee, or the user where the addressee is the lead.
// The answer is mailed to the member that asked. now reports whether this call has decided the request. It
// is false for a request that is final already, which keeps its first answer, and for one whose deadline
// has passed, which ends with this call. Errors: NotFound, with the requests that wait; Invalid when by may
// not decide it.
func (q *Requests) Decide(
	ctx context.Context, id muster.RequestID, by muster.Name, yes bool, response string,
) (r muster.Request, now bool, err error) {
	return q.DecideFor(ctx, id, by, yes, muster.ScopeOnce, response)
}

// DecideFor is Decide, for longer than once: that is for permissions only, and for others it is Invalid.
func (q *Requests) DecideFor(
	ctx context.Context, id muster.RequestID, by muster.Name, yes bool, scope muster.RequestScope, response string,
) (r muster.Request, now bool, err error) {
	r, _, err = q.read(ctx, id)
	if err != nil {
		return muster.Request{}, false, err
	}
	if by != r.To && (r.To != muster.Lead || by != muster.User) {
		return r, false, muster.Errorf(muster.Invalid, "request %s waits for %s: %s cannot decide it", r.ID, r.To, by)
	}
	if scope != muster.ScopeOnce && (r.Kind != muster.AskPermission || len(r.Asks) == 0) {
		return r, false, muster.Errorf(muster.Invalid,
			"request %s is no question about a permission: it is approved once",
			r.ID)
	}
	d := decision{muster.RequestRejected, by, response, scope}
	if yes {
		d.status = muster.RequestApproved
	}
	// An answer that comes after the deadline is none, also when nobody has ended the request yet.
	// Otherwise the outcome would depend on which process looks first.
	over := q.overdue(r, time.Now())
	if over {
		d = expired(r.Kind)
	}
	r, now, err = q.end(ctx, id, d)
	return r, now && !over, err
}

// tooLate is the response of a request that ended at its deadline.
const tooLate = "nobody answered in time"

// maxAsked limits what an answer's event has of the question, in bytes.
const maxAsked = 200

// decision is how a request ends. It is written in one step with the status, so that a crash never leaves an approval
// without its scope: that would be read as one for a single call.
type decision struct {
	status   muster.RequestStatus
	by       muster.Name
	response string
	scope    muster.RequestScope
}

// expired returns how a request of a kind ends at its deadline.
// Nobody has decided it, so its scope is the narrowest.
func expired(k muster.RequestKind) decision {
	return decision{status: late(k), by: muster.System, response: tooLate}
}

// Take notes that the member which has asked goes on with the answer. isFirst is false where it has done so before.
// Errors: NotFound.
func (q *Requests) Take(ctx context.Context, id muster.RequestID) (isFirst bool, err error) {
	_, err = q.items.Update(ctx, string(id), func(r *muster.Request) error {
		if isFirst = r.TakenAt == 0; isFirst {
			r.TakenAt = muster.UnixTime(time.Now())
			r.UpdatedAt = r.TakenAt
		}
		return nil
	})
	return isFirst, err
}

// Withdraw takes back the pending requests that which selects; why is for people.
func (q *Requests) Withdraw(ctx context.Context, by muster.Name, why string, which func(muster.Request) bool) error {
	_, err := q.endEach(ctx, by, why, func(r muster.Request) muster.RequestStatus {
		if which(r) {
			return muster.RequestCancelled
		}
		return muster.RequestPending
	})
	return err
}

// Leave ends what concerns a member that has shut down: requests that it should do so are granted by the
// fact, and what it has asked itself need not be decided any more. Why is for people.
func (q *Requests) Leave(ctx context.Context, name muster.Name, why string) error {
	_, err := q.endEach(ctx, name, why, func(r muster.Request) muster.RequestStatus {
		switch {
		case r.Kind == muster.AskShutdown && r.To == name:
			return muster.RequestApproved
		case r.From == name:
			return muster.RequestCancelled
		}
		return muster.RequestPending
	})
	return err
}

// Expire ends what is past its deadline at now, and returns what this call has ended: a shutdown is expired
// (whoever hosts the member kills it), a permission rejected. A plan has no deadline.
func (q *Requests) Expire(ctx context.Context, now time.Time) ([]muster.Request, error) {
	return q.endEach(ctx, muster.System, tooLate, func(r muster.Request) muster.RequestStatus {
		if q.overdue(r, now) {
			return late(r.Kind)
		}
		return muster.RequestPending
	})
}

// endEach gives each pending request the status that status returns for it, and returns what this call has ended.
func (q *Requests) endEach(ctx context.Context, by muster.Name, response string,
	status func(muster.Request) muster.RequestStatus) (ended []muster.Request, err error) {
	pending, err := q.Pending(ctx)
	for _, r := range pending {
		to := status(r)
		if to == muster.RequestPending || err != nil {
			continue
		}
		var isEnded bool
		if r, isEnded, err = q.end(ctx, r.ID, decision{status: to, by: by, response: response}); isEnded {
			ended = append(ended, r)
		}
	}
	return ended, err
}

// end gives a pending request its final status, and mails the answer if there is one. It reports whether
// this call did so: a request that is final already stays as it is, and only mail about it that is still
// queued is sent. end starts again whenever another process was faster, so a request is decided once.
func (q *Requests) end(
	ctx context.Context, id muster.RequestID, d decision,
) (r muster.Request, ended bool, err error) {
	for {
		r, rev, err := q.read(ctx, id)
		if err != nil {
			return r, false, err
		}
		if Final(r) {
			r, err = q.sendQueued(ctx, r, rev)
			return r, false, err
		}
		r.Status, r.ResolvedBy, r.Response, r.Scope = d.status, d.by, d.response, d.scope
		r.ResolvedAt = muster.UnixTime(time.Now())
		r.UpdatedAt = r.ResolvedAt
		m, answered := answer(r)
		if answered { // an answer that cannot be mailed decides nothing; one without a reader decides all the same
			if err := q.post.Check(ctx, m); errors.Is(err, muster.ErrInvalid) {
				return r, false, err
			}
		}
		// The write that decides also names the mail, so a crash after it does not lose the mail.
		queueMail(&r, answered)
		rev, err = q.items.Put(ctx, string(r.ID), r, rev)
		if errors.Is(err, muster.ErrStale) {
			continue
		}
		if err != nil {
			return r, false, err
		}
		q.emit(ctx, journal.RequestDecided, r, map[string]any{"status": r.Status, "by": d.by, "text": d.response,
			"asked": text.CutBytes(cmp.Or(r.Plan, r.Reason), maxAsked)})
		r, err = q.sendQueued(ctx, r, rev)
		return r, err == nil, err
	}
}

// Await returns the request when it is final; at its deadline it ends it itself. The end of ctx is returned
// as its cause.
func (q *Requests) Await(ctx context.Context, id muster.RequestID) (muster.Request, error) {
	watch, stop := context.WithCancel(ctx)
	defer stop()
	changed := q.items.Watch(watch) // before the first read, so that no change between the two is missed
	for {
		r, _, err := q.read(ctx, id)
		if cause := context.Cause(ctx); cause != nil {
			return r, cause
		}
		if err != nil || Final(r) {
			return r, err
		}
		if q.overdue(r, time.Now()) { // whoever waits ends it: there may be no other process
			r, _, err = q.end(ctx, id, expired(r.Kind))
			return r, err
		}
		var due <-chan time.Time
		if r.Deadline != 0 {
			due = time.After(q.Left(r, time.Now()))
		}
		select {
		case <-changed:
		case <-due:
		case <-ctx.Done():
		}
	}
}

// Watch receives after requests changed, until ctx ends.
func (q *Requests) Watch(ctx context.Context) <-chan struct{} { return q.items.Watch(ctx) }

// read returns a request as it is stored and its revision, and notes that this process has seen it. The list
// is then at least as new: whoever is told that its plan is approved must find it so in the list.
func (q *Requests) read(ctx context.Context, id muster.RequestID) (muster.Request, muster.Rev, error) {
	if !idRule().MatchString(string(id)) {
		return muster.Request{}, muster.None, q.missing(ctx, id)
	}
	r, rev, err := q.items.Get(ctx, string(id))
	switch {
	case err == nil:
		q.items.View(func() { q.onChange(state.Change[muster.Request]{Key: string(id), New: &r}) })
	case errors.Is(err, muster.ErrNotFound):
		return muster.Request{}, muster.None, q.missing(ctx, id)
	}
	return r, rev, err
}

// emit writes an event about what has been recorded. Its error is dropped because the record is what
// counts, and the journal logs it.
func (q *Requests) emit(ctx context.Context, kind string, r muster.Request, fields map[string]any) {
	fields["request_id"], fields["kind"] = r.ID, r.Kind
	e := muster.Event{Kind: kind, Member: r.From, Task: r.TaskID, Fields: fields}
	_ = q.journal.Emit(context.WithoutCancel(ctx), e)
}

// title names a request in a sentence: plan of carol for 9.
func title(r muster.Request) string {
	s := fmt.Sprintf("%s of %s", r.Kind, r.From)
	switch r.Kind {
	case muster.AskPlan:
		s = fmt.Sprintf("plan of %s", r.From)
	case muster.AskShutdown:
		s = fmt.Sprintf("shutdown of %s", r.To)
	}
	if r.TaskID != 0 {
		s += fmt.Sprintf(" for %d", r.TaskID)
	}
	return s
}
