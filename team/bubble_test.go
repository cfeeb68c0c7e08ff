package team_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
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
	"muster/internal/transcript"
	"muster/journal"
	"muster/llm"
	"muster/llm/script"
	"muster/store/mem"
	"muster/team"
)

// house is a team in a bubble: a real repository and real git, state in memory, and a clock that runs only when nobody
// does anything. Goroutines that outlive the test fail it.
type house struct {
	*testing.T
	w     *world
	store *mem.Store
	other // as another process sees the state
}

// other is the planes of a team on a handle of its own.
type other struct {
	store    muster.Store
	journal  *journal.Journal
	board    *board.Board
	roster   *roster.Roster
	post     *mailbox.Mail
	requests *requests.Requests
}

func elsewhere(s muster.Store) other {
	o := other{store: s, journal: journal.New(s.Log())}
	o.board = board.New(s, o.journal)
	o.roster = roster.New(s, o.journal, "demo")
	o.post = mailbox.New(s, o.journal, o.roster.Known)
	o.requests = requests.New(s, o.post, o.journal)
	return o
}

// bubble runs f with a fresh house.
func bubble(t *testing.T, f func(h *house)) {
	t.Helper()
	w := newWorld(t)
	synctest.Test(t, func(t *testing.T) {
		store := mem.New()
		f(&house{T: t, w: w, store: store, other: elsewhere(store.Handle())})
	})
}

// running is a run under way.
type running struct {
	h    *house
	stop context.CancelCauseFunc
	done chan struct{}
	sum  team.Summary
	err  error
}

// open opens the team on a new handle, as a new process would.
func (h *house) open(m llm.Model, change func(*team.Config)) *team.Team {
	h.Helper()
	c := team.Config{Dir: h.w.root, Store: h.store.Handle(), Name: "demo", Teammates: 4,
		Model: func(string) (llm.Model, error) { return m, nil }}
	if change != nil {
		change(&c)
	}
	t, err := team.Open(h.Context(), c)
	if err != nil {
		h.Fatal(err)
	}
	t.Launch(func(context.Context) (proc.Launcher, error) { return &shell{}, nil })
	return t
}

func (h *house) scripted(words string) llm.Model {
	h.Helper()
	s, err := script.Parse([]byte(words))
	if err != nil {
		h.Fatal(err)
	}
	return s.Model()
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

// start starts a run.
func (h *house) start(words string, change func(*team.Config)) *running {
	h.Helper()
	t := h.open(h.scripted(words), change)
	return h.begin(func(ctx context.Context) (team.Summary, error) { return t.Run(ctx, "the goal", team.Start{}) })
}

// resume goes on in a new process.
func (h *house) resume(words string, change func(*team.Config)) *running {
	h.Helper()
	t := h.open(h.scripted(words), change)
	return h.begin(t.Resume)
}

// ends waits for the end, which must come with the code within the time on the bubble's clock.
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

// fails waits for the end, which must be an error.
func (r *running) fails() error {
	r.h.Helper()
	<-r.done
	if r.err == nil {
		r.h.Fatalf("the run ended with code %d (%s), want an error\n%s", r.sum.Code, r.sum.Text, r.h.tail())
	}
	return r.err
}

// interrupt is Ctrl-C.
func (r *running) interrupt() {
	r.h.Helper()
	r.stop(muster.CauseUser)
	if err := r.fails(); !errors.Is(err, muster.CauseUser) {
		r.h.Fatalf("interrupted: %v", err)
	}
}

// until waits for an event.
func (h *house) until(what string, fits func(muster.Event) bool) muster.Event {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), time.Hour)
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
		if err != nil {
			h.Fatal(err)
		}
		all = append(all, e.Event)
	}
	return all
}

// count is how many events fit.
func (h *house) count(fits func(muster.Event) bool) (n int) {
	for _, e := range h.events() {
		if fits(e) {
			n++
		}
	}
	return n
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
	t, err := h.board.Get(h.Context(), id)
	if err != nil {
		h.Fatal(err)
	}
	return t
}

func (h *house) member(name muster.Name) muster.Member {
	h.Helper()
	m, err := h.roster.Get(h.Context(), name)
	if err != nil {
		h.Fatal(err)
	}
	return m
}

// said is the whole conversation of a member, as text. Mail stands in it once, as its reader has it.
func (h *house) said(name muster.Name) string {
	var b strings.Builder
	for r, err := range h.store.Log().Read(h.Context(), muster.StreamTranscripts+string(name), 0) {
		if err != nil {
			h.Fatal(err)
		}
		text, _, _ := bytes.Cut(r.Data, []byte(`,"delivered":[`))
		b.Write(text)
		b.WriteByte('\n')
	}
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\"`, `"`).Replace(b.String())
}

// heard fails unless a member was told the text exactly so often.
func (h *house) heard(name muster.Name, text string, times int) {
	h.Helper()
	if n := strings.Count(h.said(name), text); n != times {
		h.Errorf("%s heard %q %d times, want %d\n%s", name, text, n, times, h.said(name))
	}
}

// waiting are the mails in a box.
func (h *house) waiting(name muster.Name) []muster.Message {
	h.Helper()
	msgs, _, _, err := h.post.Peek(h.Context(), name, 0, 1<<30)
	if err != nil {
		h.Fatal(err)
	}
	return msgs
}

// turns is how often a member's model was asked.
func (h *house) turns(name muster.Name) int {
	return h.count(func(e muster.Event) bool { return e.Kind == journal.TurnStarted && e.Member == name })
}

func is(kind string, who muster.Name) func(muster.Event) bool {
	return func(e muster.Event) bool { return e.Kind == kind && (who == "" || e.Member == who) }
}

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

// steps is a model made of functions, by member: what each says at its n-th turn of this process, from 0.
type steps struct {
	mu sync.Mutex
	n  map[string]int
	f  map[string]func(ctx context.Context, n int, r llm.Request) (llm.Reply, error)
}

func (s *steps) Reply(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	who, _, _ := strings.Cut(r.CacheKey, "@")
	s.mu.Lock()
	if s.n == nil {
		s.n = map[string]int{}
	}
	n := s.n[who]
	s.n[who]++
	f := s.f[who]
	s.mu.Unlock()
	if f == nil {
		return says("Nothing.")
	}
	return f(ctx, n, r)
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

// entries is a member's transcript.
func (h *house) entries(name muster.Name) (all []transcript.Entry) {
	for e, err := range transcript.Read(h.Context(), h.store.Log(), name, 0) {
		if err != nil {
			h.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}
