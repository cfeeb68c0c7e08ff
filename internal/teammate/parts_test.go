package teammate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/landing"
	"muster/internal/mailbox"
	"muster/internal/paths"
	"muster/internal/proc"
	"muster/internal/requests"
	"muster/internal/roster"
	"muster/internal/tool/code"
	"muster/internal/worktree"
	"muster/journal"
	"muster/llm"
	"muster/loop"
	"muster/store/mem"
	"muster/store/storetest"
)

// parts is a member that does not live: a test calls its parts one by one. Its stores are in memory, its lanes are rows
// without git, and its model is never asked.
type parts struct {
	*Member
	t        *testing.T
	store    muster.Store // which does not fail
	rows     *laneRows
	landings *landings
	run      muster.Run
	runErr   error
	logged   strings.Builder
}

// newParts makes the member alice, or the lead, on a host that lives, beside the teammate bob on another one.
func newParts(t *testing.T, name muster.Name) *parts {
	t.Helper()
	p := &parts{t: t, rows: &laneRows{all: map[muster.Name]muster.Lane{}, fail: map[string]error{}},
		landings: &landings{target: "base"}, run: muster.Run{Cap: 4}}
	store := mem.New()
	r := roster.New(store, journal.New(store.Log()), "demo")
	for _, m := range []muster.Member{{Name: name, Role: "coder", Prompt: "Work."},
		{Name: "bob", Role: "coder", Prompt: "Work."}} {
		if m.Name == muster.Lead {
			m.Role = string(muster.Lead)
		}
		_, err := r.Add(t.Context(), m)
		p.must(err)
		host, err := r.Join(t.Context(), "test")
		p.must(err)
		_, err = r.Update(t.Context(), m.Name, func(m *muster.Member) { m.Host = host.ID() })
		p.must(err)
	}
	p.store = store
	p.restart(store, name)
	return p
}

// restart makes the member anew, like a process that knows only what is in the store.
func (p *parts) restart(store muster.Store, name muster.Name) {
	p.t.Helper()
	if p.Member != nil {
		p.jobs.Close()
	}
	j := journal.New(store.Log())
	s := Services{Team: "demo", Home: paths.Dir(os.DevNull), Store: store, Journal: j, Board: board.New(store, j),
		Roster: roster.New(store, j, "demo"), Lanes: p.rows, Lander: p.landings, Launcher: sleepers{},
		Log: slog.New(slog.NewTextHandler(&p.logged, nil)),
		Run: func(context.Context) (muster.Run, error) { return p.run, p.runErr }}
	s.Post = mailbox.New(store, j, s.Roster.Known)
	s.Requests = requests.New(store, s.Post, j)
	s.Queue = NewQueue(s.Board)
	record, err := s.Roster.Get(p.t.Context(), name)
	p.must(err)
	p.Member, err = New(Config{Services: s, Record: record, Limits: Limits{IdleTimeout: time.Minute},
		Emit:  func(loop.Event) {},
		Model: func(func() (muster.TaskID, int), func(time.Time, error)) (llm.Model, error) { return nil, nil }})
	p.must(err)
	p.t.Cleanup(p.jobs.Close)
	p.conversation.script, err = p.openTranscript(p.t.Context())
	p.must(err)
}

// failEach lets each operation on the store fail in turn, but for those on events, which nobody waits for. set makes
// the state. act must return the error of the store.
func failEach(t *testing.T, set func(*parts), act func(context.Context, *parts) error) {
	t.Helper()
	failEachOf(t, "alice", set, act)
}

// failEachOf is failEach for the member with the name.
func failEachOf(t *testing.T, name muster.Name, set func(*parts), act func(context.Context, *parts) error) {
	t.Helper()
	counts := func(op string) bool { return !strings.Contains(op, "events") && !strings.Contains(op, "claims") }
	var on bool
	storetest.FailEach(t, func(op string) bool { return on && counts(op) },
		func(t *testing.T, wrap func(muster.Store) muster.Store) error {
			on = false
			p := newParts(t, name)
			set(p)
			held := p.claims.held.get()
			p.restart(wrap(p.Store), name)
			p.claims.held.change(func(h *claim) { *h = held })
			on = true
			return act(t.Context(), p)
		})
}

func (p *parts) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// wants fails the test when an error is not of a kind.
func (p *parts) wants(what string, err, kind error) {
	p.t.Helper()
	if !errors.Is(err, kind) {
		p.t.Errorf("%s: %v, want %v", what, err, kind)
	}
}

// create puts a task on the board.
func (p *parts) create(d board.Draft) muster.Task {
	p.t.Helper()
	if d.Subject == "" {
		d.Subject = "the parser"
	}
	t, err := p.Board.Create(p.t.Context(), d)
	p.must(err)
	return t
}

// claim creates a task that the member has claimed, with a lane, and has read.
func (p *parts) claim() muster.Task {
	p.t.Helper()
	_, err := p.claims.Claim(p.t.Context(), p.create(board.Draft{}).ID)
	p.must(err)
	return p.current()
}

// current is the member's task; its id is 0 when it has none.
func (p *parts) current() muster.Task {
	t, _ := p.claims.CurrentTask()
	return t
}

// task is a task as the board has it.
func (p *parts) task(id muster.TaskID) muster.Task {
	p.t.Helper()
	t, err := p.Board.Get(p.t.Context(), id)
	p.must(err)
	return t
}

// revoke takes a claim away, and gives the task to bob if he is to have it.
func (p *parts) revoke(t muster.Task, toBob bool) {
	p.t.Helper()
	_, err := p.Board.Revoke(p.t.Context(), t.ID, t.Fence, muster.User, "too slow")
	p.must(err)
	if toBob {
		_, err = p.Board.Claim(p.t.Context(), t.ID, board.Claim{Owner: "bob", Role: "coder"})
		p.must(err)
	}
}

// record is the member's record in the roster.
func (p *parts) record() muster.Member {
	p.t.Helper()
	m, err := p.Roster.Get(p.t.Context(), p.name())
	p.must(err)
	return m
}

// rehost gives the member's record to another host.
func (p *parts) rehost() {
	p.t.Helper()
	_, err := p.Roster.Update(p.t.Context(), p.name(), func(m *muster.Member) { m.Host = "host-8.1" })
	p.must(err)
}

// leadMail takes the mail that waits for the lead.
func (p *parts) leadMail() []muster.Message {
	p.t.Helper()
	all, end, err := p.store.Inbox().Peek(p.t.Context(), muster.Lead, 0, 100)
	p.must(err)
	p.must(p.store.Inbox().Drop(p.t.Context(), muster.Lead, end))
	return all
}

// startJob starts a background job that runs until it is stopped.
func (p *parts) startJob() {
	p.t.Helper()
	_, err := p.jobs.Start(p.t.Context(), "make watch", proc.Spec{}, time.Hour, code.NewOutput(p.t.TempDir(), "job"))
	p.must(err)
}

// bobsOccupant is bob on his host, which lives.
func (p *parts) bobsOccupant() worktree.Occupant {
	p.t.Helper()
	bob, err := p.Roster.Get(p.t.Context(), "bob")
	p.must(err)
	return worktree.Occupant{Member: "bob", Host: bob.Host}
}

// said is the text of the member's conversation.
func (p *parts) said() string { return fmt.Sprint(p.conversation.script.Messages()) }

// laneRows are lanes without git: their rows only. An operation fails where fail has an error for it.
type laneRows struct {
	Lanes
	all      map[muster.Name]muster.Lane
	fail     map[string]error
	archived []muster.Name
	released []muster.Name
	changed  bool                   // what Changed returns
	ignored  []string               // what Ignored returns
	scratch  []string               // what ScratchChanges returns
	onMake   func(name muster.Name) // called after a lane was made
}

func (l *laneRows) List(context.Context) ([]muster.Lane, error) {
	var all []muster.Lane
	for _, lane := range l.all {
		all = append(all, lane)
	}
	return all, l.fail["list"]
}

func (l *laneRows) Create(_ context.Context, name muster.Name, task muster.TaskID, base string) (muster.Lane, error) {
	if err := l.fail["create"]; err != nil {
		return muster.Lane{}, err
	}
	if _, ok := l.all[name]; ok {
		return muster.Lane{}, muster.Errorf(muster.Held, "there is a lane %s", name)
	}
	l.all[name] = muster.Lane{Name: name, Path: "/lanes/" + string(name), TaskID: task, Base: base,
		Status: muster.LaneActive}
	if l.onMake != nil {
		l.onMake(name)
	}
	return l.all[name], nil
}

func (l *laneRows) Get(_ context.Context, name muster.Name) (muster.Lane, error) {
	lane, ok := l.all[name]
	if !ok {
		return lane, muster.Errorf(muster.NotFound, "there is no lane %s", name)
	}
	return lane, l.fail["get"]
}

func (l *laneRows) Occupy(ctx context.Context, name muster.Name, was, who worktree.Occupant) error {
	lane, err := l.Get(ctx, name)
	if err == nil {
		lane, err = worktree.SetOccupant(lane, was, who)
	}
	if err == nil {
		err = l.fail["occupy"]
	}
	if err == nil {
		l.all[name] = lane
	}
	return err
}

func (l *laneRows) Enter(ctx context.Context, name muster.Name) (string, error) {
	lane, err := l.Get(ctx, name)
	if err == nil {
		err = l.fail["enter"]
	}
	return lane.Path, err
}

func (l *laneRows) Archive(_ context.Context, name muster.Name) (string, error) {
	if err := l.fail["archive"]; err != nil {
		return "", err
	}
	l.archived = append(l.archived, name)
	delete(l.all, name)
	return "", nil
}

func (l *laneRows) Release(_ context.Context, name muster.Name) error {
	l.released = append(l.released, name)
	return l.fail["release"]
}

func (l *laneRows) Changed(context.Context, muster.Name) (bool, error) {
	return l.changed, l.fail["changed"]
}

func (l *laneRows) Fingerprint(context.Context, muster.Name) (string, error) {
	return "", l.fail["fingerprint"]
}

func (l *laneRows) ScratchChanges(context.Context, muster.Name, []string) ([]string, error) {
	return l.scratch, l.fail["scratch"]
}

func (l *laneRows) Ignored(context.Context, muster.Name) ([]string, error) {
	return l.ignored, l.fail["ignored"]
}

func (l *laneRows) Status(context.Context, muster.Name) (string, error) { return "half a parser", nil }

// occupant is who works in a lane.
func (l *laneRows) occupant(name muster.Name) worktree.Occupant {
	return worktree.OccupantOf(l.all[name])
}

// put makes a row of a lane with somebody in it.
func (l *laneRows) put(lane muster.Lane, who worktree.Occupant) {
	lane.Status = muster.LaneActive
	lane, _ = worktree.SetOccupant(lane, worktree.OccupantOf(lane), who)
	l.all[lane.Name] = lane
}

// names are the lanes that there are, sorted.
func (l *laneRows) names() (all []muster.Name) {
	for name := range l.all {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// keep asks to keep a lane.
func (l *laneRows) keep(name muster.Name) {
	lane := l.all[name]
	extra := muster.Extra{"keep": json.RawMessage("true")}
	for k, v := range lane.Extra {
		extra[k] = v
	}
	lane.Extra = extra
	l.all[name] = lane
}

// landings is a target on which a landing ends as the test says.
type landings struct {
	Lander
	target    string
	targetErr error
	land      func(id muster.TaskID, fence int) (landing.Verdict, error)
	landed    int // how often Land was called
	revoked   int
	revokeErr error
}

func (l *landings) Target(context.Context) (string, error) { return l.target, l.targetErr }

func (l *landings) LandWith(
	_ context.Context, id muster.TaskID, fence int, _ string, _ muster.Name, _ landing.Agents,
) (landing.Verdict, error) {
	l.landed++
	return l.land(id, fence)
}

func (l *landings) Revoke(context.Context, muster.TaskID, int) error {
	l.revoked++
	return l.revokeErr
}

// sleepers is a launcher whose commands run until they are stopped.
type sleepers struct{ proc.Launcher }

type sleeper struct {
	proc.Process
	ctx context.Context
}

func (sleepers) Start(ctx context.Context, _ proc.Spec) (proc.Process, error) {
	return sleeper{ctx: ctx}, nil
}

func (s sleeper) Wait() (int, error) {
	<-s.ctx.Done()
	return 137, context.Cause(s.ctx)
}
