package team_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/mailbox"
	"muster/internal/proc"
	"muster/internal/requests"
	"muster/internal/roster"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/testing/tapped"
	"muster/internal/transcript"
	"muster/journal"
	"muster/llm"
	"muster/llm/script"
	"muster/store/file"
	"muster/store/mem"
	"muster/team"
)

func TestMain(m *testing.M) {
	proc.GuardMain()
	gittest.Main(m)
}

// house is a team with its ground and its state, as a test sees them. A test takes the cheapest that shows its promise:
//
//   - bubble: no process, state in memory, and a clock that runs only while nobody does anything. Goroutines that outlive
//     the test fail it.
//   - bubbleOnGit: the same on a real repository.
//   - onFiles: a real repository, state in files, the real guard, and the real clock.
type house struct {
	*testing.T
	root   string
	meadow *meadow             // nil on a git repository
	store  muster.Store        // the state
	handle func() muster.Store // the state as a new process opens it
	other                      // the state as another process sees it

	patience time.Duration // with which it waits for an event, on its clock
}

// other is the planes of a team on a handle of its own.
type other struct {
	journal  *journal.Journal
	board    *board.Board
	roster   *roster.Roster
	post     *mailbox.Mail
	requests *requests.Requests
}

func elsewhere(s muster.Store) other {
	o := other{journal: journal.New(s.Log())}
	o.board = board.New(s, o.journal)
	o.roster = roster.New(s, o.journal, "demo")
	o.post = mailbox.New(s, o.journal, o.roster.Known)
	o.requests = requests.New(s, o.post, o.journal)
	return o
}

func newRepo(t *testing.T) string {
	t.Helper()
	return gittest.Repo(t, map[string]string{"README": "a test\n"})
}

func bubble(t *testing.T, f func(h *house)) {
	t.Helper()
	root := t.TempDir()
	inBubble(t, root, newMeadow(root), f)
}

func bubbleOnGit(t *testing.T, f func(h *house)) {
	t.Helper()
	inBubble(t, newRepo(t), nil, f)
}

func inBubble(t *testing.T, root string, m *meadow, f func(h *house)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := mem.New()
		f(&house{T: t, root: root, meadow: m, store: store.Handle(), other: elsewhere(store.Handle()),
			handle: func() muster.Store { return store.Handle() }, patience: 5 * time.Hour})
	})
}

func onFiles(t *testing.T) *house {
	t.Helper()
	h := &house{T: t, root: newRepo(t), patience: time.Minute}
	h.handle = func() muster.Store {
		s := require.Value(file.Open(h.root))(t)
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	h.store = h.handle()
	h.other = elsewhere(h.store)
	return h
}

func (h *house) git(args ...string) string {
	h.Helper()
	return gittest.Git(h, h.root, args...)
}

func (h *house) commit(path, text string) {
	h.Helper()
	gittest.Write(h, h.root, map[string]string{path: text})
	h.git("add", ".")
	h.git("commit", "-q", "-m", "add "+path)
}

func (h *house) open(m llm.Model, change func(*team.Config)) *team.Team {
	h.Helper()
	c := team.Config{Dir: h.root, Store: h.handle(), Name: "demo", Settings: team.Settings{Teammates: 4},
		Model: func(string) (llm.Model, error) { return m, nil }}
	if change != nil {
		change(&c)
	}
	open := team.Open
	if h.meadow != nil {
		open = func(ctx context.Context, c team.Config) (*team.Team, error) { return team.OpenOn(ctx, c, h.meadow) }
	}
	t := require.Value(open(h.Context(), c))(h)
	if _, isReal := h.store.(*file.Store); !isReal {
		t.Launch(func(context.Context) (proc.Launcher, error) { return &shell{}, nil })
	}
	return t
}

func (h *house) scripted(words string) llm.Model {
	h.Helper()
	return require.Value(script.Parse([]byte(words)))(h).Model()
}

// running is a run under way.
type running struct {
	h    *house
	stop context.CancelCauseFunc
	done chan struct{}
	sum  team.Summary
	err  error
}

func (h *house) begin(f func(context.Context) (team.Summary, error)) *running {
	ctx, stop := context.WithCancelCause(h.Context())
	r := &running{h: h, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.sum, r.err = f(ctx)
	}()
	return r
}

func (h *house) run(t *team.Team) *running {
	return h.begin(func(ctx context.Context) (team.Summary, error) { return t.Run(ctx, "the goal", team.Start{}) })
}

func (h *house) start(words string, change func(*team.Config)) *running {
	h.Helper()
	return h.run(h.open(h.scripted(words), change))
}

func (h *house) resume(words string, change func(*team.Config)) *running {
	h.Helper()
	return h.begin(h.open(h.scripted(words), change).Resume)
}

func (r *running) ends(code int, within time.Duration) team.Summary {
	r.h.Helper()
	select {
	case <-r.done:
	case <-time.After(within):
		r.stop(errors.New("too late"))
		<-r.done
		r.h.Fatalf("the run goes on after %v\n%s", within, r.h.tail())
	}
	if r.err != nil || r.sum.Code != code {
		r.h.Fatalf("the run ended with code %d (%s), %v; want %d\n%s", r.sum.Code, r.sum.Text, r.err, code, r.h.tail())
	}
	return r.sum
}

func (r *running) fails() error {
	r.h.Helper()
	<-r.done
	if r.err == nil {
		r.h.Fatalf("the run ended with code %d (%s), want an error\n%s", r.sum.Code, r.sum.Text, r.h.tail())
	}
	return r.err
}

func (r *running) interrupt() {
	r.h.Helper()
	r.stop(muster.CauseUser)
	if err := r.fails(); !errors.Is(err, muster.CauseUser) {
		r.h.Fatalf("interrupted: %v", err)
	}
}

func (r *running) abandon() {
	r.stop(muster.CauseUser)
	<-r.done
}

func (h *house) until(what string, fits func(muster.Event) bool) muster.Event {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), h.patience)
	defer cancel()
	for e, err := range h.journal.Follow(ctx, 0) {
		if err == nil && fits(e.Event) {
			return e.Event
		}
	}
	h.Fatalf("it never happened: %s\n%s", what, h.tail())
	return muster.Event{}
}

func (h *house) events() (all []muster.Event) {
	for e, err := range h.journal.Read(h.Context(), 0) {
		require.NoError(h, err)
		all = append(all, e.Event)
	}
	return all
}

func (h *house) count(fits func(muster.Event) bool) (n int) {
	for _, e := range h.events() {
		if fits(e) {
			n++
		}
	}
	return n
}

func (h *house) noted(text string) int {
	return h.count(func(e muster.Event) bool {
		return e.Kind == journal.RunNote && strings.Contains(e.Text("text"), text)
	})
}

// ordered fails unless the first event happened before the second one. It compares when the records changed: the
// journal tells of a change after it, so it may tell of two at one moment the other way round.
func (h *house) ordered(what string, first, second func(muster.Event) bool) {
	h.Helper()
	all := h.events()
	i, j := slices.IndexFunc(all, first), slices.IndexFunc(all, second)
	if i < 0 || j < 0 || all[i].At > all[j].At {
		h.Errorf("%s: event %d is not before event %d\n%s", what, i, j, h.tail())
	}
}

func (h *house) tail() string {
	var lines []string
	for _, e := range h.events() {
		if e.Kind != journal.TurnStarted && e.Kind != journal.ToolEnded && e.Kind != journal.TurnEnded {
			line := fmt.Sprintf("%s %s %s #%d %v", muster.Time(e.At).Format("15:04:05.000"), e.Kind, e.Member, e.Task, e.Fields)
			if line = line[:min(len(line), 170)]; len(lines) == 0 || lines[len(lines)-1] != line {
				lines = append(lines, line)
			}
		}
	}
	return strings.Join(lines[max(0, len(lines)-25):], "\n")
}

func (h *house) task(id muster.TaskID) muster.Task {
	h.Helper()
	return require.Value(h.board.Get(h.Context(), id))(h)
}

func (h *house) member(name muster.Name) muster.Member {
	h.Helper()
	return require.Value(h.roster.Get(h.Context(), name))(h)
}

// said is the whole conversation of a member, as text. Mail stands in it once, as its reader has it.
func (h *house) said(name muster.Name) string {
	var b strings.Builder
	for r, err := range h.store.Log().Read(h.Context(), muster.StreamTranscripts+string(name), 0) {
		require.NoError(h, err)
		text, _, _ := bytes.Cut(r.Data, []byte(`,"delivered":[`))
		b.Write(text)
		b.WriteByte('\n')
	}
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\"`, `"`).Replace(b.String())
}

func (h *house) heard(name muster.Name, text string, n int) {
	h.Helper()
	if got := strings.Count(h.said(name), text); got != n {
		h.Errorf("%s heard %q %d times, want %d\n%s", name, text, got, n, h.said(name))
	}
}

func (h *house) entries(name muster.Name) (all []transcript.Entry) {
	for e, err := range transcript.Read(h.Context(), h.store.Log(), name, 0) {
		require.NoError(h, err)
		all = append(all, e)
	}
	return all
}

func (h *house) tellLead(text string) {
	h.Helper()
	require.Value(h.post.Send(h.Context(), muster.Message{From: muster.User, To: muster.Lead, Content: text}))(h)
}

func (h *house) waiting(name muster.Name) []muster.Message {
	h.Helper()
	msgs, _, _, err := h.post.Peek(h.Context(), name, 0, 1<<30)
	require.NoError(h, err)
	return msgs
}

// add adds a teammate as another process does: the living team starts it.
func (h *house) add(name, role string) {
	h.Helper()
	if _, err := h.roster.Add(h.Context(), muster.Member{Name: muster.Name(name), Role: role, Prompt: "Help.",
		StartedBy: muster.User}); err != nil {
		h.Fatal(err)
	}
}

func (h *house) create(subject string) muster.Task {
	h.Helper()
	return require.Value(h.board.Create(h.Context(), board.Draft{Subject: subject, CreatedBy: muster.User}))(h)
}

func (h *house) shutDownAlice(change func(*muster.Request)) muster.RequestID {
	h.Helper()
	q := muster.Request{Kind: muster.AskShutdown, From: muster.User, To: "alice", Reason: "enough"}
	if change != nil {
		change(&q)
	}
	return require.Value(h.requests.Ask(h.Context(), q))(h).ID
}

func (h *house) onTarget() string {
	h.Helper()
	if h.meadow != nil {
		h.meadow.mu.Lock()
		defer h.meadow.mu.Unlock()
		return names(slices.Sorted(maps.Keys(h.meadow.target)))
	}
	return names(strings.Fields(h.git("ls-tree", "-r", "--name-only", "muster/demo")))
}

func names(files []string) string {
	return strings.Join(slices.DeleteFunc(files, func(f string) bool { return f == "README" }), " ")
}

func (h *house) landings() int {
	h.Helper()
	if h.meadow != nil {
		return len(h.meadow.subjects())
	}
	return len(strings.Fields(h.git("rev-list", "--branches=muster/dem[o]", "--not", "main")))
}

func (h *house) turns(name muster.Name) int { return h.count(is(journal.TurnStarted, name)) }

func is(kind string, who muster.Name) func(muster.Event) bool {
	return func(e muster.Event) bool { return e.Kind == kind && (who == "" || e.Member == who) }
}

func of(kind string, id muster.TaskID) func(muster.Event) bool {
	return func(e muster.Event) bool { return e.Kind == kind && e.Task == id }
}

func claimed(id muster.TaskID) func(muster.Event) bool   { return of(journal.TaskClaimed, id) }
func completed(id muster.TaskID) func(muster.Event) bool { return of(journal.TaskCompleted, id) }

func uses(who muster.Name, tool string) func(muster.Event) bool {
	return func(e muster.Event) bool {
		return e.Kind == journal.ToolStarted && e.Member == who && e.Text("tool") == tool
	}
}

// shell is a plain launcher that lives in the bubble.
type shell struct{}

func (*shell) Close() error { return nil }

func (*shell) Start(ctx context.Context, s proc.Spec) (proc.Process, error) {
	c := exec.CommandContext(ctx, s.Argv[0], s.Argv[1:]...)
	c.Dir, c.Env = s.Dir, s.Env
	c.WaitDelay = time.Millisecond // what it leaves behind may hold the pipe
	out := s.Out
	if out == nil {
		out = io.Discard
	}
	p := &process{cmd: c, ctx: ctx, out: out}
	c.Stdout, c.Stderr = &p.buf, &p.buf
	return p, c.Start()
}

type process struct {
	cmd  *exec.Cmd
	ctx  context.Context
	out  io.Writer
	buf  bytes.Buffer
	once sync.Once
	err  error
}

func (p *process) Wait() (int, error) {
	p.once.Do(func() {
		var exit *exec.ExitError
		if err := p.cmd.Wait(); err != nil && !errors.As(err, &exit) {
			p.err = err
		}
		if p.ctx.Err() != nil {
			p.err = context.Cause(p.ctx)
		}
		_, _ = p.out.Write(p.buf.Bytes())
	})
	return p.cmd.ProcessState.ExitCode(), p.err
}

func (p *process) Kill() error { return p.cmd.Process.Kill() }
func (p *process) PID() int    { return p.cmd.Process.Pid }

// member is the model of one member: what it says at its nth turn of this process, from 0.
type member func(ctx context.Context, n int, r llm.Request) (llm.Reply, error)

// cast is a model made of functions, by member. Those that have none say a word.
type cast map[string]member

func (c cast) model() *castModel { return &castModel{cast: c, n: map[string]int{}} }

type castModel struct {
	cast cast
	mu   sync.Mutex
	n    map[string]int
}

func (m *castModel) Reply(ctx context.Context, r llm.Request, _ func(llm.Delta)) (llm.Reply, error) {
	who, _, _ := strings.Cut(r.CacheKey, "@")
	m.mu.Lock()
	n := m.n[who]
	m.n[who]++
	m.mu.Unlock()
	if f := m.cast[who]; f != nil {
		return f(ctx, n, r)
	}
	return says("Nothing.")
}

func (h *house) reads(words string) member {
	h.Helper()
	s := h.scripted(words)
	return func(ctx context.Context, _ int, r llm.Request) (llm.Reply, error) {
		return s.Reply(ctx, r, func(llm.Delta) {})
	}
}

func hangs(ctx context.Context, _ int, _ llm.Request) (llm.Reply, error) {
	<-ctx.Done()
	return llm.Reply{}, context.Cause(ctx)
}

func says(text string) (llm.Reply, error) {
	return llm.Reply{Stop: llm.StopEnd, Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{llm.Text{Text: text}}}}, nil
}

func calls(id, tool string, input any) (llm.Reply, error) {
	data, err := json.Marshal(input)
	return llm.Reply{Stop: llm.StopTools, Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{
		llm.Call{ID: id, Name: tool, Input: data}}}}, err
}

type in map[string]any

// asked keeps the requests of all members, by cache key.
type asked struct {
	llm.Model
	mu  sync.Mutex
	all map[string][]llm.Request
	on  func(llm.Request) // if not nil, called for each
}

func (q *asked) Reply(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	q.mu.Lock()
	if q.all == nil {
		q.all = map[string][]llm.Request{}
	}
	q.all[r.CacheKey] = append(q.all[r.CacheKey], r)
	q.mu.Unlock()
	if q.on != nil {
		q.on(r)
	}
	return q.Model.Reply(ctx, r, emit)
}

func (q *asked) of(name string) []llm.Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.all[name+"@demo"]
}

func jsonInto(data []byte, v any) error { return json.Unmarshal(data, v) }

func (h *house) record(change func(*muster.Run)) {
	h.Helper()
	table := h.store.Table(muster.TableTeam)
	run := muster.Run{Team: "demo", Goal: "another goal", Target: "muster/demo", StartedAt: muster.UnixTime(time.Now())}
	doc, err := table.Get(h.Context(), "run")
	if err == nil {
		err = jsonInto(doc.Data, &run)
	}
	if err != nil && !errors.Is(err, muster.ErrNotFound) {
		h.Fatal(err)
	}
	change(&run)
	data, err := muster.Encode(run)
	if err == nil {
		_, err = table.Put(h.Context(), "run", data, doc.Rev)
	}
	require.NoError(h, err)
}

// edit changes a document as a program does that knows only the files. f reports whether there is something to change.
func edit(ctx context.Context, s muster.Store, table, key string, f func(doc args) bool) error {
	for {
		d, err := s.Table(table).Get(ctx, key)
		var doc args
		if err == nil {
			err = jsonInto(d.Data, &doc)
		}
		if err != nil || !f(doc) {
			return err
		}
		if d.Data, err = json.Marshal(doc); err != nil {
			return err
		}
		if _, err = s.Table(table).Put(ctx, key, d.Data, d.Rev); !errors.Is(err, muster.ErrStale) {
			return err
		}
	}
}

func shift(doc args, by float64, fields ...string) (did bool) {
	for _, f := range fields {
		if at, ok := doc[f].(float64); ok && at > 0 {
			doc[f], did = at+by, true
		}
	}
	return did
}

func (h *house) recorded() (run muster.Run) {
	h.Helper()
	doc, err := h.store.Table(muster.TableTeam).Get(h.Context(), "run")
	if err == nil {
		err = jsonInto(doc.Data, &run)
	}
	require.NoError(h, err)
	return run
}

// refusing is a store that calls refuse before each write of a table's document.
func refusing(s muster.Store, table string, refuse func(data []byte) error) tapped.Store {
	return tapped.Store{Store: s, Before: func(_ context.Context, op, key string, data []byte) error {
		if op == "put" && strings.HasPrefix(key, table+"/") {
			return refuse(data)
		}
		return nil
	}}
}
