package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster"
	"muster/internal/compact"
	"muster/llm"
	"muster/loop"
)

// scripted is a model that replies by what it is asked.
type scripted func(ctx context.Context, r llm.Request, n int) (llm.Reply, error)

func (f scripted) Reply(ctx context.Context, r llm.Request, _ func(llm.Delta)) (llm.Reply, error) {
	n := 0
	for _, m := range r.Messages {
		if m.Role == llm.Assistant {
			n++
		}
	}
	return f(ctx, r, n)
}

func says(text string) llm.Reply {
	r := llm.Reply{Stop: llm.StopEnd, Usage: llm.Usage{Input: 1}, Message: llm.Message{Role: llm.Assistant}}
	if text != "" {
		r.Message.Parts = []llm.Part{llm.Text{Text: text}}
	}
	return r
}

func callsGrep(text string) llm.Reply {
	r := says(text)
	r.Stop = llm.StopTools
	r.Message.Parts = append(r.Message.Parts, llm.Call{ID: "c", Name: "grep", Input: json.RawMessage("{}")})
	return r
}

// counted is a tool that counts its runs.
type counted struct {
	name string
	runs *int
	err  error
}

func (c counted) Spec() llm.Spec { return llm.Spec{Name: c.name} }
func (c counted) Run(context.Context, llm.Call, func(string)) (llm.Result, error) {
	*c.runs++
	return llm.Result{Parts: []llm.Part{llm.Text{Text: "found"}}}, c.err
}

func options(m scripted, runs *int) Options {
	return Options{Model: m, System: "you are one", CacheKey: "alice@demo/sub",
		Explore: func() []llm.Tool { return []llm.Tool{counted{"grep", runs, nil}} },
		Work:    func() []llm.Tool { return []llm.Tool{counted{"grep", runs, nil}, counted{"bash", runs, nil}} }}
}

const ask = `{"prompt":"where is it?","kind":"explore"}`

func TestSubagentWorksInAFreshConversationAndReports(t *testing.T) {
	runs, begun := 0, ""
	type key struct{}
	var first llm.Request
	o := options(func(ctx context.Context, r llm.Request, n int) (llm.Reply, error) {
		if n == 0 {
			first, begun = r, begun+fmt.Sprint(ctx.Value(key{}))
			return callsGrep("let me see"), nil
		}
		return says("It is in a.go:3."), nil
	}, &runs)
	o.MaxTokens = 77
	o.Begin = func(ctx context.Context, kind, prompt string) (context.Context, func(), error) {
		begun += kind + " " + prompt + " "
		return context.WithValue(ctx, key{}, "in it"), func() { begun += " ended" }, nil
	}
	var shown []string
	r, err := NewSubagent(o).Run(t.Context(), llm.Call{ID: "c1", Input: json.RawMessage(ask)},
		func(s string) { shown = append(shown, s) })
	if err != nil || r.IsError || r.Text() != "It is in a.go:3." || r.ID != "c1" {
		t.Errorf("%+v, %v", r, err)
	}
	want := llm.Request{System: []string{"you are one"}, Tools: []llm.Spec{{Name: "grep"}}, MaxTokens: 77,
		CacheKey: "alice@demo/sub", Purpose: "subagent",
		Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text{Text: "where is it?"}}}}}
	if d := cmp.Diff(want, first); d != "" {
		t.Error(d)
	}
	if runs != 1 || begun != "explore where is it? in it ended" || len(shown) != 1 || !strings.Contains(shown[0], "grep") {
		t.Errorf("%d runs, begun %q, shown %q", runs, begun, shown)
	}
}

func TestKindsHaveTheirTools(t *testing.T) {
	for kind, want := range map[string]int{Explore: 1, Work: 2} {
		var got int
		o := options(func(_ context.Context, r llm.Request, _ int) (llm.Reply, error) {
			got = len(r.Tools)
			return says("ok"), nil
		}, new(int))
		if r := run(t, NewSubagent(o), fmt.Sprintf(`{"prompt":"x","kind":%q}`, kind)); r.IsError || got != want {
			t.Errorf("%s: %d tools, %q", kind, got, r.Text())
		}
	}
	never := options(func(context.Context, llm.Request, int) (llm.Reply, error) {
		t.Error("it was asked")
		return says(""), nil
	}, new(int))
	for _, input := range []string{`{"prompt":"x","kind":"fly"}`, `{"prompt":" ","kind":"work"}`, `{"kind":"work"}`} {
		if r := run(t, NewSubagent(never), input); !r.IsError {
			t.Errorf("%s: %q", input, r.Text())
		}
	}
}

// Subagents that only read run side by side, however the kind is spelt, as many as the agent allows. One that may change
// files runs alone.
func TestExploringSubagentsRunSideBySide(t *testing.T) {
	for kinds, want := range map[string]time.Duration{"explore explore Explore EXPLORE": 2 * time.Second, "explore explore": time.Second,
		"explore work explore": 3 * time.Second, "work work": 2 * time.Second, "fly explore": time.Second} {
		synctest.Test(t, func(t *testing.T) {
			o := options(func(context.Context, llm.Request, int) (llm.Reply, error) {
				time.Sleep(time.Second)
				return says("found"), nil
			}, new(int))
			first := says("")
			first.Stop = llm.StopTools
			for i, kind := range strings.Fields(kinds) {
				first.Message.Parts = append(first.Message.Parts, llm.Call{ID: fmt.Sprint(i), Name: "subagent",
					Input: json.RawMessage(fmt.Sprintf(`{"task":"x","kind":%q}`, kind))})
			}
			talk := loop.NewMemory(llm.Request{})
			talk.Say(llm.Text{Text: "go"})
			begun := time.Now()
			_, err := loop.Agent{Tools: []llm.Tool{NewSubagent(o)}, Conversation: talk, Parallel: 3,
				Model: scripted(func(_ context.Context, _ llm.Request, n int) (llm.Reply, error) {
					return []llm.Reply{first, says("done")}[n], nil
				})}.Run(t.Context())
			if took := time.Since(begun); err != nil || took != want {
				t.Errorf("%s took %v, want %v; %v", kinds, took, want, err)
			}
		})
	}
}

// What a subagent is told of where it works comes first. A reason why it cannot work is told to its agent.
func TestSurroundingsOfASubagent(t *testing.T) {
	var heard string
	o := options(func(_ context.Context, r llm.Request, _ int) (llm.Reply, error) {
		heard = strings.ReplaceAll(r.Messages[0].Text(), "\n", "|") + "|" + r.Group()
		return says("ok"), nil
	}, new(int))
	about, broken := "You are here.", error(nil)
	o.Surroundings = func(context.Context) ([]string, error) { return []string{about, "Today."}, broken }
	o.CacheGroup = "demo/sub"
	if r := run(t, NewSubagent(o), ask); r.IsError || heard != "You are here.|Today.|where is it?|demo/sub/explore" {
		t.Errorf("it hears %q", heard)
	}
	broken = muster.Errorf(muster.Fenced, "the task was taken away")
	if r := run(t, NewSubagent(o), ask); !r.IsError || r.Text() != "the task was taken away" {
		t.Errorf("its agent reads %q", r.Text())
	}
	broken = errors.New("the store is broken")
	_, err := NewSubagent(o).Run(t.Context(), llm.Call{Input: json.RawMessage(ask)}, nil)
	if !errors.Is(err, broken) {
		t.Errorf("the turn ends with %v", err)
	}
}

// A subagent that has used its turns is asked once for a summary, and need not write one.
func TestTurnsUsedUpIsAskedOnceForASummary(t *testing.T) {
	for _, c := range []struct {
		turns, used int
		last        llm.Reply
	}{{3, 3, says("half of it")}, {3, 3, callsGrep("half of it")}, {0, 30, callsGrep("half of it")}} {
		runs, asked := 0, 0
		o := options(func(_ context.Context, r llm.Request, n int) (llm.Reply, error) {
			if asked++; n < c.used {
				return callsGrep("on"), nil
			}
			if text := r.Messages[len(r.Messages)-1].Text(); !strings.Contains(text, fmt.Sprintf("used your %d turns", c.used)) {
				t.Errorf("asked for its summary with %q", text)
			}
			return c.last, nil
		}, &runs)
		o.Turns = c.turns
		if r := run(t, NewSubagent(o), ask); r.IsError || r.Text() != "half of it" || runs != c.used || asked != c.used+1 {
			t.Errorf("%q after %d runs and %d turns", r.Text(), runs, asked)
		}
	}
}

func TestOtherEnds(t *testing.T) {
	refused, cut := says("I would rather not."), says("so far")
	refused.Stop, cut.Stop = llm.StopRefused, llm.StopMax
	for _, c := range []struct {
		reply  llm.Reply
		err    error
		failed bool
		want   string
	}{
		{refused, nil, true, "declined. I would rather not."},
		{cut, nil, false, "so far\n[cut at its length limit]"},
		{says(""), nil, true, "without a word"},
		{llm.Reply{}, llm.Errorf(llm.ContextFull, "full"), true, "grew too long"},
		{llm.Reply{}, llm.Errorf(llm.BadRequest, "no image here"), true, "no image here"},
	} {
		o := options(func(context.Context, llm.Request, int) (llm.Reply, error) { return c.reply, c.err }, new(int))
		if r := run(t, NewSubagent(o), ask); r.IsError != c.failed || !strings.Contains(r.Text(), c.want) {
			t.Errorf("%v %q, want %q", r.IsError, r.Text(), c.want)
		}
	}
}

func TestWhatTheRuntimeMustKnowIsAnError(t *testing.T) {
	call := llm.Call{ID: "c1", Input: json.RawMessage(ask)}
	o := options(func(context.Context, llm.Request, int) (llm.Reply, error) {
		return llm.Reply{}, llm.Errorf(llm.Spent, "the budget")
	}, new(int))
	if _, err := NewSubagent(o).Run(t.Context(), call, func(string) {}); llm.KindOf(err) != llm.Spent {
		t.Errorf("got %v", err)
	}

	broken := errors.New("store broken")
	o = options(func(context.Context, llm.Request, int) (llm.Reply, error) { return callsGrep(""), nil }, new(int))
	o.Explore = func() []llm.Tool { return []llm.Tool{counted{"grep", new(int), broken}} }
	if _, err := NewSubagent(o).Run(t.Context(), call, func(string) {}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}

	why := errors.New("claim revoked")
	ctx, cancel := context.WithCancelCause(t.Context())
	o = options(func(ctx context.Context, _ llm.Request, n int) (llm.Reply, error) {
		if n == 1 {
			cancel(why)
			return llm.Reply{}, context.Cause(ctx)
		}
		return callsGrep(""), nil
	}, new(int))
	if _, err := NewSubagent(o).Run(ctx, call, func(string) {}); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

// A subagent whose conversation no longer fits is asked for its report with the newest part of it.
func TestASubagentThatIsFullReports(t *testing.T) {
	full, asked := 0, 0
	o := options(func(_ context.Context, r llm.Request, n int) (llm.Reply, error) {
		if size := compact.Estimate(r.Messages); size > 200 {
			full = size
			return llm.Reply{}, llm.Errorf(llm.ContextFull, "too long")
		}
		last := r.Messages[len(r.Messages)-1].Parts.Text()
		if strings.Contains(last, "grown too long") {
			asked++
			if !strings.HasPrefix(r.Messages[0].Parts.Text(), "where is it?") {
				t.Errorf("it no longer knows what it was asked: %+v", r.Messages[0])
			}
			return says("Half of it."), nil
		}
		return callsGrep("on"), nil
	}, new(int))
	if r := run(t, NewSubagent(o), ask); r.IsError || r.Text() != "Half of it." || full == 0 || asked != 1 {
		t.Errorf("%q after %d tokens, asked %d times", r.Text(), full, asked)
	}
}

// A subagent that may not change files now does not start, and its member's model reads what to do first.
func TestTheModelReadsWhyASubagentMayNotWork(t *testing.T) {
	o := options(func(context.Context, llm.Request, int) (llm.Reply, error) { return says("I looked."), nil }, new(int))
	o.MayWork = func(context.Context) error {
		return muster.Errorf(muster.Invalid, "no plan is approved").WithHint("call submit_plan")
	}
	r := run(t, NewSubagent(o), `{"prompt":"x","kind":"work"}`)
	if !r.IsError || r.Text() != "no plan is approved: call submit_plan" {
		t.Errorf("work: it reads %q", r.Text())
	}
	if r := run(t, NewSubagent(o), ask); r.IsError || r.Text() != "I looked." {
		t.Errorf("explore: it reads %q", r.Text())
	}
}

// A subagent whose calls cannot be read three times for the same reason is stopped, and its caller reads why.
func TestMistakesOfASubagent(t *testing.T) {
	asked, runs := 0, 0
	o := options(func(context.Context, llm.Request, int) (llm.Reply, error) {
		asked++
		r := callsGrep("on")
		r.Message.Parts = append(r.Message.Parts, llm.Call{ID: "d", Name: "grep", Input: json.RawMessage("{}"), Malformed: `{"a": "`})
		return r, nil
	}, &runs)
	if r := run(t, NewSubagent(o), ask); !r.IsError || asked != 3 || !strings.Contains(r.Text(), "could not be read 3 times for the same reason") {
		t.Errorf("%q after %d turns", r.Text(), asked)
	}
}
