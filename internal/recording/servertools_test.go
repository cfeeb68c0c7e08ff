package recording

import (
	"testing"

	"muster/internal/testing/tier"
	"muster/llm"
)

// TestServerTools: in a replay the tools of servers are those of the recording, and answer what was recorded.
func TestServerTools(t *testing.T) {
	tier.All(t)
	spec := func(name string) llm.Spec { return llm.Spec{Name: name, Schema: []byte("{}")} }
	rec := &Recording{Prefixes: map[string]*Prefix{"a": {ID: "a", Tools: []llm.Spec{spec("bash"), spec("mcp__x__y"), spec("call_tool")}},
		"b": {ID: "b", Tools: []llm.Spec{spec("bash")}}},
		Calls: []*Call{{Member: "lead", Turn: 1, Prefix: "a"}, {Member: "bob", Turn: 1, Prefix: "b"},
			{Member: "lead", Turn: 2, Prefix: "a", Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{
				llm.Result{ID: "1", Parts: []llm.Part{llm.Text{Text: "said"}}}}}}}}}
	p := Play(rec, Options{})
	tools, isPlayed := p.ServerTools("lead")
	if !isPlayed || len(tools) != 2 || tools[0].Spec().Name != "mcp__x__y" || tools[1].Spec().Name != "call_tool" {
		t.Fatalf("the lead has %v", tools)
	}
	if r, err := tools[0].Run(t.Context(), llm.Call{ID: "1"}, nil); err != nil || r.IsError || r.Text() != "said" {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := tools[0].Run(t.Context(), llm.Call{ID: "2"}, nil); err != nil || !r.IsError {
		t.Errorf("a call that was not recorded: %+v, %v", r, err)
	}
	for _, other := range []string{"bob", "nobody"} {
		if tools, isPlayed := p.ServerTools("bob"); !isPlayed || len(tools) > 0 {
			t.Errorf("%s has %v", other, tools)
		}
	}
}

// TestWhatWasRemembered: the memories of before the run are nothing that a replay compares.
func TestWhatWasRemembered(t *testing.T) {
	tier.All(t)
	m := newMatcher("/old", "/new")
	was := "<environment>\nx\n</environment>\n<memories>\nIn /home/a:\n- one\n</memories>"
	for _, now := range []string{"<environment>\nx\n</environment>", was, "<environment>\nx\n</environment>\n<memories>\n- two\n- three\n</memories>"} {
		if d := m.compare(was, now); d != nil {
			t.Errorf("%q differs: %+v", now, d)
		}
	}
	if d := m.compare("Saved as a. The text that was there is kept in /x/a.1.md.", "Saved as a."); d != nil {
		t.Errorf("%+v", d)
	}
	if m.compare(was+" and more", was) == nil {
		t.Error("a difference behind the memories is not seen")
	}
}
