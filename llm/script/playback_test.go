package script

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster/internal/testing/require"
	"muster/llm"
)

// talk is a conversation with a scripted model, kept as the runtime keeps it.
type talk struct {
	t     testing.TB
	model llm.Model
	req   llm.Request
	open  []llm.Call
}

func parsed(t testing.TB, text string) *Script {
	t.Helper()
	return require.Value(Parse([]byte(strings.ReplaceAll(text, "\t", "  "))))(t)
}

func begin(t testing.TB, s *Script, key string) *talk {
	return &talk{t: t, model: s.Model(), req: llm.Request{CacheKey: key}}
}

// tell brings in what the open calls answered, or a text, and returns what the model says to it: text, then calls.
func (k *talk) tell(texts ...string) string {
	k.t.Helper()
	var parts []llm.Part
	for i, c := range k.open {
		text := ""
		if i < len(texts) {
			text = texts[i]
		}
		parts = append(parts, llm.Result{ID: c.ID, Parts: []llm.Part{llm.Text{Text: text}}})
	}
	for _, text := range texts[min(len(k.open), len(texts)):] {
		parts = append(parts, llm.Text{Text: text})
	}
	k.req.Messages = append(k.req.Messages, llm.Message{Role: llm.User, Parts: parts})
	r := require.Value(k.model.Reply(k.t.Context(), k.req, func(llm.Delta) {}))(k.t)
	k.req.Messages = append(k.req.Messages, r.Message)
	k.open = r.Message.Calls()
	return shown(r.Message)
}

func shown(m llm.Message) string {
	out := m.Text()
	for _, c := range m.Calls() {
		out += fmt.Sprintf("[%s %s]", c.Name, c.Input)
	}
	return out
}

func want(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("said %q, want %q", got, want)
	}
}

func TestSpeakerByNameElseRole(t *testing.T) {
	s := parsed(t, `
speakers:
  alice: [{say: I am alice}]
  coder: [{say: "a coder, ${me}"}]
  subagent: [{say: small}]
  bob/sub: [{say: smaller}]
`)
	coder := []string{"You are one of them.\n\nYour name is worker-1. Your role is coder. The team is demo."}
	for _, c := range []struct {
		key    string
		system []string
		first  string
		want   string
	}{
		{"alice@demo", coder, "go", "I am alice"},
		{"worker-1@demo", coder, "go", "a coder, worker-1"},
		{"worker-2@demo", nil,
			"<identity>You are 'worker-2', role: coder, team: demo.</identity>",
			"a coder, worker-2"},
		{"alice@demo/sub", coder, "go", "small"},
		{"bob@demo/sub", nil, "go", "smaller"},
		{"lead@demo", nil, "go", "Nothing more to say."},
	} {
		k := begin(t, s, c.key)
		k.req.System = c.system
		want(t, k.tell(c.first), c.want)
	}
}

func TestScenesInterruptAndComeBack(t *testing.T) {
	k := begin(t, parsed(t, `
speakers:
  alice:
    - {say: a1, do: [{bash: {command: x}}]}
    - {say: a2, do: [{bash: {command: x}}]}
    - say: a3
scenes:
  - cue: 'from (?P<who>\w+): hello'
    turns:
      - {say: "hello ${who}", do: [{bash: {command: y}}]}
      - {say: "bye ${who}", do: [{bash: {command: y}}]}
  - cue: fire
    who: [bob]
    turns: [{say: not for alice}]
`), "alice@demo")
	want(t, k.tell("go"), `a1[bash {"command":"x"}]`)
	want(t, k.tell("ok", "from bob: hello and fire"), `hello bob[bash {"command":"y"}]`)
	want(t, k.tell("ok", "from carol: hello"), `hello carol[bash {"command":"y"}]`) // within bob's
	want(t, k.tell("ok"), `bye carol[bash {"command":"y"}]`)
	want(t, k.tell("ok"), `bye bob[bash {"command":"y"}]`)
	want(t, k.tell("ok"), `a2[bash {"command":"x"}]`)
	want(t, k.tell("ok"), "a3")
}

// Whether mails come together or one by one must not matter.
func TestOneMessageEntersASceneOnceForEachThingItCaptures(t *testing.T) {
	k := begin(t, parsed(t, `
scenes:
  - cue: 'plan of (?P<who>\w+)'
    turns: [{say: "yes ${who}", do: [{bash: {command: x}}]}]
  - cue: urgent
    turns: [{say: at once, do: [{bash: {command: x}}]}]
`), "lead@demo")
	want(t, k.tell("plan of bob, urgent urgent, plan of carol, plan of bob"), `yes bob[bash {"command":"x"}]`)
	want(t, k.tell("ok"), `at once[bash {"command":"x"}]`)
	want(t, k.tell("ok"), `yes carol[bash {"command":"x"}]`)
	want(t, k.tell("ok"), "Nothing more to say.")
}

const landing = `
scenes:
  - cue: '(?m)^Task #\d+: counter$'
    turns:
      - do: [{complete_task: {task_id: "${task}", summary: done}}]
      - cue: 'conflict in (?P<file>\S+)'
        do: [{edit_file: {path: "${file}"}}]
      - cue: 'tests fail'
        do: [{bash: {command: fix}}]
      - cue: landed
        say: it has landed
  - cue: 'mail from bob'
    turns: [{say: later, do: [{bash: {command: x}}]}]
`

func TestBranches(t *testing.T) {
	s := parsed(t, landing)
	start := func() *talk {
		k := begin(t, s, "alice@demo")
		want(t, k.tell("<auto-claimed>\nTask #12: counter\n</auto-claimed>"),
			`[complete_task {"summary":"done","task_id":12}]`)
		return k
	}
	want(t, start().tell("Task #12 has landed."), "it has landed")
	want(t, start().tell("tests fail"), `[bash {"command":"fix"}]`)
	k := start()
	want(t, k.tell("conflict in a.go"), `[edit_file {"path":"a.go"}]`)
	want(t, k.tell("landed"), "it has landed")
	want(t, start().tell("what?"), "Nothing more to say.")

	// A mail that comes with the result is answered first, and the branch still sees the result.
	k = start()
	want(t, k.tell("conflict in a.go", "mail from bob"), `later[bash {"command":"x"}]`)
	want(t, k.tell("ok"), `[edit_file {"path":"a.go"}]`)
}

func TestUntil(t *testing.T) {
	k := begin(t, parsed(t, `
speakers:
  lead:
    - {do: [{wait: {}}], until: 'All done: (?P<n>\d+)'}
    - say: "${n} landed"
scenes:
  - cue: 'plan (?P<id>\w+)'
    turns: [{do: [{review: {id: "${id}"}}]}]
`), "lead@demo")
	want(t, k.tell("go. All done: 9"), "[wait {}]") // at least once
	want(t, k.tell("There is mail.", "plan a1"), `[review {"id":"a1"}]`)
	want(t, k.tell("ok"), "[wait {}]")
	want(t, k.tell("There is mail.", "plan a2. All done: 6"), `[review {"id":"a2"}]`)
	want(t, k.tell("ok"), "6 landed")
}

// The model keeps no state: every prefix of a conversation gives the reply that came then, in any order, from any
// model.
func TestPureFunctionOfTheRequest(t *testing.T) {
	inputs := []string{"ok", "conflict in a.go", "landed", "Task #7: counter", "mail from bob", "All done: 3",
		"plan of carol, plan of bob"}
	pieces := []string{"{say: s%d}", "{say: s%d, do: [{bash: {command: x}}]}", "{cue: landed, say: s%d}",
		"{cue: ok, say: s%d, do: [{wait: {}}]}",
		"{say: s%d, do: [{wait: {}}], until: All done}", "{cue: conflict, say: s%d, until: ok}"}
	cues := []string{"counter", `from (?P<who>\w+)`, `plan of (?P<who>\w+)`, "landed", "ok"}
	rapid.Check(t, func(rt *rapid.T) {
		n := 0
		turns := func() string {
			var b strings.Builder
			for range rapid.IntRange(1, 4).Draw(rt, "turns") {
				n++
				fmt.Fprintf(&b, "      - "+rapid.SampledFrom(pieces).Draw(rt, "turn")+"\n", n)
			}
			return b.String()
		}
		text := "speakers:\n  alice:\n" + turns() + "scenes:\n"
		for range rapid.IntRange(1, 3).Draw(rt, "scenes") {
			text += "  - cue: '" + rapid.SampledFrom(cues).Draw(rt, "cue") + "'\n    turns:\n" + turns()
		}
		s, err := Parse([]byte(text))
		if err != nil {
			rt.Fatal(err, text)
		}
		req := llm.Request{CacheKey: "alice@demo"}
		one := s.Model()
		var prefixes []llm.Request
		var replies []llm.Reply
		for range rapid.IntRange(1, 12).Draw(rt, "rounds") {
			in := llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text{Text: rapid.SampledFrom(inputs).Draw(rt,
				"input")}}}
			req.Messages = append(slices.Clip(req.Messages), in)
			r := require.Value(one.Reply(t.Context(), req, func(llm.Delta) {}))(rt)
			prefixes, replies = append(prefixes, req), append(replies, r)
			req.Messages = append(slices.Clip(req.Messages), r.Message)
		}
		for _, i := range rapid.Permutation(indices(len(prefixes))).Draw(rt, "order") {
			stored, err := json.Marshal(prefixes[i].Messages) // as a transcript gives it back
			require.NoError(rt, err)
			again := llm.Request{CacheKey: "alice@demo"}
			require.NoError(rt, json.Unmarshal(stored, &again.Messages))
			r := require.Value(s.Model().Reply(t.Context(), again, func(llm.Delta) {}))(rt)
			if d := cmp.Diff(replies[i], r); d != "" {
				rt.Fatalf("reply %d differs when asked again:\n%s\n%s", i, d, text)
			}
		}
	})
}

func indices(n int) (is []int) {
	for i := range n {
		is = append(is, i)
	}
	return is
}

func TestCallsOfDifferentPlacesHaveDifferentIDs(t *testing.T) {
	s := parsed(t, `
speakers:
  coder: [{do: [{bash: {}}, {bash: {}}]}, {do: [{bash: {}}]}]
`)
	seen := map[string]bool{}
	for _, key := range []string{"coder@a", "coder@b"} {
		k := begin(t, s, key)
		for range 2 {
			k.tell("same")
			for _, c := range k.open {
				if seen[c.ID] {
					t.Errorf("%s comes twice", c.ID)
				}
				seen[c.ID] = true
			}
		}
	}
	if len(seen) != 6 {
		t.Errorf("%d ids", len(seen))
	}
}
