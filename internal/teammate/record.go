package teammate

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"muster"
	"muster/journal"
)

// status writes what the member does, and re-reads its record.
func (m *Member) status(ctx context.Context, s muster.MemberStatus, why muster.IdleReason, doing string) error {
	m.mu.Lock()
	var task muster.TaskID
	if m.hand != nil {
		task = m.hand.ID
	}
	asked := maps.Clone(m.asked)
	same := m.record.Status == s && m.record.IdleReason == why && m.record.Doing == doing && m.record.Task == task &&
		maps.Equal(askedOf(m.record), asked)
	host, turns := m.record.Host, m.turns
	m.mu.Unlock()
	if same {
		return nil
	}
	lost := false
	r, err := m.Roster.Update(ctx, m.name(), func(r *muster.Member) {
		if lost = r.Host != host; lost {
			return
		}
		r.Status, r.IdleReason, r.Doing, r.Task, r.Turns = s, why, doing, task, turns
		setAsked(r, asked)
	})
	if err != nil {
		return err
	}
	if lost {
		return muster.Errorf(muster.Fenced, "%s is hosted by another process now", m.name())
	}
	m.mu.Lock()
	m.record = r
	m.mu.Unlock()
	return nil
}

// show writes what a working member does into its record. It is for people: the member goes on where it cannot be
// written.
func (m *Member) show(ctx context.Context, doing string) {
	m.logDropped(ctx, "the member's status", m.status(ctx, muster.Working, "", doing))
}

// doing shows what a parked member waits for, and returns how to end that.
func (m *Member) doing(ctx context.Context, what string) (done func()) {
	m.show(ctx, what)
	return func() { m.show(context.WithoutCancel(ctx), "") }
}

// parked is told by the model's decorators that it waits.
func (m *Member) parked(until time.Time, why error) {
	ctx, cancel := finally(context.Background())
	defer cancel()
	m.mu.Lock()
	m.waiting = true
	m.mu.Unlock()
	m.logRetry(time.Until(until).Round(time.Millisecond).String(), why)
	m.show(ctx, "parked until "+until.Format("15:04:05"))
	_ = m.Journal.Emit(ctx, muster.Event{Kind: journal.ModelRetry, Member: m.name(), Fields: map[string]any{
		"text": why.Error(), "until": muster.Stamp(until)}})
}

// unparked shows that the model answers again.
func (m *Member) unparked(ctx context.Context) {
	m.mu.Lock()
	was := m.waiting
	m.waiting = false
	m.mu.Unlock()
	if was {
		m.show(ctx, "")
	}
}

// asked is the field of a member's record that names whom it waits for: it has asked them something. It outlives the
// process, and tells a sleeping lead who waits for whom.
const asked = "asked"

func askedOf(r muster.Member) map[muster.Name]bool {
	var names []muster.Name
	_ = json.Unmarshal(r.Extra[asked], &names) // absent, or not ours: nobody
	all := map[muster.Name]bool{}
	for _, n := range names {
		all[n] = true
	}
	return all
}

func setAsked(r *muster.Member, names map[muster.Name]bool) {
	if len(names) == 0 {
		delete(r.Extra, asked)
		return
	}
	line, err := muster.Line(slices.Sorted(maps.Keys(names)))
	if err != nil {
		return // a list of names always encodes
	}
	if r.Extra == nil {
		r.Extra = muster.Extra{}
	}
	r.Extra[asked] = line
}
