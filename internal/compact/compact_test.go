package compact

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster/llm"
)

// say is a text.
func say(text string) llm.Part { return llm.Text{Text: text} }

// round is a reply that calls tools, and the message with their results. A call is "name input=result".
func round(h *llm.History, calls ...string) {
	var parts []llm.Part
	for i, c := range calls {
		head, _, _ := strings.Cut(c, "=")
		name, input, _ := strings.Cut(head, " ")
		parts = append(parts, llm.Call{ID: fmt.Sprintf("c%d-%d", h.Len(), i), Name: name, Input: json.RawMessage(input)})
	}
	n := h.Len()
	h.Reply(parts...)
	for i, c := range calls {
		_, result, _ := strings.Cut(c, "=")
		h.Answer(llm.Result{ID: fmt.Sprintf("c%d-%d", n, i), Parts: llm.Parts{say(result)}})
	}
}

// results are the texts of all results, in order.
func results(messages []llm.Message) (all []string) {
	for _, m := range messages {
		for _, p := range m.Parts {
			if r, ok := p.(llm.Result); ok {
				all = append(all, r.Text())
			}
		}
	}
	return all
}

func TestTextTokens(t *testing.T) {
	for text, want := range map[string]int{"": 0, "four": 1, "fives": 2, "会话压缩": 4, "Привет": 3, "naïve": 2, "日本語 abc": 4,
		"한국어": 3, "สวัสดี": 6, "🙂": 1, "\xff\xfe": 2} {
		if got := TextTokens(text); got != want {
			t.Errorf("%q has %d tokens, want %d", text, got, want)
		}
	}
}

func TestEstimateCountsEachPart(t *testing.T) {
	whole := llm.Message{Role: llm.User, Parts: llm.Parts{
		llm.Result{ID: "x", Parts: llm.Parts{say(strings.Repeat("a", 400)), llm.Image{Data: make([]byte, 1<<20)}}},
		say(strings.Repeat("b", 40))}}
	if got, want := Estimate([]llm.Message{whole}), messageTokens+callTokens+100+imageTokens+10; got != want {
		t.Errorf("a result: %d, want %d", got, want)
	}
	said := llm.Message{Role: llm.Assistant, Parts: llm.Parts{llm.Thinking{Text: "hm", Opaque: []byte(strings.Repeat("x", 80))},
		llm.Call{Name: "bash", Input: json.RawMessage(`{"command":"ls -la /"}`)}}}
	if got, want := Estimate([]llm.Message{said}), messageTokens+20+callTokens+1+6; got != want {
		t.Errorf("a reply: %d, want %d", got, want)
	}
	specs := []llm.Spec{{Name: "bash", Description: "runs it", Schema: json.RawMessage(`{"type":"object"}`)}}
	if got, want := PrefixTokens([]string{"You are."}, specs), 2+callTokens+1+2+5; got != want {
		t.Errorf("a prefix: %d, want %d", got, want)
	}
}

// The provider's count is right; what came after it is estimated, and what was left out is taken off in proportion.
func TestGauge(t *testing.T) {
	var g Gauge
	if g.Tokens(1000) != 1000 {
		t.Error("nothing is known yet")
	}
	g.Count(1500, 1000)
	for estimated, want := range map[int]int{1000: 1500, 1200: 1700, 500: 750, 0: 0} {
		if got := g.Tokens(estimated); got != want {
			t.Errorf("%d are %d, want %d", estimated, got, want)
		}
	}
	g.Count(100, 1000) // a server that has cut the request, or counts only what is new
	g.Count(0, 0)
	if g.Tokens(1000) != 1500 {
		t.Error("a count that is far off counts")
	}
}

func TestBudget(t *testing.T) {
	for _, window := range []int{8_000, 20_000, 32_000, 128_000, 200_000, 1_000_000} {
		for harder := range 3 {
			b := NewBudget(window, 0, 4000, harder)
			if b.Limit > window*4/5 || 4000+b.Kept+b.Opening > b.Limit || b.Summary > b.Opening || b.Step <= 0 || b.Kept <= 0 ||
				b.ClearFrom > b.Limit || b.Results <= 0 || b.Results+b.Step > b.Limit-min(4000, window/4) {
				t.Errorf("%d, %d: %+v", window, harder, b)
			}
		}
	}
	for _, c := range []struct{ window, clearFrom, step, results, limit, words int }{
		{1_000_000, 100_000, 125_000, 40_000, 800_000, 2400}, {200_000, 100_000, 25_000, 40_000, 160_000, 2400},
		{128_000, 64_000, 16_000, 32_000, 102_400, 2400}, {40_000, 20_000, 5000, 10_000, 24_000, 600}, {32_000, 16_000, 3800, 7600, 19_200, 600},
	} {
		b := NewBudget(c.window, 0, 4000, 0)
		if b.ClearFrom != c.clearFrom || b.Step != c.step || b.Results != c.results || b.Limit != c.limit ||
			int(float64(b.Summary)*WordsPerToken) > c.words {
			t.Errorf("%+v: %+v", c, b)
		}
	}
	if b := NewBudget(200_000, 50_000, 4000, 0); b.Limit != 140_000 {
		t.Errorf("a reply of 50,000 tokens does not fit behind %d", b.Limit)
	}
	if b := NewBudget(20_000, 20_000, 4000, 0); b.Limit != 10_000 {
		t.Errorf("a reply as large as the window leaves %d", b.Limit)
	}
}

// What is old becomes a line; the newest results, those that last, and the newest read of a file that is edited stay.
func TestClear(t *testing.T) {
	long := strings.Repeat("line\n", 200)
	rules := Rules{Kept: 500, Tools: []llm.Spec{{Name: "read", ReadOnly: true}, {Name: "load", Lasting: true}, {Name: "bash"}},
		Files: func(c llm.Call) (reads, writes []string) {
			switch file := []string{strings.Trim(string(c.Input), `"`)}; c.Name {
			case "read":
				return file, nil
			case "edit":
				return nil, file
			}
			return nil, nil
		}}
	h := llm.NewHistory(nil)
	h.Say(say("go"))
	round(h, `read "a"=1`+long, `load "x"=2`+long, `bash "make"=3`+long)
	round(h, `read "b"=4`+long, `read "b"=5`+long, `bash "ls"=short`)
	round(h, `edit "b"=6`+long)
	round(h, `read "c"=7`+long)
	round(h, `read "c"=8`+long, `read "d"=9`+long, `read "e"=10`+long)
	before := h.Messages()
	changes, saved := rules.Clear(before)
	after := Apply(before, changes)
	want := []string{"[1001 bytes cleared: call it again if needed]", "2" + long,
		"[1001 bytes cleared: it was done; repeat it only for its output]",
		"[1001 bytes cleared: call it again if needed]", "5" + long, "short",
		"[1001 bytes cleared: it was done; repeat it only for its output]",
		"[1001 bytes cleared: call it again if needed]", "8" + long, "9" + long, "10" + long}
	if got := results(after); !slices.Equal(got, want) {
		t.Errorf("it leaves %.60q", got)
	}
	if got := Estimate(before) - Estimate(after); got != saved {
		t.Errorf("it wins %d tokens, and says %d", got, saved)
	}
	if again, saved := rules.Clear(after); len(again) > 0 || saved != 0 {
		t.Errorf("once more it changes %v", again)
	}
	if !strings.HasPrefix(results(before)[0], "1line") {
		t.Error("the messages that it was given have changed")
	}
}

// The line tells what the model needs: of an error its first line, of a long output where all of it is.
func TestTheLineInPlaceOfAResult(t *testing.T) {
	h := llm.NewHistory(nil)
	h.Say(say("go"))
	h.Reply(llm.Call{ID: "1", Name: "bash"}, llm.Call{ID: "2", Name: "bash"}, llm.Call{ID: "3", Name: "look"})
	h.Answer(llm.Result{ID: "1", IsError: true, Parts: llm.Parts{say("no such file\n" + strings.Repeat("x", 900))}})
	h.Answer(llm.Result{ID: "2", Files: []string{"/out/1.txt"}, Parts: llm.Parts{say(strings.Repeat("x", 900))}})
	h.Answer(llm.Result{ID: "3", Parts: llm.Parts{llm.Image{Media: "image/png", Data: make([]byte, 5000)}}})
	round(h, "bash {}=ok")
	changes, _ := Rules{}.Clear(h.Messages())
	got := results(Apply(h.Messages(), changes))
	want := []string{"[913 bytes cleared: no such file]", "[900 bytes cleared: the whole is in /out/1.txt]",
		"[5000 bytes cleared: it was done; repeat it only for its output]", "ok"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if r := Apply(h.Messages(), changes)[2].Parts[0].(llm.Result); !r.IsError || r.ID != "1" {
		t.Errorf("the first result becomes %+v", r)
	}
}

// A long text in the input of an old call is cut, wherever it stands; the rest of the input stays, numbers included.
func TestOldInputsAreCut(t *testing.T) {
	text := strings.Repeat("é", 1000)
	h := llm.NewHistory(nil)
	h.Say(say("go"))
	round(h, `write {"path":"a","content":"`+text+`","edits":[{"old":"`+text+`","n":12345678901234567890}]}=done`)
	round(h, `write {"content":"`+text+`"}=done`)
	changes, saved := Rules{Kept: 1}.Clear(h.Messages())
	after := Apply(h.Messages(), changes)
	input := string(after[1].Calls()[0].Input)
	for _, want := range []string{`"path":"a"`, `"n":12345678901234567890`, "é [cleared: 1800 bytes more]"} {
		if !strings.Contains(input, want) {
			t.Errorf("%s is not in %.300s", want, input)
		}
	}
	if len(input) > 700 || saved < 800 || !strings.Contains(string(after[3].Calls()[0].Input), text) {
		t.Errorf("%d bytes are left, %d tokens are won", len(input), saved)
	}
}

// A change that fits nothing changes nothing.
func TestApplyLeavesOutWhatDoesNotFit(t *testing.T) {
	h := llm.NewHistory(nil)
	h.Say(say("go"))
	round(h, "look {}=text")
	for _, c := range []Change{{Message: -1}, {Message: 9}, {Message: 2, Part: 5}, {Message: 2}, {2, 0, llm.Parts{llm.Result{ID: "x"}}},
		{2, 0, llm.Parts{say("no")}}, {0, 0, llm.Parts{say("no")}}, {1, 0, llm.Parts{llm.Call{ID: "c1-0", Name: "other"}}}} {
		if got := Apply(h.Messages(), []Change{c}); !reflect.DeepEqual(got, h.Messages()) {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

func TestTail(t *testing.T) {
	h := llm.NewHistory(nil)
	h.Say(say("go"))
	for i := range 5 {
		round(h, fmt.Sprintf("look {}=%d", i))
	}
	h.Say(say("mail"))
	all := h.Messages()
	each := Estimate(all[1:3])
	for most, want := range map[int]int{0: 11, each * 5 / 2: 7, 1000: 1} {
		if tail, before := Tail(all, most); before != want || len(tail) != len(all)-before {
			t.Errorf("%d tokens: %d messages before %d", most, before, len(tail))
		}
	}
	h = llm.NewHistory(nil)
	h.Say(say("go"))
	h.Reply(llm.Thinking{Text: "hm"}, say("I look."), llm.Call{ID: "1", Name: "look", Input: json.RawMessage(`{"a":1}`)})
	h.Answer(llm.Result{ID: "1", Parts: llm.Parts{say(strings.Repeat("x", 100_000)), llm.Image{Data: []byte("y")}}})
	tail, before := Tail(h.Messages(), 1000)
	if n := Estimate(tail); before != 1 || len(tail) != 2 || n > 1000 || !strings.Contains(results(tail)[0], "cut here") {
		t.Errorf("of the only round are left %d messages with %d tokens, %d before", len(tail), n, before)
	}
	if tail, before := Tail(h.Messages(), 10); before != 3 || len(tail) != 0 {
		t.Errorf("in no room are %d messages, %d before", len(tail), before)
	}
}

func TestFit(t *testing.T) {
	long := strings.Repeat("long ", 2000)
	got := Fit([]string{"short", long, "task", long + long}, 1000)
	sum := 0
	for _, text := range got {
		sum += TextTokens(text)
	}
	if sum > 1100 || got[0] != "short" || got[2] != "task" {
		t.Errorf("%d tokens are left: %q, %q", sum, got[0], got[2])
	}
	if got := Fit([]string{"a", "b"}, 100); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("what fits becomes %q", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		most := rapid.IntRange(0, 50).Draw(t, "most")
		if got := Shorten(text, most); got != text && TextTokens(got) > max(most, 20) {
			t.Fatalf("%d tokens of at most %d: %q", TextTokens(got), most, got)
		}
	})
}
