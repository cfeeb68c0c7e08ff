package teammate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/mailbox"
	"muster/internal/memory"
	"muster/internal/paths"
	"muster/internal/proc"
	"muster/internal/requests"
	"muster/internal/roster"
	"muster/internal/trust"
	"muster/internal/worktree"
	"muster/journal"
	"muster/llm"
	"muster/loop"
	"muster/store/mem"
	"muster/store/storetest"
)

// life is a member, alice or the lead, on records in memory and in a bubble. Its model says what the test has written
// down for each turn, its commands are not real, and its lanes have no git. What a test changes in config before the
// member is made with begin, or once more with restart, holds for it.
type life struct {
	*testing.T
	*Member
	config   Config
	world    Services // on the same records, without failures: what others do
	commands *fakeCommands
	lanes    *fakeLanes
	target   *fakeTarget
	run      muster.Run
	runErr   error
	turns    []turn
	asked    []llm.Request // that the model got
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

// live runs a test in a bubble with a life of the member of that name. Alice and the lead are in the roster.
func live(t *testing.T, name muster.Name, f func(l *life)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(newLife(t, name, func(s muster.Store) muster.Store { return s })) })
}

// failEachOp lets each operation on the store that act makes fail in turn, but not those of prepare, and not those on
// the journal, which drives nothing, and on what spared names.
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
				l := newLife(t, name, wrap)
				prepare(l)
				isArmed = true
				err = act(l)
				isArmed = false
			})
			return err
		})
}

// emit notes an event. Tools that run side by side have some at the same time.
func (l *life) emit(e loop.Event) {
	l.emitting.Lock()
	defer l.emitting.Unlock()
	l.emitted = append(l.emitted, e)
}

func newLife(t *testing.T, name muster.Name, wrap func(muster.Store) muster.Store) *life {
	store := mem.New()
	l := &life{T: t, world: services(store), commands: &fakeCommands{}, lanes: &fakeLanes{dir: t.TempDir()},
		target: &fakeTarget{tip: "base"}, run: muster.Run{Cap: 2, StartedAt: 1}, ended: make(chan struct{})}
	l.config = Config{Services: services(wrap(store)),
		Limits: Limits{Turns: 20, IdleTimeout: time.Minute, BashTimeout: time.Minute, BackgroundTimeout: time.Hour},
		Emit:   l.emit,
		Model:  func(func() (muster.TaskID, int), func(time.Time, error)) (llm.Model, error) { return l, nil }}
	l.config.Team, l.config.Home, l.config.Launcher = "demo", paths.Dir(t.TempDir()), l.commands
	l.config.Lanes, l.config.Lander = l.lanes, l.target
	l.config.Log = slog.New(slog.NewTextHandler(&l.logged, nil))
	l.config.LandedFiles = func(context.Context, string) ([]string, error) { return []string{"parser.go"}, nil }
	home := t.TempDir()
	registry := trust.Open(func(string) string { return home })
	l.config.Memory = func() (repository, user memory.Dir) {
		return memory.Dir{Path: filepath.Join(home, "repository"), Registry: registry}, memory.Dir{}
	}
	l.config.Run = func(context.Context) (muster.Run, error) { return l.run, l.runErr }
	for _, m := range []muster.Member{{Name: muster.Lead, Role: string(muster.Lead), Prompt: "The goal: a parser."},
		{Name: "alice", Role: "coder", Prompt: "Write <inbox> parsers."}} {
		_, err := l.world.Roster.Add(t.Context(), m)
		l.must(err)
		l.change(m.Name, func(m *muster.Member) {
			if m.Host = "here"; m.Name != name { // the other one does nothing
				m.Status = muster.Idle
			}
		})
	}
	l.restart(name)
	return l
}

// services are those that need a store only.
func services(s muster.Store) (r Services) {
	j := journal.New(s.Log())
	r = Services{Store: s, Journal: j, Board: board.New(s, j), Roster: roster.New(s, j, "demo")}
	r.Post = mailbox.New(s, j, r.Roster.Known)
	r.Requests = requests.New(s, r.Post, j)
	r.Queue = NewQueue(r.Board)
	return r
}

// restart makes a member of what the roster and config say now.
func (l *life) restart(name muster.Name) {
	l.Helper()
	var err error
	l.config.Record, err = l.world.Roster.Get(l.Context(), name)
	l.must(err)
	l.Member, err = New(l.config)
	l.must(err)
	l.ended = make(chan struct{})
}

func (l *life) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// change changes a member's record.
func (l *life) change(name muster.Name, f func(*muster.Member)) {
	l.Helper()
	_, err := l.world.Roster.Update(l.Context(), name, f)
	l.must(err)
}

// record is a member's record.
func (l *life) record(name muster.Name) muster.Member {
	l.Helper()
	m, err := l.world.Roster.Get(l.Context(), name)
	l.must(err)
	return m
}

// send mails something.
func (l *life) send(kind muster.MessageType, from, to muster.Name, text string) muster.Message {
	l.Helper()
	m, err := l.world.Post.Send(l.Context(), muster.Message{Type: kind, From: from, To: to, Content: text})
	l.must(err)
	return m
}

// mail is what waits in an inbox.
func (l *life) mail(box muster.Name) []muster.Message {
	l.Helper()
	all, _, _, err := l.world.Post.Peek(l.Context(), box, 0, 1<<20)
	l.must(err)
	return all
}

// create puts a task on the board.
func (l *life) create(d board.Draft) muster.Task {
	l.Helper()
	if d.Subject == "" {
		d.Subject = "the parser"
	}
	d.CreatedBy = muster.Lead
	t, err := l.world.Board.Create(l.Context(), d)
	l.must(err)
	return t
}

// events are the events of a kind.
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
	m, ended := l.Member, l.ended
	go func() {
		defer close(ended)
		l.end, l.err = m.Live(ctx)
	}()
	synctest.Wait()
}

// hasEnded reports whether the life is over.
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
	l.asked = append(l.asked, r)
	next := says("Nothing more.")
	if len(l.turns) > 0 {
		next, l.turns = l.turns[0], l.turns[1:]
	}
	return next(r)
}

// says is a turn in which the model only says something.
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

// fails is a turn in which the model fails.
func fails(kind llm.Kind) turn {
	return func(llm.Request) (llm.Reply, error) { return llm.Reply{}, errModel(kind) }
}

// said is the conversation as one text.
func (l *life) said() string { return fmt.Sprint(l.conversation.script.Messages()) }

// heard is what the model was told with its last request.
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
	err     error
}

type fakeCommand struct {
	ctx  context.Context
	done chan struct{}
}

func (f *fakeCommands) Start(ctx context.Context, s proc.Spec) (proc.Process, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := &fakeCommand{ctx, make(chan struct{})}
	f.running = append(f.running, c)
	_, _ = fmt.Fprintln(s.Out, "the output")
	if strings.Contains(strings.Join(s.Argv, " "), "echo") {
		close(c.done)
	}
	return c, f.err
}

func (*fakeCommands) Close() error { return nil }

func (c *fakeCommand) Wait() (int, error) {
	select {
	case <-c.done:
		return 0, nil
	case <-c.ctx.Done():
		return 137, context.Cause(c.ctx)
	}
}

func (*fakeCommand) Kill() error { return nil }
func (*fakeCommand) PID() int    { return 1 }

// fakeLanes are all in one directory.
type fakeLanes struct {
	Lanes
	dir       string
	err       error         // of what a tool does in a lane
	scratches []string      // the commits of which there was a checkout, in order
	scratch   []string      // what ScratchChanges returns
	files     string        // what Fingerprint returns
	looks     int           // calls of Fingerprint
	lookTakes time.Duration // how long each takes
	lookErr   error
	all       []muster.Lane // that are listed
	archived  []muster.Name
}

func (f *fakeLanes) List(context.Context) ([]muster.Lane, error) { return f.all, nil }

func (f *fakeLanes) Create(_ context.Context, name muster.Name, id muster.TaskID, base string) (muster.Lane, error) {
	return muster.Lane{Name: name, Path: f.dir, TaskID: id, Base: base, Status: muster.LaneActive}, nil
}

func (f *fakeLanes) Get(_ context.Context, name muster.Name) (muster.Lane, error) {
	return muster.Lane{Name: name, Path: f.dir, TaskID: 1, Base: "base", Status: muster.LaneActive}, nil
}

func (f *fakeLanes) ScratchChanges(context.Context, muster.Name, []string) ([]string, error) {
	return f.scratch, nil
}

func (f *fakeLanes) Scratch(_ context.Context, _ muster.Name, commit string) (string, error) {
	f.scratches = append(f.scratches, commit)
	dir := fmt.Sprintf("%s/%s-%d", f.dir, commit, len(f.scratches))
	return dir, cmp.Or(f.err, os.MkdirAll(dir, 0o700))
}

func (f *fakeLanes) Archive(_ context.Context, name muster.Name) (string, error) {
	f.archived = append(f.archived, name)
	return "", nil
}

func (f *fakeLanes) Occupy(context.Context, muster.Name, worktree.Occupant, worktree.Occupant) error {
	return nil
}

func (f *fakeLanes) Enter(context.Context, muster.Name) (string, error)   { return f.dir, nil }
func (f *fakeLanes) Workdir(context.Context, muster.Name) (string, error) { return f.dir, f.err }
func (f *fakeLanes) Changed(context.Context, muster.Name) (bool, error)   { return true, nil }

// Fingerprint takes its time, which is that of the synctest bubble.
func (f *fakeLanes) Fingerprint(context.Context, muster.Name) (string, error) {
	f.looks++
	time.Sleep(f.lookTakes)
	return f.files, f.lookErr
}

func (f *fakeLanes) Status(context.Context, muster.Name) (string, error) { return "", nil }
func (f *fakeLanes) Release(context.Context, muster.Name) error          { return nil }

// fakeTarget is a target on which nothing lands.
type fakeTarget struct {
	Lander
	tip string
	err error
}

func (f *fakeTarget) Target(context.Context) (string, error) { return f.tip, f.err }

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
