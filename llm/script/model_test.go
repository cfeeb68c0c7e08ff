package script

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/internal/testing/require"
	"muster/llm"
)

func ask(ctx context.Context, m llm.Model, key string, texts ...string) (llm.Reply, []llm.Delta, error) {
	r := llm.Request{CacheKey: key}
	for _, text := range texts {
		r.Messages = append(r.Messages, llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text{Text: text}}})
	}
	var ds []llm.Delta
	reply, err := m.Reply(ctx, r, func(d llm.Delta) { ds = append(ds, d) })
	return reply, ds, err
}

func TestReplyAndWhatStreams(t *testing.T) {
	m := parsed(t, `
speakers:
  a: [{think: "first this and then that and then more", say: "One two three four five six.", stop: max_tokens}]
`).Model()
	r, ds, err := ask(t.Context(), m, "a@x", "go")
	require.NoError(t, err)
	wantMsg := llm.Message{Role: llm.Assistant, Parts: []llm.Part{
		llm.Thinking{Text: "first this and then that and then more", Provider: "script"},
		llm.Text{Text: "One two three four five six."}}}
	if d := cmp.Diff(wantMsg, r.Message); d != "" {
		t.Error(d)
	}
	if r.Stop != llm.StopMax || r.Model != "script" {
		t.Errorf("stop %q of %q", r.Stop, r.Model)
	}
	var think, text string
	last := 0
	for _, d := range ds {
		think, text = think+d.Think, text+d.Text
		if d.Part < last || d.Text != "" && d.Part != 1 {
			t.Errorf("part %d after %d", d.Part, last)
		}
		last = d.Part
	}
	if think != "first this and then that and then more" || text != "One two three four five six." || len(ds) < 5 {
		t.Errorf("streamed %q, %q in %d", think, text, len(ds))
	}
}

func TestUsageIsEstimatedFromTheConversation(t *testing.T) {
	k := begin(t, parsed(t, "speakers: {a: [{say: '12345678'}, {say: '1234'}]}"), "a@x")
	k.req.System = []string{strings.Repeat("s", 40)}
	k.tell(strings.Repeat("u", 20))
	k.req.Messages = append(k.req.Messages, llm.Message{Role: llm.User,
		Parts: []llm.Part{llm.Text{Text: strings.Repeat("v", 12)}}})
	r := require.Value(k.model.Reply(t.Context(), k.req, func(llm.Delta) {}))(t)
	if d := cmp.Diff(llm.Usage{Input: (8 + 12) / 4, CacheRead: (40 + 20) / 4, Output: 1}, r.Usage); d != "" {
		t.Error(d)
	}
}

func TestWaitTakesItsTime(t *testing.T) {
	s := parsed(t, "speakers: {a: [{say: 'one two three four five', wait: 2s}]}")
	for pace, want := range map[float64]time.Duration{1: 2 * time.Second, 0.5: time.Second, 0: 0} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			if _, _, err := ask(t.Context(), s.ModelAt(pace), "a@x", "go"); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start).Round(time.Microsecond); took != want {
				t.Errorf("took %v at pace %v, want %v", took, pace, want)
			}
		})
	}
}

func TestCancelEndsTheWait(t *testing.T) {
	s := parsed(t, "speakers: {a: [{say: x, wait: 1h}]}")
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			time.Sleep(time.Minute)
			cancel(why)
		}()
		start := time.Now()
		if _, _, err := ask(ctx, s.Model(), "a@x", "go"); !errors.Is(err, why) || time.Since(start) != time.Minute {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
		if _, ds, err := ask(ctx, s.Model(), "a@x", "go"); !errors.Is(err, why) || len(ds) > 0 {
			t.Errorf("asked when cancelled already: %v, streamed %v", err, ds)
		}
	})
}

func TestErrorsAreRehearsedSoManyTimes(t *testing.T) {
	m := parsed(t, `
speakers:
  coder: [{say: fine, error: {kind: overloaded, after: 3s, times: 2}}]
  cut: [{say: "one two three four", error: {kind: incomplete}}]
`).Model()
	for _, key := range []string{"coder@x", "coder@y"} { // each member by itself
		for range 2 {
			_, ds, err := ask(t.Context(), m, key, "go")
			e, ok := errors.AsType[*llm.Error](err)
			if !ok || e.Kind != llm.Overloaded || e.After != 3*time.Second || len(ds) > 0 {
				t.Fatalf("got %v, streamed %v", err, ds)
			}
		}
		if r, _, err := ask(t.Context(), m, key, "go"); err != nil || r.Message.Text() != "fine" {
			t.Errorf("the third time: %v, %v", r, err)
		}
	}
	if _, ds, err := ask(t.Context(), m, "cut@x", "go"); llm.KindOf(err) != llm.Incomplete || len(ds) < 2 {
		t.Errorf("an incomplete reply: %v, streamed %v", err, ds)
	}
	if r, _, err := ask(t.Context(), m, "cut@x", "go"); err != nil || r.Message.Text() != "one two three four" {
		t.Errorf("and again: %v, %v", r, err)
	}
}

func TestWhoSpeaksMustBeSaid(t *testing.T) {
	one := parsed(t, "speakers: {a: [{say: alone}]}").Model()
	if r, _, err := ask(t.Context(), one, "", "go"); err != nil || r.Message.Text() != "alone" {
		t.Errorf("got %v, %v", r, err)
	}
	two := parsed(t, "speakers: {a: [{say: x}], b: [{say: y}]}").Model()
	if _, _, err := ask(t.Context(), two, "", "go"); llm.KindOf(err) != llm.BadRequest {
		t.Errorf("got %v", err)
	}
}
