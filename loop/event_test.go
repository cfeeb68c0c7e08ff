package loop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"muster/llm"
)

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
	if _, err := a.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
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
	if err := m.Append(t.Context(), calling("w")); err != nil {
		t.Fatal(err)
	}
	if err := m.Replace(t.Context(), nil); err == nil {
		t.Error("the result of an open call has nowhere to go")
	}
	wantOutline(t, m, "u: go", "a: w()")
}
