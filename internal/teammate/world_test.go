package teammate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/landing"
	"muster/internal/mailbox"
	"muster/internal/memory"
	"muster/internal/paths"
	"muster/internal/proc"
	"muster/internal/requests"
	"muster/internal/roster"
	"muster/internal/tool/code"
	"muster/internal/trust"
	"muster/internal/worktree"
	"muster/journal"
	"muster/llm"
	"muster/loop"
	"muster/store/mem"
	"muster/store/storetest"
)

var (
	errTest = errors.New("an error")
	errDisk = muster.Errorf(muster.Unavailable, "the disk is gone")
)

// life is a member on records in memory. Its model says what the test has written down for each turn, its commands are
// not real, and its lanes have no git. A change of config holds for the member after restart.
type life struct {
	*testing.T
	*Member
	config   Config
	world    Services // on the same records, without failures: what others do
	commands *fakeCommands
	rows     *fakeLanes
	landings *fakeLander
	run      muster.Run
	runErr   error
	turns    []turn
	asked    []llm.Request // that the model got
	requests atomic.Int64  // how many these are
	emitting sync.Mutex
	emitted  []loop.Event
	logged   strings.Builder

	stop  context.CancelCauseFunc // ends the life that start has begun
	ended chan struct{}
	end   End
	err   error
}

// turn is one answer of the model.
type turn func(llm.Request) (llm.Reply, error)

// live runs a test in a bubble with a member that start lets live: alice or the lead. The other one is idle.
func live(t *testing.T, name muster.Name, f func(l *life)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(newLive(t, name, nil)) })
}

func newLive(t *testing.T, name muster.Name, wrap func(muster.Store) muster.Store) *life {
	t.Helper()
	other := muster.Lead
	if name == muster.Lead {
		other = "alice"
	}
	l := newWorld(t, name, other)
	l.change(other, func(m *muster.Member) { m.Status = muster.Idle })
	l.rows.changed = true
	if wrap != nil {
		l.config.Services = l.on(wrap(l.world.Store))
	}
	l.restart(name)
	return l
}

// inherited is a member with a claimed task whose lane was made by an earlier owner, whose process is dead.
func inherited(t *testing.T) (*life, muster.Task) {
	t.Helper()
	p := newParts(t, "alice")
	task := p.claimOnBoard("alice")
	p.rows.put(muster.Lane{Name: "old", TaskID: task.ID, Base: "base"}, worktree.Occupant{Member: "carl", Host: "host-9.1"})
	task, err := p.config.Board.SetLane(t.Context(), task.ID, task.Fence, "old", "base")
	p.must(err)
	return p, task
}

// newParts makes a member whose parts a test calls one by one, beside the teammate bob who works.
func newParts(t *testing.T, name muster.Name) *life {
	t.Helper()
	l := newWorld(t, name, "bob")
	l.rows.status = "half a parser"
	l.restart(name)
	l.openScript()
	return l
}

// failEach is failEachOp for a part of alice.
func failEach(t *testing.T, prepare func(*life), act func(*life) error) {
	t.Helper()
	failEachOp(t, "alice", func(l *life) {
		l.rows.changed = false
		l.openScript()
		prepare(l)
	}, act)
}

// failEachOp lets each operation on the store that act makes fail in turn, but not those of prepare, those on the
// journal, for which nothing waits, and those on what spared names. act must return the error of the store.
func failEachOp(t *testing.T, name muster.Name, prepare func(*life), act func(*life) error, spared ...string) {
	t.Helper()
	isArmed := false
	storetest.FailEach(t,
		func(op string) bool {
			_, on, _ := strings.Cut(op, " ")
			return isArmed && on != muster.StreamEvents && !slices.Contains(spared, on)
		},
		func(t *testing.T, wrap func(muster.Store) muster.Store) (err error) {
			synctest.Test(t, func(t *testing.T) {
				l := newLive(t, name, wrap)
				prepare(l)
				isArmed = true
				err = act(l)
				isArmed = false
			})
			return err
		})
}

func newWorld(t *testing.T, name, other muster.Name) *life {
	t.Helper()
	dir := t.TempDir()
	l := &life{T: t, commands: &fakeCommands{}, landings: &fakeLander{target: "base"}, run: muster.Run{Cap: 4, StartedAt: 1},
		rows: &fakeLanes{dir: filepath.Join(dir, "lane"), rows: map[muster.Name]muster.Lane{}, fail: map[string]error{}}}
	l.rows.onLeave, l.landings.lanes = func() {}, l.rows
	l.must(errors.Join(os.Mkdir(l.rows.dir, 0o700), os.Mkdir(filepath.Join(dir, "home"), 0o700)))
	registry := trust.Open(func(string) string { return dir })
	l.config = Config{
		Services: Services{Team: "demo", Home: paths.Dir(filepath.Join(dir, "home")), Launcher: l.commands, Lanes: l.rows,
			Lander: l.landings, Log: slog.New(slog.NewTextHandler(&l.logged, nil)),
			LandedFiles: func(context.Context, string) ([]string, error) { return []string{"parser.go"}, nil },
			Memory: func() (repository, user memory.Dir) {
				return memory.Dir{Path: filepath.Join(dir, "repository"), Registry: registry}, memory.Dir{}
			},
			Overview: Overview{Run: func(context.Context) (muster.Run, error) { return l.run, l.runErr }}},
		Limits: Limits{Turns: 20, IdleTimeout: time.Minute, BashTimeout: time.Minute, BackgroundTimeout: time.Hour},
		Emit: func(e loop.Event) {
			l.emitting.Lock()
			defer l.emitting.Unlock()
			l.emitted = append(l.emitted, e)
		},
		Model: func(func() (muster.TaskID, int), func(time.Time, error)) (llm.Model, error) { return l, nil }}
	store := mem.New()
	l.world, l.config.Services = l.on(store), l.on(store)
	l.landings.land = func(id muster.TaskID, fence int) (landing.Verdict, error) {
		done, err := l.world.Board.Complete(t.Context(), id, fence, board.Outcome{By: name, Landed: &muster.Landed{}})
		return landing.Verdict{Task: done}, err
	}
	for _, name := range []muster.Name{name, other} {
		m := muster.Member{Name: name, Role: "coder", Prompt: "Write <mail> parsers."}
		if name == muster.Lead {
			m.Role, m.Prompt = string(muster.Lead), "The goal: a parser."
		}
		_, err := l.world.Roster.Add(t.Context(), m)
		l.must(err)
		host, err := l.world.Roster.Join(t.Context(), "test")
		l.must(err)
		l.change(name, func(m *muster.Member) { m.Host = host.ID() })
	}
	return l
}

func (l *life) on(s muster.Store) Services {
	r, j := l.config.Services, journal.New(s.Log())
	r.Store, r.Journal, r.Board, r.Roster = s, j, board.New(s, j), roster.New(s, j, "demo")
	r.Post = mailbox.New(s, j, r.Roster.Known)
	r.Requests = requests.New(s, r.Post, j)
	return r
}

// restart makes a member of what the roster and config say now, like a process that knows only what is in the store.
func (l *life) restart(name muster.Name) {
	l.Helper()
	if l.Member != nil {
		l.jobs.Close()
	}
	var err error
	l.config.Record, err = l.world.Roster.Get(l.Context(), name)
	l.must(err)
	l.Member, err = New(l.config)
	l.must(err)
	l.Cleanup(l.jobs.Close)
	l.ended = make(chan struct{})
}

// reopen is restart on a store; the member's conversation is open.
func (l *life) reopen(s muster.Store) {
	l.Helper()
	l.config.Services = l.on(s)
	l.restart(l.Member.record.Name)
	l.openScript()
}

func (l *life) openScript() {
	l.Helper()
	l.must(l.conversation.open(l.Context()))
}

func (l *life) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *life) wants(what string, err, kind error) {
	l.Helper()
	if !errors.Is(err, kind) {
		l.Errorf("%s: %v, want %v", what, err, kind)
	}
}

func (l *life) change(name muster.Name, f func(*muster.Member)) {
	l.Helper()
	_, err := l.world.Roster.Update(l.Context(), name, f)
	l.must(err)
}

func (l *life) record(name muster.Name) muster.Member {
	l.Helper()
	m, err := l.world.Roster.Get(l.Context(), name)
	l.must(err)
	return m
}

func (l *life) me() muster.Member { l.Helper(); return l.record(l.Member.record.Name) }

func (l *life) rehost() {
	l.Helper()
	l.change(l.Member.record.Name, func(m *muster.Member) { m.Host = "host-8.1" })
}

func (l *life) send(kind muster.MessageType, from, to muster.Name, text string) muster.Message {
	l.Helper()
	m, err := l.world.Post.Send(l.Context(), muster.Message{Type: kind, From: from, To: to, Content: text})
	l.must(err)
	return m
}

func (l *life) mail(box muster.Name) []muster.Message {
	l.Helper()
	all, _, err := l.world.Store.Inbox().Peek(l.Context(), box, 0, 100)
	l.must(err)
	return all
}

// leadMail takes the mail that waits for the lead.
func (l *life) leadMail() []muster.Message {
	l.Helper()
	all, end, err := l.world.Store.Inbox().Peek(l.Context(), muster.Lead, 0, 100)
	l.must(err)
	l.must(l.world.Store.Inbox().Drop(l.Context(), muster.Lead, end))
	return all
}

func (l *life) create(d board.Draft) muster.Task {
	l.Helper()
	d.Subject, d.CreatedBy = cmp.Or(d.Subject, "the parser"), muster.Lead
	t, err := l.world.Board.Create(l.Context(), d)
	l.must(err)
	return t
}

// claim creates a task that the member has claimed, with a lane, and has read.
func (l *life) claim() muster.Task {
	l.Helper()
	_, err := l.claims.Claim(l.Context(), l.create(board.Draft{}).ID)
	l.must(err)
	return l.current()
}

// claimOnBoard creates a task that the board knows as claimed by the owner.
func (l *life) claimOnBoard(owner muster.Name) muster.Task {
	l.Helper()
	t, err := l.world.Board.Claim(l.Context(), l.create(board.Draft{}).ID, board.Claim{Owner: owner, Role: "coder"})
	l.must(err)
	return t
}

func (l *life) current() muster.Task {
	t, _ := l.claims.CurrentTask()
	return t
}

func (l *life) task(id muster.TaskID) muster.Task {
	l.Helper()
	t, err := l.world.Board.Get(l.Context(), id)
	l.must(err)
	return t
}

// revoke takes a claim away, and gives the task to bob if he is to have it.
func (l *life) revoke(t muster.Task, toBob bool) {
	l.Helper()
	_, err := l.world.Board.Revoke(l.Context(), t.ID, t.Fence, muster.User, "too slow")
	l.must(err)
	if toBob {
		_, err = l.world.Board.Claim(l.Context(), t.ID, board.Claim{Owner: "bob", Role: "coder"})
		l.must(err)
	}
}

func (l *life) ask(id muster.RequestID, kind muster.RequestKind, from, to muster.Name) muster.RequestID {
	l.Helper()
	r, err := l.world.Requests.Ask(l.Context(), muster.Request{ID: id, Kind: kind, From: from, To: to, Reason: "please"})
	l.must(err)
	return r.ID
}

func (l *life) waiting() []muster.Request {
	l.Helper()
	all, err := l.world.Requests.Pending(l.Context())
	l.must(err)
	return all
}

func (l *life) decide(id muster.RequestID, by muster.Name, yes bool, note string) {
	l.Helper()
	_, _, err := l.world.Requests.Decide(l.Context(), id, by, yes, note)
	l.must(err)
}

func (l *life) startJob() {
	l.Helper()
	_, err := l.jobs.Start(l.Context(), "make watch", proc.Spec{}, time.Hour, code.NewOutput(l.rows.dir, "job"))
	l.must(err)
}

func (l *life) bobsOccupant() worktree.Occupant {
	l.Helper()
	return worktree.Occupant{Member: "bob", Host: l.record("bob").Host}
}

func (l *life) events(kind string) (all []muster.Event) {
	l.Helper()
	for e, err := range l.world.Journal.Read(l.Context(), 0) {
		l.must(err)
		if e.Kind == kind {
			all = append(all, e.Event)
		}
	}
	return all
}

// open begins the life without its loop: the transcript is open, and the opening words are said.
func (l *life) open() {
	l.Helper()
	l.must(l.Member.open(l.Context()))
	l.must(OpenConversation{}.do(l.Context(), l.Member))
}

// start lets the member live, and returns when it has nothing more to do.
func (l *life) start(turns ...turn) {
	l.Helper()
	l.turns = turns
	ctx, stop := context.WithCancelCause(l.Context())
	l.stop = stop
	l.Cleanup(func() { stop(nil) })
	m, ended, asked := l.Member, l.ended, l.requests.Load()
	go func() {
		defer close(ended)
		l.end, l.err = m.Live(ctx)
	}()
	synctest.Wait()
	if !m.isLead() && l.requests.Load() == asked {
		time.Sleep(firstTaskGrace)
		synctest.Wait()
	}
}

func (l *life) hasEnded() bool {
	synctest.Wait()
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

// Reply is the model's: the next turn that the test has written, then closing words.
func (l *life) Reply(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Reply, error) {
	l.requests.Add(1)
	l.asked = append(l.asked, r)
	next := says("Nothing more?")
	if len(l.turns) > 0 {
		next, l.turns = l.turns[0], l.turns[1:]
	}
	return next(r)
}

func (l *life) reply(stop llm.Stop, text string) {
	l.Helper()
	r, _ := stops(stop, text)(llm.Request{})
	l.must(l.conversation.script.Reply(l.Context(), r))
}

func says(text string) turn { return stops(llm.StopEnd, text) }

// stops is a turn that ends for another reason than that the model has said what it wanted.
func stops(why llm.Stop, text string) turn {
	return func(llm.Request) (llm.Reply, error) {
		return llm.Reply{Message: llm.Message{Role: llm.Assistant, Parts: llm.Parts{llm.Text{Text: text}}}, Stop: why,
			Model: "test", Usage: llm.Usage{Input: 7}}, nil
	}
}

// calls is a turn in which the model calls a tool. then is done while it answers.
func calls(name string, input map[string]any, then ...func()) turn {
	return func(r llm.Request) (llm.Reply, error) {
		for _, f := range then {
			f()
		}
		data, _ := json.Marshal(input)
		call := llm.Call{ID: fmt.Sprintf("call-%d", len(r.Messages)), Name: name, Input: data}
		return llm.Reply{Message: llm.Message{Role: llm.Assistant, Parts: llm.Parts{call}}, Stop: llm.StopTools}, nil
	}
}

func fails(kind llm.Kind) turn {
	return func(llm.Request) (llm.Reply, error) { return llm.Reply{}, errModel(kind) }
}

func (l *life) said() string { return fmt.Sprint(l.conversation.script.Messages()) }

func (l *life) heard() string {
	if len(l.asked) == 0 {
		return ""
	}
	return fmt.Sprint(l.asked[len(l.asked)-1].Messages)
}

// fakeCommands run until they are stopped, but those that begin with echo print that line and end.
type fakeCommands struct {
	mu      sync.Mutex
	running []*fakeCommand
	prints  string // in place of the output
	err     error
}

type fakeCommand struct {
	ctx  context.Context
	done chan struct{}
	exit int
}

func (f *fakeCommands) Start(ctx context.Context, s proc.Spec) (proc.Process, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := &fakeCommand{ctx: ctx, done: make(chan struct{})}
	if len(s.Argv) > 0 && s.Argv[0] == "git" { // there is no repository
		c.exit = 128
		close(c.done)
		return c, f.err
	}
	f.running = append(f.running, c)
	if s.Out != nil {
		_, _ = fmt.Fprintln(s.Out, cmp.Or(f.prints, "the output"))
	}
	if strings.Contains(strings.Join(s.Argv, " "), "echo") {
		close(c.done)
	}
	return c, f.err
}

func (*fakeCommands) Close() error { return nil }

func (c *fakeCommand) Wait() (int, error) {
	select {
	case <-c.done:
		return c.exit, nil
	case <-c.ctx.Done():
		return 137, context.Cause(c.ctx)
	}
}

func (*fakeCommand) Kill() error { return nil }
func (*fakeCommand) PID() int    { return 1 }

// fakeLanes are rows without git, all in one directory. An operation fails where fail has an error for it.
type fakeLanes struct {
	Lanes
	dir       string
	rows      map[muster.Name]muster.Lane
	fail      map[string]error
	archived  []muster.Name
	released  []muster.Name
	changed   bool                   // what Changed returns
	ignored   []string               // what Ignored returns
	status    string                 // what Status returns
	files     string                 // what Fingerprint returns
	looks     int                    // calls of Fingerprint
	lookTakes time.Duration          // how long each takes
	scratch   []string               // what ScratchChanges returns
	scratches int                    // calls of Scratch
	onMake    func(name muster.Name) // called after a lane was made
	onLeave   func()                 // called before the occupant changes, and before a release
}

func (l *fakeLanes) List(context.Context) ([]muster.Lane, error) {
	return slices.Collect(maps.Values(l.rows)), l.fail["list"]
}

func (l *fakeLanes) Create(_ context.Context, name muster.Name, task muster.TaskID, base string) (muster.Lane, error) {
	if err := l.fail["create"]; err != nil {
		return muster.Lane{}, err
	}
	if _, ok := l.rows[name]; ok {
		return muster.Lane{}, muster.Errorf(muster.Held, "there is a lane %s", name)
	}
	l.rows[name] = muster.Lane{Name: name, Path: l.dir, TaskID: task, Base: base, Status: muster.LaneActive}
	if l.onMake != nil {
		l.onMake(name)
	}
	return l.rows[name], nil
}

func (l *fakeLanes) Bind(ctx context.Context, name muster.Name, task muster.TaskID) error {
	lane, err := l.Get(ctx, name)
	if lane.TaskID = task; err == nil {
		l.rows[name] = lane
	}
	return err
}

func (l *fakeLanes) Remove(_ context.Context, name muster.Name, _ bool) error {
	delete(l.rows, name)
	return l.fail["remove"]
}

func (l *fakeLanes) Get(_ context.Context, name muster.Name) (muster.Lane, error) {
	lane, ok := l.rows[name]
	if !ok {
		return lane, muster.Errorf(muster.NotFound, "there is no lane %s", name)
	}
	return lane, l.fail["get"]
}

func (l *fakeLanes) Occupy(ctx context.Context, name muster.Name, was, who worktree.Occupant) error {
	l.onLeave()
	lane, err := l.Get(ctx, name)
	if err == nil {
		lane, err = worktree.SetOccupant(lane, was, who)
	}
	if err == nil {
		err = l.fail["occupy"]
	}
	if err == nil {
		l.rows[name] = lane
	}
	return err
}

func (l *fakeLanes) Enter(ctx context.Context, name muster.Name) (string, error) {
	lane, err := l.Get(ctx, name)
	return lane.Path, cmp.Or(err, l.fail["enter"])
}

func (l *fakeLanes) Archive(_ context.Context, name muster.Name) (string, error) {
	if err := l.fail["archive"]; err != nil {
		return "", err
	}
	l.archived = append(l.archived, name)
	delete(l.rows, name)
	return "", nil
}

func (l *fakeLanes) Release(_ context.Context, name muster.Name) error {
	l.onLeave()
	l.released = append(l.released, name)
	return l.fail["release"]
}

func (l *fakeLanes) Scratch(_ context.Context, _ muster.Name, commit string) (string, error) {
	l.scratches++
	dir := fmt.Sprintf("%s/%s-%d", l.dir, commit, l.scratches)
	return dir, cmp.Or(l.fail["workdir"], os.MkdirAll(dir, 0o700))
}

// Fingerprint takes its time, which is that of the synctest bubble.
func (l *fakeLanes) Fingerprint(context.Context, muster.Name) (string, error) {
	l.looks++
	time.Sleep(l.lookTakes)
	return l.files, l.fail["fingerprint"]
}

func (l *fakeLanes) Workdir(context.Context, muster.Name) (string, error) {
	return l.dir, l.fail["workdir"]
}

func (l *fakeLanes) ScratchChanges(context.Context, muster.Name, []string) ([]string, error) {
	return l.scratch, nil
}

func (l *fakeLanes) Changed(context.Context, muster.Name) (bool, error) {
	return l.changed, l.fail["changed"]
}

func (l *fakeLanes) Ignored(context.Context, muster.Name) ([]string, error) {
	return l.ignored, l.fail["ignored"]
}

func (l *fakeLanes) Status(context.Context, muster.Name) (string, error) { return l.status, nil }

func (l *fakeLanes) occupant(name muster.Name) worktree.Occupant {
	return worktree.OccupantOf(l.rows[name])
}

func (l *fakeLanes) put(lane muster.Lane, who worktree.Occupant) {
	lane.Status = cmp.Or(lane.Status, muster.LaneActive)
	lane, _ = worktree.SetOccupant(lane, worktree.OccupantOf(lane), who)
	l.rows[lane.Name] = lane
}

// fakeLander is a target on which a landing ends as the test says.
type fakeLander struct {
	Lander
	lanes     *fakeLanes
	target    string
	targetErr error
	land      func(id muster.TaskID, fence int) (landing.Verdict, error)
	landed    int // how often a landing was begun
	revoked   int
	revokeErr error
}

func (l *fakeLander) Target(context.Context) (string, error) { return l.target, l.targetErr }

func (l *fakeLander) LandWith(
	ctx context.Context, id muster.TaskID, fence int, _ string, _ muster.Name, owner landing.Owner,
) (landing.Verdict, error) {
	if !l.lanes.changed {
		if err := owner.Unchanged(ctx); err != nil {
			return landing.Verdict{}, err
		}
	}
	l.landed++
	return l.land(id, fence)
}

func (l *fakeLander) Revoke(context.Context, muster.TaskID, int) error {
	l.revoked++
	return l.revokeErr
}

// fakeTalk is a conversation of the user with the lead.
type fakeTalk struct {
	closed chan struct{}
	heard  []muster.MessageID
	rests  []bool                  // what each Rest was told
	stop   context.CancelCauseFunc // stops the turn
	turns  int                     // that are not over
}

func newTalk() *fakeTalk { return &fakeTalk{closed: make(chan struct{})} }

func (f *fakeTalk) Closed() <-chan struct{}   { return f.closed }
func (f *fakeTalk) Heard(id muster.MessageID) { f.heard = append(f.heard, id) }
func (f *fakeTalk) Rest(done bool)            { f.rests = append(f.rests, done) }
func (f *fakeTalk) Turn(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, f.stop = context.WithCancelCause(ctx)
	f.turns++
	return ctx, func() { f.turns-- }
}
