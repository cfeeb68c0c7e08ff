package spend

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"muster"
	"muster/internal/clock"
	"muster/internal/compact"
	"muster/internal/failpoint"
	"muster/llm"
)

// Price returns what a reply of a model cost in dollars. ok is false where its price is not known.
type Price func(r llm.Reply, at time.Time) (dollars float64, ok bool)

// Budgets are the limits that hold in a process. Those of a member and of a task are for each of them.
type Budgets struct{ Team, Member, Task, Day Budget }

// isSet reports whether any of them limits anything.
func (b Budgets) isSet() bool { return b != Budgets{} }

// InDollars reports whether any of them is an amount of dollars.
func (b Budgets) InDollars() bool {
	return b.Team.Dollars+b.Member.Dollars+b.Task.Dollars+b.Day.Dollars > 0
}

// limit is a budget with what it is for.
type limit struct {
	scope  Scope
	budget Budget
}

// limits returns the budgets that a call of a run counts against, the widest first.
func (b Budgets) limits(task muster.TaskID) []limit {
	all := []limit{{OfTeam, b.Team}, {OfMember, b.Member}}
	if task != 0 {
		all = append(all, limit{OfTask, b.Task})
	}
	return all
}

// WarnAt is the part of a budget at which its user is warned.
const WarnAt = 0.8

// Options are what a Meter is made of.
type Options struct {
	Log     muster.Log    // of the team
	Run     float64       // when the run began
	Host    muster.HostID // this process
	Budgets Budgets
	Day     *Day // what the user spends in all repositories; nil where no budget of a day is set
	// Warn is told when most of a budget is spent: once for each budget, in the process whose call it was.
	Warn func(ctx context.Context, e *Exceeded)
	// Failed is told of a record that could not be written after its call was made.
	Failed func(error)
}

// Meter counts the calls of the models of one process. It is safe for concurrent use.
type Meter struct {
	Options
	ledger *Ledger

	mu     sync.RWMutex // held for reading by who writes
	closed bool
}

// NewMeter returns the meter of a process.
func NewMeter(o Options) *Meter { return &Meter{Options: o, ledger: OfRun(o.Log, o.Run)} }

// Close ends the meter: when it returns, nothing of it is written any more. The call of a model that does not heed its
// context stays open, and counts as cut off when this process has ended.
func (m *Meter) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
}

// Look calls f with the book of the run as it is now.
func (m *Meter) Look(ctx context.Context, f func(*Book)) error { return m.ledger.Look(ctx, f) }

// CutOff writes of each open call of a process that has died that it was cut off. It counts as its request from then
// on. Any process may do this, any number of times.
func (m *Meter) CutOff(ctx context.Context, isAlive func(context.Context, muster.HostID) (bool, error)) error {
	var open []Call
	if err := m.ledger.Look(ctx, func(b *Book) { open = b.Open() }); err != nil {
		return err
	}
	alive := map[muster.HostID]bool{m.Host: true}
	for _, c := range open {
		if _, isKnown := alive[c.Host]; !isKnown {
			is, err := isAlive(ctx, c.Host)
			if err != nil {
				return err
			}
			alive[c.Host] = is
		}
		if alive[c.Host] {
			continue
		}
		c.State = Cut
		if err := m.write(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// Caller says who calls a model.
type Caller struct {
	Member muster.Name
	Model  string // as the settings name it
	// Endpoint is the model's server, "" where it has none.
	Endpoint string
	// Now returns the task that the member has claimed, or 0, and the number of its turn.
	Now func() (muster.TaskID, int)
}

// Model returns a model whose calls are counted.
func (m *Meter) Model(inner llm.Model, c Caller, price Price) llm.Model {
	return &model{inner, m, c, price}
}

// model is a counted model.
type model struct {
	llm.Model
	meter  *Meter
	caller Caller
	price  Price
}

// Reply asks the model if the budgets allow it. The error is an llm.Error of kind Spent, with an Exceeded in it, where
// they do not, and Invalid where a budget in dollars cannot be held because nobody knows the price.
func (m *model) Reply(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	c := m.newCall(r)
	if err := m.meter.begin(ctx, c); err != nil {
		return llm.Reply{}, err
	}
	failpoint.Hit("spend.begun")
	reply, err := m.Model.Reply(ctx, r, emit)
	failpoint.Hit("spend.replied")
	c.At, c.State, c.Answered = muster.UnixTime(time.Now()), Ended, reply.Model
	switch kind := llm.KindOf(err); {
	case err != nil && (kind == llm.Incomplete || kind == "" || ctx.Err() != nil):
		// The provider has perhaps answered a part, which it bills. How much, it has not said.
		c.State, c.Error = Cut, cmp.Or(string(kind), "cancelled")
	case err != nil: // it was refused, which costs nothing
		c.Usage, c.Dollars, c.Estimated, c.Error = llm.Usage{}, new(Dollars), false, string(kind)
	case reply.Usage != llm.Usage{}:
		c.Usage, c.Estimated = reply.Usage, false
	default: // the server does not count
		c.Output = compact.PartTokens(reply.Message.Parts)
	}
	if err == nil || c.State == Cut {
		c.Dollars = m.cost(llm.Reply{Usage: c.Usage, Model: reply.Model}, c.At)
		reply.Dollars = nil
		if c.Dollars != nil {
			dollars := c.Dollars.Float()
			reply.Dollars = &dollars
		}
	}
	// Invariant: the cost is in the ledger before anybody uses the reply. It is written also when ctx has ended.
	last, cancel := clock.Detach(ctx)
	defer cancel()
	m.meter.end(last, c)
	failpoint.Hit("spend.ended")
	return reply, err
}

// newCall returns a call as it begins: with an estimate of what is sent.
func (m *model) newCall(r llm.Request) Call {
	now := muster.UnixTime(time.Now())
	c := Call{State: Begun, ID: clock.Clock{}.NewText(), At: now, Run: m.meter.Run, Host: m.meter.Host,
		Member: m.caller.Member, Kind: cmp.Or(r.Purpose, Turn), Model: m.caller.Model, Endpoint: m.caller.Endpoint,
		Agent: muster.Name(r.Agent), Role: r.Role, Estimated: true}
	c.Task, c.Turn = m.caller.Now()
	c.Input = compact.PrefixTokens(r.System, r.Tools) + compact.Estimate(r.Messages)
	c.Dollars = m.cost(llm.Reply{Usage: c.Usage}, now)
	return c
}

// cost returns what a reply cost, or nil where the price is not known.
func (m *model) cost(r llm.Reply, at float64) *Dollars {
	if m.price == nil {
		return nil
	}
	f, ok := m.price(r, muster.Time(at))
	if !ok {
		return nil
	}
	d := FromFloat(f)
	return &d
}

// begin notes that a call is about to be made, if the budgets allow it.
//
// Invariant: every cost that is in the ledger is read before the budgets are compared, and a call of this member that
// has ended is in it. So only calls that are under way, at most one of each agent, are not counted.
func (m *Meter) begin(ctx context.Context, c Call) error {
	if m.Budgets.isSet() {
		if err := m.check(ctx, c); err != nil {
			return err
		}
	}
	if m.Day != nil {
		if err := m.Day.ledger(c.At).append(ctx, c, false); err != nil {
			return err
		}
	}
	return m.ledger.append(ctx, c, false)
}

// check returns why a call must not be made, or nil.
func (m *Meter) check(ctx context.Context, c Call) (err error) {
	if c.Dollars == nil && m.Budgets.InDollars() {
		return ErrNoPrice(c.Model)
	}
	compare := func(b *Book, limits []limit) {
		for _, l := range limits {
			if s := b.sum(l.scope, c); l.budget.Used(s) >= 1 && err == nil {
				err = &llm.Error{Kind: llm.Spent, Err: &Exceeded{l.scope, c.Member, c.Task, l.budget, s}}
			}
		}
	}
	errRead := m.look(ctx, func(b *Book) { compare(b, m.Budgets.limits(c.Task)) })
	if m.Day != nil && errRead == nil {
		errRead = m.Day.ledger(c.At).Look(ctx, func(b *Book) { compare(b, []limit{{OfDay, m.Budgets.Day}}) })
	}
	return cmp.Or(errRead, err)
}

// ErrNoPrice is the error of a budget in dollars for a model whose price is not known.
func ErrNoPrice(model string) error {
	return muster.Errorf(muster.Invalid,
		"a budget in dollars cannot be held: the price of the model %s is not known", model).
		WithHint("say it:           models: {%q: {price: {input: DOLLARS, output: DOLLARS}}} in your own config.yaml, "+
			"for a million tokens\nor limit tokens:  --budget \"2M tokens\"", model)
}

// look reads the ledger, and warns of each budget of which a call of this process has used most.
func (m *Meter) look(ctx context.Context, f func(*Book)) error {
	var warn []*Exceeded
	err := m.ledger.look(ctx, func(b *Book, c Call) {
		// The records come in the same order in every process, so one of them finds that a call of its own has crossed
		// the mark.
		for _, l := range m.Budgets.limits(c.Task) {
			before := b.sum(l.scope, c)
			after := before.Plus(c.sum())
			if c.Host == m.Host && l.budget.Used(before) < WarnAt && l.budget.Used(after) >= WarnAt {
				warn = append(warn, &Exceeded{l.scope, c.Member, c.Task, l.budget, after})
			}
		}
	}, f)
	for _, e := range warn {
		if m.Warn != nil {
			m.Warn(ctx, e)
		}
	}
	return err
}

// end notes how a call has ended. A record that cannot be written keeps the reply from nobody: it is paid for, and the
// next call begins with a record too.
func (m *Meter) end(ctx context.Context, c Call) {
	err := m.write(ctx, c)
	if err == nil && m.Budgets.isSet() {
		err = m.look(ctx, func(*Book) {})
	}
	if err != nil && m.Failed != nil {
		m.Failed(err)
	}
}

// write adds a record of the end of a call. That of the day goes first: who finds the call open in the team's ledger
// after a crash writes both again.
func (m *Meter) write(ctx context.Context, c Call) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.closed {
		return nil
	}
	if m.Day != nil {
		if err := m.Day.ledger(c.At).append(ctx, c, true); err != nil {
			return err
		}
	}
	return m.ledger.append(ctx, c, m.Budgets.isSet())
}

// Day is what the user spends in all repositories, day by day.
type Day struct {
	Log muster.Log // of the user

	mu     sync.Mutex
	today  string
	opened *Ledger
}

// ledger returns the ledger of a day, which has a stream for its month.
func (d *Day) ledger(at float64) *Ledger {
	day := func(at float64) string { return muster.Time(at).Local().Format(time.DateOnly) }
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := day(at); d.today != now {
		d.today = now
		d.opened = NewLedger(d.Log, muster.StreamSpend+"-"+now[:len("2006-01")],
			func(c Call) bool { return day(c.At) == now })
	}
	return d.opened
}

// IsExceeded returns the budget that an error is about, if it is about one that is used up.
func IsExceeded(err error) (*Exceeded, bool) { return errors.AsType[*Exceeded](err) }
