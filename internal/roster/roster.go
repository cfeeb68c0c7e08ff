// Package roster keeps who belongs to a team, what each member does, and which process runs it.
//
// Its type is Roster. Each member is one document, changed by compare-and-set (roster.go). config.go writes
// config.json, a copy of the members for people and for other programs. hosts.go keeps the processes that run
// members: a host is alive as long as it holds the lease of its slot and the slot's document has its life.
//
// The documents of the members decide. config.json may be late, and is never read back for members of ours.
// What a member does in its turns does not belong here.
package roster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"muster"
	"muster/internal/corruption"
	"muster/internal/editdist"
	"muster/internal/state"
	"muster/journal"
)

// Roster is the members and hosts of a team. Several values, in several processes, may work on one state. A
// Roster is safe for concurrent use.
type Roster struct {
	team    muster.Name
	members *state.Collection[muster.Member]

	hostTable muster.Table // of the hosts, for the content of a corrupt document
	hosts     *state.Collection[HostRecord]
	kept      muster.Table // what was corrupt and has been replaced
	leases    muster.Leases
	journal   *journal.Journal
	teller    *corruption.Teller
	index     *index       // guarded by the lock of members: see Collection.View
	config    muster.Table // has config.json
}

// New returns the roster of the team in s.
func New(s muster.Store, j *journal.Journal, team muster.Name) *Roster {
	t := corruption.New(s.Log(), s.Inbox(), j)
	r := &Roster{team: team, hostTable: s.Table(muster.TableHosts),
		kept: s.Table(corruption.Table), leases: s.Leases(), journal: j, teller: t,
		index: &index{}, config: s.Table(muster.TableTeam)}
	r.hosts = state.New(state.Options[HostRecord]{
		Table: r.hostTable, Name: muster.TableHosts, Decode: decodeHost, Encode: encodeHost, Reporter: t,
	})
	r.members = state.New(state.Options[muster.Member]{
		Table: s.Table(muster.TableMembers), Name: muster.TableMembers, Decode: decode, Encode: encode,
		NotFound: func(key string) error { return errAbsent(muster.Name(key)) }, OnChange: r.index.onChange,
		Reporter: t,
	})
	return r
}

// Add records a new member, which its host then starts. A member that has shut down, or whose host has
// died, is spawned again: it keeps its record, the time it joined and its conversation, gets a new prompt
// and a new host, and its epoch rises by one. Of two processes that add the same name at once, one gets
// Held. Errors: Invalid for a name that no member can have; Held when the member is already here.
func (r *Roster) Add(ctx context.Context, m muster.Member) (muster.Member, error) {
	if m.Name != muster.Lead || m.Role != string(muster.Lead) {
		if err := muster.CheckName(m.Name); err != nil {
			return muster.Member{}, err
		}
	}
	m.Status = cmp.Or(m.Status, muster.Working)
	for {
		now := muster.UnixTime(time.Now())
		old, rev, err := r.read(ctx, m.Name)
		add := m
		switch {
		case errors.Is(err, muster.ErrNotFound):
			rev = muster.None
			add.JoinedAt, add.Epoch = now, 1
			add.AgentID = cmp.Or(add.AgentID, string(m.Name)+"@"+string(r.team))
		case err != nil:
			return muster.Member{}, err
		default:
			here, err := r.here(ctx, old)
			if err != nil {
				return muster.Member{}, err
			}
			if here {
				return old, muster.Errorf(muster.Held, "%s is already here (%s)", old.Name, old.Status)
			}
			add = again(old, m)
		}
		add.Since = now
		// The write is over the revision that was read: of two processes that add the name at once, or
		// start the member again, one is stale and finds the member here when it looks again.
		_, err = r.members.Put(ctx, string(add.Name), add, rev)
		if errors.Is(err, muster.ErrStale) {
			continue
		}
		if err != nil {
			return muster.Member{}, err
		}
		r.emit(ctx, add.Name, journal.MemberSpawned, map[string]any{"role": add.Role})
		return add, nil
	}
}

// here reports whether m is running or about to be started: it has not shut down, and its host, if it has
// one, is alive.
func (r *Roster) here(ctx context.Context, m muster.Member) (bool, error) {
	if m.Status == muster.Shutdown || m.Host == "" {
		return m.Status != muster.Shutdown, nil
	}
	return r.Alive(ctx, m.Host)
}

// again returns the record of the member old that is spawned anew as m. What it has done so far stays: its
// conversation goes on. The epoch rises, so that what runs of its earlier life is recognised as old.
func again(old, m muster.Member) muster.Member {
	add := old
	add.Status, add.Host, add.StartedBy = m.Status, m.Host, m.StartedBy
	add.Prompt, add.RequirePlan = m.Prompt, m.RequirePlan
	add.Role, add.Model = cmp.Or(m.Role, old.Role), cmp.Or(m.Model, old.Model)
	add.IdleReason, add.Doing = m.IdleReason, m.Doing
	if old.Status == muster.Shutdown {
		add.Task = 0 // it gave its task back when it left
	}
	add.Epoch++
	return add
}

// Find returns one member, the lead too, at the same cost however many there are. Errors: NotFound.
func (r *Roster) Find(ctx context.Context, name muster.Name) (muster.Member, error) {
	m, _, err := r.read(ctx, name)
	return m, err
}

// Get is Find for names that a person or a model wrote. Errors: NotFound, with names like it.
func (r *Roster) Get(ctx context.Context, name muster.Name) (muster.Member, error) {
	m, err := r.Find(ctx, name)
	if !errors.Is(err, muster.ErrNotFound) {
		return m, err
	}
	_, near, err := r.Known(ctx, name)
	if err != nil {
		return muster.Member{}, err
	}
	return muster.Member{}, muster.Errorf(muster.NotFound, "there is no member %q%s", string(name),
		editdist.DidYouMean(near)).WithHint("muster team list")
}

// List returns all members, the lead too, in the order in which they joined. One whose document cannot be
// read is left out. Callers share the list: it is not to be changed.
func (r *Roster) List(ctx context.Context) (all []muster.Member, err error) {
	err = r.members.ViewFresh(ctx, func() { all = r.index.list() })
	return all, err
}

// ListIf returns the members for which isWanted holds, in the order in which they joined. It copies no others, so it is
// quick where there are thousands. isWanted must not use the Roster.
func ListIf(ctx context.Context, r *Roster, isWanted func(*muster.Member) bool) (some []muster.Member, err error) {
	err = r.members.ViewFresh(ctx, func() {
		r.index.sort()
		for _, m := range r.index.ordered {
			if isWanted(m) {
				some = append(some, *m)
			}
		}
	})
	return some, err
}

// Teammates returns how many members there are that have not shut down, without the lead.
func (r *Roster) Teammates(ctx context.Context) (n int, err error) {
	err = r.members.ViewFresh(ctx, func() {
		for _, m := range r.index.ordered {
			if m.Name != muster.Lead && m.Status != muster.Shutdown {
				n++
			}
		}
	})
	return n, err
}

// Update changes a member by f, which may be called again when somebody else was faster. Nothing is written when f
// changes nothing. Errors: NotFound.
func (r *Roster) Update(ctx context.Context, name muster.Name, f func(*muster.Member)) (muster.Member, error) {
	var old muster.Member
	m, err := r.change(ctx, name, func(m *muster.Member) error {
		old = *m
		m.Extra = maps.Clone(old.Extra) // f may change it, and old is compared with the result
		f(m)
		m.Name = old.Name // the key of the document
		// The texts are compared, because fields of other programs may be spaced otherwise in the document.
		before, errBefore := muster.MarshalLine(old)
		after, errAfter := muster.MarshalLine(*m)
		if errBefore == nil && errAfter == nil && bytes.Equal(before, after) {
			return state.ErrNoChange
		}
		if m.Status != old.Status { // Since is the time of the status, not that of the last write
			m.Since = muster.UnixTime(time.Now())
		}
		return nil
	})
	if errors.Is(err, muster.ErrNotFound) {
		return r.Get(ctx, name)
	}
	if err != nil {
		return muster.Member{}, err
	}
	r.changed(ctx, old, m)
	return m, nil
}

// TakeOver gives a member to the host to, if from still hosts it; from is "" for a member that nobody
// hosts. The caller knows that from has died. The comparison and the write are one step, so of several
// hosts one takes the member over. Errors: Stale when somebody else was faster; NotFound.
func (r *Roster) TakeOver(ctx context.Context, name muster.Name, from, to muster.HostID) (muster.Member, error) {
	was := muster.Member{}
	m, err := r.change(ctx, name, func(m *muster.Member) error {
		if was = *m; m.Host != from {
			return muster.Errorf(muster.Stale, "%s runs in the process %q now, and no more in %q", name, m.Host, from)
		}
		// The new epoch goes with the new host, in one write: what the dead process may still do for the member
		// is recognised as that of an earlier life.
		m.Host = to
		m.Epoch++
		return nil
	})
	if errors.Is(err, muster.ErrStale) {
		return was, err
	}
	if err != nil {
		return muster.Member{}, err
	}
	if from != "" {
		r.emit(ctx, name, journal.MemberResumed, nil)
	}
	return m, nil
}

// Watch receives after members changed, until ctx ends.
func (r *Roster) Watch(ctx context.Context) <-chan struct{} { return r.members.Watch(ctx) }

// statusKinds are the events of a new status.
var statusKinds = map[muster.MemberStatus]string{
	muster.Idle: journal.MemberIdle, muster.Shutdown: journal.MemberShutdown, muster.Working: journal.MemberWorking,
}

// changed writes the event of a new status, if m has one.
func (r *Roster) changed(ctx context.Context, old, m muster.Member) {
	kind := statusKinds[m.Status]
	if m.Status == old.Status || kind == "" {
		return
	}
	var fields map[string]any
	if m.Status != muster.Working {
		fields = map[string]any{"reason": m.IdleReason}
	}
	r.emit(ctx, m.Name, kind, fields)
}

// emit writes an event about what has been recorded. It goes on when the caller's context has ended. Its
// error is dropped because the record is what counts, and the journal logs it.
func (r *Roster) emit(ctx context.Context, name muster.Name, kind string, fields map[string]any) {
	_ = r.journal.Emit(context.WithoutCancel(ctx), muster.Event{Kind: kind, Member: name, Fields: fields})
}

// read returns a member as it is stored and its revision. Errors: NotFound; Corrupt, with a hint.
func (r *Roster) read(ctx context.Context, name muster.Name) (muster.Member, muster.Rev, error) {
	if err := checkKey(name); err != nil {
		return muster.Member{}, muster.None, err
	}
	m, rev, err := r.members.Get(ctx, string(name))
	if err != nil {
		return muster.Member{}, muster.None, withRepairHint(err, name)
	}
	return m, rev, nil
}

// change is Update of the collection for a name that may be no member's.
func (r *Roster) change(ctx context.Context, name muster.Name, f func(*muster.Member) error) (muster.Member, error) {
	if err := checkKey(name); err != nil {
		return muster.Member{}, err
	}
	m, err := r.members.Update(ctx, string(name), f)
	return m, withRepairHint(err, name)
}

// checkKey returns NotFound for names that no member can have, and that no store could have as a key.
func checkKey(name muster.Name) error {
	if name != muster.Lead && muster.CheckName(name) != nil {
		return errAbsent(name)
	}
	return nil
}

// errAbsent returns the error for a name that no member has.
func errAbsent(name muster.Name) error {
	return muster.Errorf(muster.NotFound, "there is no member %q", string(name))
}

// withRepairHint adds to an error about a corrupt record what a person can do about it.
func withRepairHint(err error, name muster.Name) error {
	if bad, is := errors.AsType[*muster.Error](err); is && bad.Code == muster.Corrupt {
		return bad.WithHint(
			"mend its record or move it away (muster doctor names it); %s can be spawned anew then", name)
	}
	return err
}

// keepDamaged keeps a document that cannot be read because of why, and is about to be written anew, and reports that.
// Errors: Corrupt when nothing can be written there.
func (r *Roster) keepDamaged(ctx context.Context, table muster.Table, name, key string, why error) error {
	doc, err := table.Get(ctx, key)
	if err != nil && !errors.Is(err, muster.ErrCorrupt) {
		return err
	}
	if doc.Data == nil { // it is no file, or belongs to another user
		return errors.Join(why, r.teller.Report(ctx, state.Unreadable{Table: name, Key: key, Rev: doc.Rev, Err: why}))
	}
	kept, err := corruption.Keep(ctx, r.kept, name, doc, why)
	if err != nil {
		return err
	}
	return r.teller.Tell(ctx, corruption.Record{Table: name, Key: key, Rev: doc.Rev, Text: muster.PlainText(why),
		Done: fmt.Sprintf("it is kept as %s/%s and written anew", corruption.Table, kept)})
}

// decode and encode read and write a member's document.
var decode, encode = state.JSON("the record of %s", func(m *muster.Member, key string) { m.Name = muster.Name(key) })

// joined compares members by the order in which they joined.
func joined(a, b *muster.Member) int {
	return cmp.Or(cmp.Compare(a.JoinedAt, b.JoinedAt), cmp.Compare(a.Name, b.Name))
}

// index is the members in the order in which they joined. It follows the collection of the members change by
// change, so thousands of them are not sorted anew for each. The lock of that collection guards it.
type index struct {
	ordered  []*muster.Member // by joined, if isSorted; the values are those of the collection and never changed
	isSorted bool             // false after a member came out of order: they are sorted when they are read
	// listed is what callers get, and nil when it must be made anew. A change makes another list and leaves the
	// old one alone, because callers keep what they got without a copy.
	listed []muster.Member
}

// list returns the members. Callers get the list clipped, so an append of theirs copies it.
func (x *index) list() []muster.Member {
	if x.listed == nil {
		x.sort()
		x.listed = make([]muster.Member, 0, len(x.ordered))
		for _, m := range x.ordered {
			x.listed = append(x.listed, *m)
		}
	}
	return slices.Clip(x.listed)
}

// onChange follows one change of a member. A member that is gone or cannot be read is left out: what it was
// says nothing of what it is, so nobody waits for it.
func (x *index) onChange(c state.Change[muster.Member]) {
	x.listed = nil
	if c.Old != nil {
		x.sort()
		at, _ := slices.BinarySearchFunc(x.ordered, c.Old, joined)
		if c.New != nil && joined(c.Old, c.New) == 0 { // as after nearly all changes
			x.ordered[at] = c.New
			return
		}
		x.ordered = slices.Delete(x.ordered, at, at+1)
	}
	if c.New != nil {
		// Who comes has mostly joined last.
		n := len(x.ordered)
		x.isSorted = x.isSorted && (n == 0 || joined(x.ordered[n-1], c.New) < 0)
		x.ordered = append(x.ordered, c.New)
	}
}

// sort puts the members in order.
func (x *index) sort() {
	if !x.isSorted {
		slices.SortFunc(x.ordered, joined)
		x.isSorted = true
	}
}
