package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster/internal/testing/require"
	"muster/llm"
)

// lines is a model that says one reply after the other, chosen by how many it has said.
type lines []llm.Reply

func (l lines) Reply(_ context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	n := 0
	for _, m := range r.Messages {
		if m.Role == llm.Assistant {
			n++
		}
	}
	if n >= len(l) {
		return llm.Reply{}, llm.Errorf(llm.BadRequest, "asked once more than expected")
	}
	emit(llm.Delta{Text: l[n].Message.Text()})
	return l[n], nil
}

func says(text string) llm.Reply {
	return llm.Reply{Stop: llm.StopEnd, Message: llm.Message{Role: llm.Assistant,
		Parts: []llm.Part{llm.Text{Text: text}}}}
}

// calling is a reply with calls of these tools; their ids are c1, c2, ...
func calling(names ...string) llm.Reply {
	r := llm.Reply{Stop: llm.StopTools, Message: llm.Message{Role: llm.Assistant}}
	for i, n := range names {
		r.Message.Parts = append(r.Message.Parts,
			llm.Call{ID: fmt.Sprintf("c%d", i+1), Name: n, Input: json.RawMessage(`{}`)})
	}
	return r
}

type fakeTool struct {
	name string
	read bool
	run  func(ctx context.Context, c llm.Call, progress func(string)) (llm.Result, error)
}

func (f fakeTool) Spec() llm.Spec { return llm.Spec{Name: f.name, ReadOnly: f.read} }
func (f fakeTool) Run(ctx context.Context, c llm.Call, p func(string)) (llm.Result, error) {
	return f.run(ctx, c, p)
}

func fine(text string) llm.Result { return llm.Result{Parts: []llm.Part{llm.Text{Text: text}}} }

// echo answers with its call's id.
func echo(name string, read bool) fakeTool {
	return fakeTool{name, read,
		func(_ context.Context, c llm.Call, _ func(string)) (llm.Result, error) { return fine(c.ID), nil }}
}

// sleeper takes a second.
func sleeper(name string, read bool) fakeTool {
	return fakeTool{name, read, func(ctx context.Context, c llm.Call, _ func(string)) (llm.Result, error) {
		select {
		case <-time.After(time.Second):
			return fine(c.ID), nil
		case <-ctx.Done():
			return llm.Result{}, context.Cause(ctx)
		}
	}}
}

// start makes an agent that was told to go.
func start(model llm.Model, tools ...llm.Tool) (Agent, *Memory) {
	m := NewMemory(llm.Request{System: []string{"sys"}})
	m.Say(llm.Text{Text: "go"})
	return Agent{Model: model, Tools: tools, Conversation: m}, m
}

// outline is a conversation in short: u:, a:, calls as name(), results as id=text.
func outline(msgs []llm.Message) string {
	var out []string
	for _, m := range msgs {
		var parts []string
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Text:
				parts = append(parts, p.Text)
			case llm.Call:
				parts = append(parts, p.Name+"()")
			case llm.Result:
				text := p.ID + "=" + p.Text()
				if p.IsError {
					text = "!" + text
				}
				parts = append(parts, text)
			}
		}
		out = append(out, string(m.Role[:1])+": "+strings.Join(parts, ", "))
	}
	return strings.Join(out, "\n")
}

func wantOutline(t *testing.T, m *Memory, want ...string) {
	t.Helper()
	if d := cmp.Diff(strings.Join(want, "\n"), outline(m.Messages())); d != "" {
		t.Error(d)
	}
}

func TestAsksRunsAnswersUntilItStops(t *testing.T) {
	a, m := start(lines{calling("read", "write", "nothing"), calling("bad"), says("done")},
		echo("read", true), echo("write", false),
		fakeTool{"bad", false, func(_ context.Context, _ llm.Call, p func(string)) (llm.Result, error) {
			p("trying")
			return llm.ErrorResult("no such file"), nil
		}})
	last, err := a.Run(t.Context())
	if err != nil || last.Stop != llm.StopEnd || last.Message.Text() != "done" {
		t.Fatal(last, err)
	}
	wantOutline(t, m, "u: go", "a: read(), write(), nothing()", `u: c1=c1, c2=c2, !c3=There is no tool "nothing". There are: write, read, bad.`,
		"a: bad()", "u: !c1=no such file", "a: done")
}

// TestAnUnknownToolIsAnsweredWithTheNearest: of many tools only five are named.
func TestAnUnknownToolIsAnsweredWithTheNearest(t *testing.T) {
	var tools []llm.Tool
	for _, name := range []string{"bash", "read_file", "write_file", "edit_file", "glob", "grep", "todo", "wait"} {
		tools = append(tools, echo(name, true))
	}
	a, m := start(lines{calling("codebase_search"), says("done")}, tools...)
	if _, err := a.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantOutline(t, m, "u: go", "a: codebase_search()", `u: !c1=There is no tool "codebase_search". There are: grep, glob, `+
		`bash, write_file, todo and 3 more.`, "a: done")
}

func TestNeighboursThatReadRunSideBySide(t *testing.T) {
	for _, c := range []struct {
		calls    []string
		parallel int
		want     time.Duration
	}{
		{[]string{"r", "r", "r", "r"}, 8, time.Second},
		{[]string{"r", "r", "r", "r"}, 2, 2 * time.Second},
		{[]string{"r", "r"}, 0, 2 * time.Second},
		{[]string{"r", "r", "w", "r", "r"}, 8, 3 * time.Second},
		{[]string{"w", "w"}, 8, 2 * time.Second},
		{[]string{"r", "none", "r"}, 8, 2 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			a, m := start(lines{calling(c.calls...), says("done")}, sleeper("r", true), sleeper("w", false))
			a.Parallel = c.parallel
			begun := time.Now()
			require.Value(a.Run(t.Context()))(t)
			if took := time.Since(begun); took != c.want {
				t.Errorf("%v took %v, want %v", c.calls, took, c.want)
			}
			var ids []string
			for _, p := range m.Messages()[2].Parts {
				ids = append(ids, p.(llm.Result).ID)
			}
			if !slices.IsSorted(ids) || len(ids) != len(c.calls) {
				t.Errorf("%v answered as %v", c.calls, ids)
			}
		})
	}
}

// halfReader is a tool of which the first and the third call only read.
type halfReader struct{ fakeTool }

func (h halfReader) Spec() llm.Spec {
	return llm.Spec{Name: h.name, Reads: func(input json.RawMessage) bool { return string(input) == `{"read":true}` }}
}

// Whether a call only reads may depend on its input.
func TestCallsOfOneToolThatReadRunSideBySide(t *testing.T) {
	for inputs, want := range map[string]time.Duration{"rrr": time.Second, "rrw": 2 * time.Second, "rwr": 3 * time.Second,
		"www": 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			reply := calling("h", "h", "h")
			for i, kind := range inputs {
				call := reply.Message.Parts[i].(llm.Call)
				call.Input = json.RawMessage(fmt.Sprintf(`{"read":%v}`, kind == 'r'))
				reply.Message.Parts[i] = call
			}
			a, _ := start(lines{reply, says("done")}, halfReader{sleeper("h", false)})
			a.Parallel = 8
			begun := time.Now()
			require.Value(a.Run(t.Context()))(t)
			if took := time.Since(begun); took != want {
				t.Errorf("%s took %v, want %v", inputs, took, want)
			}
		})
	}
}

func TestCancelledCallsAreAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("claim revoked")
		a, m := start(lines{calling("w", "w", "r", "w")}, sleeper("w", false), sleeper("r", true))
		a.Conversation = deaf{Memory: m} // its Answer minds the context
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			time.Sleep(1500 * time.Millisecond)
			cancel(why)
		}()
		if _, err := a.Run(ctx); !errors.Is(err, why) {
			t.Errorf("got %v", err)
		}
		wantOutline(t, m, "u: go", "a: w(), w(), r(), w()",
			"u: c1=c1, !c2=Interrupted: claim revoked. The outcome is unknown: check first., "+
				"!c3=Not started: claim revoked., !c4=Not started: claim revoked.")
	})
}

func TestAnErrorEndsTheRunAndAnotherGoesOn(t *testing.T) {
	broken := errors.New("store broken")
	failing := true
	tool := fakeTool{"w", false, func(_ context.Context, c llm.Call, _ func(string)) (llm.Result, error) {
		if failing && c.ID == "c2" {
			return llm.Result{}, broken
		}
		return fine(c.ID), nil
	}}
	a, m := start(lines{calling("w", "w", "w"), calling("w"), says("done")}, tool)
	if _, err := a.Run(t.Context()); !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
	failing = false
	if r, err := a.Run(t.Context()); err != nil || r.Stop != llm.StopEnd {
		t.Fatal(r, err)
	}
	wantOutline(t, m, "u: go", "a: w(), w(), w()",
		"u: c1=c1, !c2=Interrupted: store broken. The outcome is unknown: check first., !c3=Not started: store broken.",
		"a: w()", "u: c1=c1", "a: done")
}

// deaf is a conversation that cannot keep something.
type deaf struct {
	*Memory
	request, reply, result error
}

func (d deaf) Request(ctx context.Context) (llm.Request, error) {
	if d.request != nil {
		return llm.Request{}, d.request
	}
	return d.Memory.Request(ctx)
}

func (d deaf) Append(ctx context.Context, r llm.Reply) error {
	if d.reply != nil {
		return d.reply
	}
	return d.Memory.Append(ctx, r)
}

func (d deaf) Answer(ctx context.Context, r llm.Result) error {
	if d.result != nil {
		return d.result
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return d.Memory.Answer(ctx, r)
}

func TestWhatCannotBeKeptEndsTheRun(t *testing.T) {
	fenced := errors.New("another process writes this")
	for name, c := range map[string]struct {
		deaf
		ran int32
	}{
		"request": {deaf{request: fenced}, 0},
		"reply":   {deaf{reply: fenced}, 0},
		"result":  {deaf{result: fenced}, 1}, // no other call may have an effect that nobody records
	} {
		t.Run(name, func(t *testing.T) {
			var ran atomic.Int32
			a, m := start(lines{calling("w", "w", "w"), says("done")},
				fakeTool{"w", false, func(context.Context, llm.Call, func(string)) (llm.Result, error) {
					ran.Add(1)
					return fine(""), nil
				}})
			c.Memory = m
			a.Conversation = c.deaf
			if _, err := a.Run(t.Context()); !errors.Is(err, fenced) || ran.Load() != c.ran {
				t.Errorf("got %v after %d calls", err, ran.Load())
			}
		})
	}
}

func TestTheModelsErrorEndsTheRun(t *testing.T) {
	a, m := start(lines{})
	if _, err := a.Run(t.Context()); llm.KindOf(err) != llm.BadRequest {
		t.Errorf("got %v", err)
	}
	wantOutline(t, m, "u: go")
}

func TestPausedIsAskedAgainAtOnce(t *testing.T) {
	paused := says("let me")
	paused.Stop = llm.StopPaused
	n := 0
	model := modelFunc(func(r llm.Request) llm.Reply {
		if n++; n < 3 {
			return paused
		}
		return says("done")
	})
	a, m := start(model)
	var points []Boundary
	a.Boundary = func(_ context.Context, p Boundary) (bool, error) {
		points = append(points, p)
		return false, nil
	}
	if r, err := a.Run(t.Context()); err != nil || r.Stop != llm.StopEnd {
		t.Fatal(r, err)
	}
	wantOutline(t, m, "u: go", "a: let me, let me, done")
	if !slices.Equal(points, []Boundary{BeforeStop}) {
		t.Errorf("boundaries at %v", points)
	}
}

type modelFunc func(llm.Request) llm.Reply

func (f modelFunc) Reply(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Reply, error) {
	return f(r), nil
}

func TestTheBoundaryDecides(t *testing.T) {
	limit := errors.New("the turn limit")
	for _, c := range []struct {
		name   string
		answer func(*Memory, Boundary) (bool, error)
		stop   llm.Stop
		err    error
		want   []string
	}{
		{"a tool ended the work", func(_ *Memory, p Boundary) (bool, error) { return false, nil }, llm.StopTools, nil,
			[]string{"u: go", "a: w()", "u: c1=c1"}},
		{"mail between two rounds", func(m *Memory, p Boundary) (bool, error) {
			if p == BetweenRounds {
				m.Say(llm.Text{Text: "mail"})
			}
			return p == BetweenRounds, nil
		}, llm.StopEnd, nil, []string{"u: go", "a: w()", "u: c1=c1, mail", "a: one"}},
		{"mail at the stop", func(m *Memory, p Boundary) (bool, error) {
			came := p == BeforeStop && len(m.Messages()) < 5
			if came {
				m.Say(llm.Text{Text: "mail"})
			}
			return p == BetweenRounds || came, nil
		}, llm.StopEnd, nil, []string{"u: go", "a: w()", "u: c1=c1", "a: one", "u: mail", "a: two"}},
		{"a limit", func(*Memory, Boundary) (bool, error) { return true, limit }, llm.StopTools, limit,
			[]string{"u: go", "a: w()", "u: c1=c1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, m := start(lines{calling("w"), says("one"), says("two")}, echo("w", false))
			a.Boundary = func(_ context.Context, p Boundary) (bool, error) { return c.answer(m, p) }
			if last, err := a.Run(t.Context()); last.Stop != c.stop || !errors.Is(err, c.err) {
				t.Errorf("stopped at %q, %v", last.Stop, err)
			}
			wantOutline(t, m, c.want...)
		})
	}
}

func TestCallsThatNobodyWaitsForAreNotRun(t *testing.T) {
	cut := calling("w")
	cut.Stop = llm.StopMax
	a, m := start(lines{cut}, fakeTool{"w", false,
		func(context.Context, llm.Call, func(string)) (llm.Result, error) {
			t.Error("it ran")
			return fine(""), nil
		}})
	if r, err := a.Run(t.Context()); err != nil || r.Stop != llm.StopMax {
		t.Fatal(r, err)
	}
	wantOutline(t, m, "u: go")
}

// Whatever is called and fails: each call is answered once and in order, what changes something is alone, and nothing
// starts after an error.
func TestEveryCallIsAnsweredOnceAndWritersAreAlone(t *testing.T) {
	broken := errors.New("broken")
	rapid.Check(t, func(rt *rapid.T) {
		names := rapid.SliceOfN(rapid.SampledFrom([]string{"r", "w", "r-breaks", "w-breaks", "none"}), 1, 8).
			Draw(rt, "calls")
		parallel := rapid.IntRange(0, 3).Draw(rt, "parallel")
		var running, writing atomic.Int32
		var failed atomic.Bool
		tool := func(name string, read bool, err error) llm.Tool {
			return fakeTool{name, read, func(_ context.Context, c llm.Call, _ func(string)) (llm.Result, error) {
				if failed.Load() && !read {
					rt.Errorf("%s %s started after an error", name, c.ID)
				}
				n, w := running.Add(1), writing.Load()
				if !read {
					w = writing.Add(1)
				}
				if w > 0 && n > 1 || n > int32(max(parallel, 1)) {
					rt.Errorf("%s runs beside %d others", name, n-1)
				}
				if !read {
					writing.Add(-1)
				}
				running.Add(-1)
				failed.Store(failed.Load() || err != nil)
				return fine(c.ID), err
			}}
		}
		a, m := start(lines{calling(names...), says("done")},
			tool("r", true, nil), tool("w", false, nil), tool("r-breaks", true, broken),
			tool("w-breaks", false, broken))
		a.Parallel = parallel
		_, err := a.Run(t.Context())
		breaks := slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(n, "breaks") })
		if breaks != errors.Is(err, broken) || !breaks && err != nil {
			rt.Errorf("%v ended with %v", names, err)
		}
		results := m.Messages()[2].Parts
		for i, p := range results {
			if r := p.(llm.Result); r.ID != fmt.Sprintf("c%d", i+1) {
				rt.Errorf("result %d answers %s", i, r.ID)
			}
		}
		if len(results) != len(names) {
			rt.Errorf("%d calls, %d results", len(names), len(results))
		}
	})
}

// watch makes the agent's events readable.
func watch(a *Agent) func() string {
	var mu sync.Mutex
	var shown []string
	a.Emit = func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		switch e := e.(type) {
		case TurnStarted:
			shown = append(shown, fmt.Sprintf("turn %d", e.Turn))
		case TextDelta:
			shown = append(shown, fmt.Sprintf("text %d %s", e.Part, e.Text))
		case ThinkingDelta:
			shown = append(shown, fmt.Sprintf("thinking %d %s", e.Part, e.Text))
		case ReplyDiscarded:
			shown = append(shown, "discarded")
		case TurnEnded:
			shown = append(shown, fmt.Sprintf("turn %d ended: %s, %d tokens", e.Turn, e.Reply.Stop,
				e.Reply.Usage.Output))
		case ToolStarted:
			shown = append(shown, "started "+e.Call.ID)
		case ToolProgress:
			shown = append(shown, "progress "+e.Call.ID+" "+e.Text)
		case ToolEnded:
			shown = append(shown, fmt.Sprintf("ended %s %s %v", e.Call.ID, e.Result.Text(), e.Err))
		}
	}
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(shown, "\n")
	}
}

// streaming is a model that streams some deltas before each of its replies.
type streaming struct {
	lines
	deltas []llm.Delta
}

func (s streaming) Reply(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	for _, d := range s.deltas {
		emit(d)
	}
	return s.lines.Reply(ctx, r, func(llm.Delta) {})
}

func TestEventsTellWhatHappens(t *testing.T) {
	work := fakeTool{"work", false, func(_ context.Context, _ llm.Call, p func(string)) (llm.Result, error) {
		p("half of it")
		return fine("all of it"), nil
	}}
	first := calling("work", "nothing")
	first.Usage.Output = 7
	a, _ := start(streaming{lines{first, says("done")},
		[]llm.Delta{{}, {Text: "Hu"}, {Again: true}, {Think: "so"}, {Part: 1, Text: "Hello"}}}, work)
	shown := watch(&a)
	require.Value(a.Run(t.Context()))(t)
	stream := "\ntext 0 Hu\ndiscarded\nthinking 0 so\ntext 1 Hello\n"
	want := "turn 1" + stream + "turn 1 ended: tools, 7 tokens\n" +
		"started c1\nprogress c1 half of it\nended c1 all of it <nil>\n" +
		"ended c2 There is no tool \"nothing\". There are: work. <nil>\nturn 2" + stream + "turn 2 ended: end, 0 tokens"
	if got := shown(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestAnEventTellsOfAResultThatIsNotKept(t *testing.T) {
	full := errors.New("the disk is full")
	a, m := start(lines{calling("work", "work")}, echo("work", false))
	a.Conversation = deaf{Memory: m, result: full}
	shown := watch(&a)
	if _, err := a.Run(t.Context()); !errors.Is(err, full) {
		t.Fatal(err)
	}
	want := "turn 1\nturn 1 ended: tools, 0 tokens\nstarted c1\nended c1 c1 the disk is full\n" +
		"ended c2 Not started: the disk is full. the disk is full\nthe disk is full"
	if got := shown(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestMaxTurnsEndsTheRunAfterItsTools(t *testing.T) {
	paused := says("hm")
	paused.Stop = llm.StopPaused
	for _, c := range []struct {
		name string
		max  int
		said lines
		last string
		err  error
		want []string
	}{
		{"no limit", 0, lines{calling("w"), calling("w"), says("done")}, "done", nil,
			[]string{"u: go", "a: w()", "u: c1=c1", "a: w()", "u: c1=c1", "a: done"}},
		{"enough", 2, lines{calling("w"), says("done")}, "done", nil,
			[]string{"u: go", "a: w()", "u: c1=c1", "a: done"}},
		{"too few", 1, lines{calling("w")}, "", ErrMaxTurns, []string{"u: go", "a: w()", "u: c1=c1"}},
		{"one that only pauses", 1, lines{paused}, "hm", ErrMaxTurns, []string{"u: go", "a: hm"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, m := start(c.said, echo("w", false))
			a.MaxTurns = c.max
			if last, err := a.Run(t.Context()); !errors.Is(err, c.err) || last.Message.Text() != c.last {
				t.Errorf("ended with %q, %v", last.Message.Text(), err)
			}
			wantOutline(t, m, c.want...)
		})
	}
}

// compacting is a wrapper that replaces a history that grew too long.
type compacting struct {
	Replacer
	most int
}

func (c compacting) Request(ctx context.Context) (llm.Request, error) {
	r, err := c.Replacer.Request(ctx)
	if err != nil || len(r.Messages) <= c.most {
		return r, err
	}
	short := []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text{Text: "go (and w was called)"}}}}
	if err := c.Replace(ctx, short); err != nil {
		return llm.Request{}, err
	}
	return c.Replacer.Request(ctx)
}

func TestAWrapperReplacesTheHistoryWithinARun(t *testing.T) {
	n := 0
	model := modelFunc(func(r llm.Request) llm.Reply {
		if n++; n < 3 {
			return calling("w")
		}
		return says(fmt.Sprintf("done after %d", len(r.Messages)))
	})
	a, m := start(model, echo("w", false))
	a.Conversation = compacting{m, 3}
	if last, err := a.Run(t.Context()); err != nil || last.Message.Text() != "done after 1" {
		t.Fatal(last, err)
	}
	wantOutline(t, m, "u: go (and w was called)", "a: done after 1")
}

func TestMemoryReplacesNothingWhileCallsAreOpen(t *testing.T) {
	_, m := start(lines{})
	require.NoError(t, m.Append(t.Context(), calling("w")))
	if err := m.Replace(t.Context(), nil); err == nil {
		t.Error("the result of an open call has nowhere to go")
	}
	wantOutline(t, m, "u: go", "a: w()")
}
