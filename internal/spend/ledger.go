package spend

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"muster"
)

// Book adds up calls. A call counts once, whatever records of it were read and how often.
type Book struct {
	Total   Sum                   `json:"total"`
	Members map[muster.Name]Sum   `json:"members"` // with what their helpers have used
	Agents  map[muster.Name]Agent `json:"agents"`  // the helpers, by their names
	Tasks   map[muster.TaskID]Sum `json:"tasks"`   // 0: what belongs to no task
	Models  map[string]Sum        `json:"models"`

	calls map[string]Call // by id
}

// Agent is what a helper has used: an agent that has worked for a member, such as a subagent or a reviewer.
type Agent struct {
	Member muster.Name `json:"member"` // for whom it has worked
	Role   string      `json:"role"`
	Sum
}

// AddAgent adds to the sum of a helper. Its member's sum is not changed.
func (b *Book) AddAgent(name, member muster.Name, role string, s Sum) {
	b.Agents[name] = Agent{member, role, b.Agents[name].Plus(s)}
}

// Own returns what a member has used without those of its helpers that hasRow selects.
func (b *Book) Own(member muster.Name, hasRow func(agent muster.Name) bool) Sum {
	s := b.Members[member]
	for name, a := range b.Agents {
		if a.Member == member && hasRow(name) {
			s = s.add(a.Sum, -1)
		}
	}
	return s
}

// NewBook returns an empty book.
func NewBook() *Book {
	return &Book{Members: map[muster.Name]Sum{}, Agents: map[muster.Name]Agent{}, Tasks: map[muster.TaskID]Sum{},
		Models: map[string]Sum{}, calls: map[string]Call{}}
}

// supersedes reports whether a record of a call counts in place of an earlier one. The provider's own count stands over
// an estimate: a process that was taken for dead may yet write it.
func supersedes(c, old Call) bool {
	rank := map[State]int{Begun: 1, Cut: 2, Ended: 3}
	return rank[c.State] > rank[old.State]
}

// Add adds a record of a call, and reports whether it counts.
func (b *Book) Add(c Call) bool {
	old := b.calls[c.ID]
	if !supersedes(c, old) {
		return false
	}
	b.calls[c.ID] = c
	if old.State == Cut {
		b.count(old, -1)
	}
	if c.State != Begun {
		b.count(c, 1)
	}
	return c.State != Begun
}

func (b *Book) count(c Call, sign int) {
	s := c.sum()
	b.Total = b.Total.add(s, sign)
	b.Members[c.Member] = b.Members[c.Member].add(s, sign)
	if c.Agent != "" {
		b.AddAgent(c.Agent, c.Member, c.Role, Sum{}.add(s, sign))
	}
	b.Tasks[c.Task] = b.Tasks[c.Task].add(s, sign)
	b.Models[c.Model] = b.Models[c.Model].add(s, sign)
}

// Open returns the calls that have begun and of whose end nothing is known yet.
func (b *Book) Open() (open []Call) {
	for _, c := range b.calls {
		if c.State == Begun {
			open = append(open, c)
		}
	}
	return open
}

// CutOff counts each open call for which isLost is true as its request. Who only looks does so for processes that have
// died, and writes nothing.
func (b *Book) CutOff(isLost func(Call) bool) {
	for _, c := range b.Open() {
		if isLost(c) {
			c.State = Cut
			b.Add(c)
		}
	}
}

func (b *Book) sum(s Scope, c Call) Sum {
	switch s {
	case OfMember:
		return b.Members[c.Member]
	case OfTask:
		return b.Tasks[c.Task]
	case OfTeam, OfDay:
	}
	return b.Total
}

// Ledger is a stream of calls, which other processes write too, and the book of those that count. It is safe for
// concurrent use.
type Ledger struct {
	log    muster.Log
	stream string
	counts func(Call) bool // whether a call belongs into the book

	mu   sync.Mutex
	pos  muster.Pos
	book *Book
}

// NewLedger returns the ledger in a stream of a log. counts says which calls are in its book; nil is all of them.
func NewLedger(log muster.Log, stream string, counts func(Call) bool) *Ledger {
	if counts == nil {
		counts = func(Call) bool { return true }
	}
	return &Ledger{log: log, stream: stream, counts: counts, book: NewBook()}
}

// OfRun returns the ledger of a run's calls in a team's store; started is when the run began.
func OfRun(log muster.Log, started float64) *Ledger {
	return NewLedger(log, muster.StreamSpend, func(c Call) bool { return c.Run == started })
}

// Look reads what was added to the stream and calls f with the book, which f must not keep. Records that cannot be read
// are passed over: what a killed writer left of a line was never a record, and the call that it was about is open.
func (l *Ledger) Look(ctx context.Context, f func(*Book)) error {
	return l.look(ctx, nil, f)
}

// look is Look that calls each for every record that counts, before it counts.
func (l *Ledger) look(ctx context.Context, each func(*Book, Call), f func(*Book)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for r, err := range l.log.Read(ctx, l.stream, l.pos) {
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			return err
		}
		l.pos = max(l.pos, r.Pos)
		var c Call
		if err != nil || json.Unmarshal(r.Data, &c) != nil || c.ID == "" || !c.isPossible() || !l.counts(c) {
			continue
		}
		if each != nil && c.State != Begun && supersedes(c, l.book.calls[c.ID]) {
			each(l.book, c)
		}
		l.book.Add(c)
	}
	f(l.book)
	return nil
}

// soon is a log that can append without waiting for the disk.
type soon interface {
	AppendSoon(ctx context.Context, stream string, recs ...[]byte) (muster.Pos, error)
}

// append adds a record. Where it does not sync, a killed process loses nothing of it, and a power loss takes what no
// later synced record of the stream has made durable.
func (l *Ledger) append(ctx context.Context, c Call, syncs bool) error {
	line, err := muster.MarshalLine(c)
	if err != nil {
		return err
	}
	if log, ok := l.log.(soon); ok && !syncs {
		_, err = log.AppendSoon(ctx, l.stream, line)
	} else {
		_, err = l.log.Append(ctx, l.stream, muster.Anywhere, line)
	}
	return err
}
