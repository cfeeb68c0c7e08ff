package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster"
	"muster/internal/testing/require"
	"muster/llm"
	"muster/tool"
)

type kept struct {
	Command    string   `json:"command"`
	Timeout    int      `json:"timeout,omitempty" jsonschema:"seconds"`
	Background bool     `json:"background,omitempty"`
	Items      []item   `json:"items,omitempty"`
	Tags       []string `json:"tags,omitempty"`
	Any        []any    `json:"any,omitempty" jsonschema:"ids, or \"x\":true"`
	Ratio      *float64 `json:"ratio,omitempty"`
	Glob       string   `json:"glob,omitempty" jsonschema:"-"`
}

type item struct {
	ID     uint8  `json:"id"`
	Status string `json:"status"`
}

func keeper(got *kept) llm.Tool {
	return tool.New("keep", "Keeps its input.", func(_ context.Context, in kept) (llm.Result, error) {
		*got = in
		return tool.Text("kept"), nil
	}, tool.Enum("items.status", "open", "done"))
}

func run(t *testing.T, tl llm.Tool, input string) llm.Result {
	t.Helper()
	r := require.Value(tl.Run(t.Context(), llm.Call{ID: "c1", Name: tl.Spec().Name, Input: json.RawMessage(input)}, nil))(t)
	if r.ID != "c1" {
		t.Errorf("the result answers %q, not the call", r.ID)
	}
	return r
}

func text(r llm.Result) string {
	var b strings.Builder
	for _, p := range r.Parts {
		if s, ok := p.(llm.Text); ok {
			b.WriteString(s.Text)
		}
	}
	return b.String()
}

func TestInput(t *testing.T) {
	half := 0.5
	for input, want := range map[string]kept{
		`{"command":"ls"}`:                                   {Command: "ls"},
		`{"command":"ls","timeout":5,"ratio":0.5}`:           {Command: "ls", Timeout: 5, Ratio: &half},
		`{"command":"ls","timeout":null}`:                    {Command: "ls"},
		`{"command":"","items":[]}`:                          {Items: []item{}},
		`{"command":"x","any":[1,"two",null]}`:               {Command: "x", Any: []any{1.0, "two", nil}},
		`{"items":[{"status":"done","id":3}],"command":"x"}`: {Command: "x", Items: []item{{3, "done"}}},

		`{"cmd":"ls"}`:                                               {Command: "ls"},
		`{"command":"ls","zzz":1}`:                                   {Command: "ls"},
		`{"command":"ls","include":5}`:                               {Command: "ls", Glob: "5"},
		`{"command":"ls","timeout":"5"}`:                             {Command: "ls", Timeout: 5},
		`{"command":"ls","background":1}`:                            {Command: "ls", Background: true},
		`{"Command":"ls","run_in_background":"false"}`:               {Command: "ls"},
		`{"command":["ls"]}`:                                         {Command: "ls"},
		`{"command":["bash","-lc","ls -l"]}`:                         {Command: "ls -l"},
		`{"command":["grep","-rn","it's$","."]}`:                     {Command: `grep -rn 'it'\''s$' .`},
		`{"command":["grep","-rn","def total","."]}`:                 {Command: `grep -rn 'def total' .`},
		`{"command":"ls","timeout_ms":1500}`:                         {Command: "ls", Timeout: 2},
		`{"command":["apply_patch","*** Begin Patch\n"]}`:            {Command: "apply_patch <<'EOF'\n*** Begin Patch\nEOF"},
		`{"command":"ls","tags":"a"}`:                                {Command: "ls", Tags: []string{"a"}},
		`{"command":"ls","tags":"['a', 'b',]"}`:                      {Command: "ls", Tags: []string{"a", "b"}},
		`{"command":"x","todos":{"id":"#1","status":"Done"}}`:        {Command: "x", Items: []item{{1, "done"}}},
		`{"command":"x","items":"[{\"id\":1,\"status\":\"done\"}]"}`: {Command: "x", Items: []item{{1, "done"}}},
		`{"input":"{\"command\":\"ls\"}"}`:                           {Command: "ls"},
		`{"command":"<a> & b","cmd":"<a> & b"}`:                      {Command: "<a> & b"},
		`{"command":"ls","dry_run":false,"cwd":"."}`:                 {Command: "ls"},
	} {
		var got kept
		if r := run(t, keeper(&got), input); r.IsError || !cmp.Equal(got, want) {
			t.Errorf("%s: %q %s", input, text(r), cmp.Diff(want, got))
		}
	}
}

func TestWhatAModelReadsOfWrongInput(t *testing.T) {
	const fields = " Fields: command (string), timeout (integer, optional), background (boolean, optional), " +
		"items (array of objects with id, status, optional), tags (array of string, optional), " +
		"any (array, optional), ratio (number, optional)."
	for input, want := range map[string]string{
		``: `keep: "command" is missing.` + fields,
		`{"bash":"ls"}`: `keep: "command" is missing; there is no field "bash" (did you mean ` +
			`"command"?).` + fields,
		`{"command":["cd x","ls"]}`:          `keep: "command" must be a string, got an array.` + fields,
		`{"command":["pwd","git status"]}`:   `keep: "command" must be a string, got an array.` + fields,
		`{"command":["ls","&&","pwd"]}`:      `keep: "command" must be a string, got an array.` + fields,
		`{"command":["ls","pwd;id"]}`:        `keep: "command" must be a string, got an array.` + fields,
		`{"command":["ls",1]}`:               `keep: "command" must be a string, got an array.` + fields,
		`{"command":"ls","timeout":0.5}`:     `keep: "timeout" must be an integer, got 0.5.` + fields,
		`["ls"]`:                             `keep: the input must be an object, got an array.` + fields,
		`{"command":`:                        `keep: the input is not valid JSON: it ends in the middle.` + fields,
		`{"command":"x","items":[{"id":1}]}`: `keep: "items[0].status" is missing.` + fields,
		`{"command":"x","items":[{"id":1,"status":"new","at":2}]}`: `keep: "items[0].status" must be one of open, ` +
			`done, got the string "new".` + fields,
		`{"command":"ls","timeout":"5s"}`:          `keep: "timeout" must be an integer, got the string "5s".` + fields,
		`{"command":"ls","timout":5}`:              `keep: there is no field "timout" (did you mean "timeout"?).` + fields,
		`{"command":"ls","dry_run":true}`:          `keep: there is no field "dry_run".` + fields,
		`{"command":"ls","cmd":"rm"}`:              `keep: "command" and "cmd" are the same field and differ.` + fields,
		`{"command":"ls","args":{"command":"rm"}}`: `keep: "command" is there twice.` + fields,
		`{"args":"{\"command\": \"rm"}`: `keep: "command" is missing; there is no field "args" (did you mean ` +
			`"command"?).` + fields,
		`{"command":"x","items":[{"id":300,"status":"open"}]}`: `keep: the input does not fit: json: cannot ` +
			`unmarshal number 300 into Go struct field item.items.id of type uint8.` + fields,
	} {
		var got kept
		r := run(t, keeper(&got), input)
		if !r.IsError || text(r) != want {
			t.Errorf("%s\n got: %s\nwant: %s", input, text(r), want)
		}
		if got.Command != "" {
			t.Errorf("%s reached the function", input)
		}
	}
	none := tool.Func("none", "", func(context.Context, struct{}) (string, error) { return "", nil })
	for _, nothing := range []string{"", "null", " {} ", `{"x":1}`} {
		if got := text(run(t, none, nothing)); got != "Done." {
			t.Error(got)
		}
	}
}

func TestSchemasAreSmallAndNeverChange(t *testing.T) {
	const want = `{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"integer",` +
		`"description":"seconds"},` +
		`"background":{"type":"boolean"},"items":{"type":"array","items":{"type":"object",` +
		`"properties":{"id":{"type":"integer"},` +
		`"status":{"type":"string","enum":["open","done"]}},"required":["id","status"]}},` +
		`"tags":{"type":"array","items":{"type":"string"}},"any":{"type":"array","items":{},"description":"ids, or ` +
		`\"x\":true"},"ratio":{"type":"number"}},"required":["command"]}`
	var got kept
	for range 50 {
		if s := string(keeper(&got).Spec().Schema); s != want {
			t.Fatalf(" got: %s\nwant: %s", s, want)
		}
	}
	none := tool.Func("none", "", func(context.Context, struct{}) (string, error) { return "", nil })
	if s := string(none.Spec().Schema); s != `{"type":"object","properties":{}}` {
		t.Error(s)
	}
	if keeper(&got).Spec().ReadOnly || !tool.Func("r", "",
		func(context.Context, struct{}) (string, error) { return "", nil }, nil, tool.ReadOnly()).Spec().ReadOnly {
		t.Error("read-only is what is said to be, and nothing else")
	}
}

// Tools share what follows from their input, and each keeps its own enums.
func TestTheSameInputWithOtherEnums(t *testing.T) {
	make := func(values ...string) llm.Tool {
		var o []tool.Option
		if values != nil {
			o = append(o, tool.Enum("status", values...))
		}
		return tool.Func("mark", "", func(_ context.Context, in item) (string, error) { return in.Status, nil }, o...)
	}
	for range 2 {
		for _, c := range []struct {
			tool  llm.Tool
			takes string
			says  string
		}{{make(), "any", ""}, {make("open", "done"), "open", "must be one of open, done"},
			{make("open done"), "open done", "must be one of open done"}} {
			if got := text(run(t, c.tool, `{"id":1,"status":"`+c.takes+`"}`)); got != c.takes {
				t.Errorf("%s is not taken: %s", c.takes, got)
			}
			if got := text(run(t, c.tool, `{"id":1,"status":"else"}`)); !strings.Contains(got, c.says) {
				t.Errorf("got %q, want %q", got, c.says)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	broken := errors.New("the store is broken")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(muster.CauseShutdown)
	for name, c := range map[string]struct {
		ctx   context.Context
		err   error
		told  string
		fails error
	}{
		"the model's": {t.Context(), broken, "the store is broken", nil},
		"with a hint, wrapped": {t.Context(), fmt.Errorf("claim: %w", muster.Errorf(muster.Held, "task 7 is bob's").WithHint("take another")),
			"claim: task 7 is bob's: take another", nil},
		"the runtime's":        {t.Context(), tool.Fatal(broken), "", broken},
		"wrapped":              {t.Context(), fmt.Errorf("in a tool: %w", tool.Fatal(broken)), "", broken},
		"cancelled":            {ctx, fmt.Errorf("stopped: %w", context.Canceled), "", context.Canceled},
		"cancelled, its cause": {ctx, muster.CauseShutdown, "", muster.CauseShutdown},
		"not of this ctx":      {t.Context(), context.Canceled, "context canceled", nil},
	} {
		f := tool.Func("f", "", func(context.Context, struct{}) (string, error) { return "ignored", c.err })
		r, err := f.Run(c.ctx, llm.Call{ID: "c1"}, nil)
		if !errors.Is(err, c.fails) || (c.fails == nil) != (err == nil) || text(r) != c.told ||
			r.IsError != (c.told != "") {
			t.Errorf("%s: result %q, error %v", name, text(r), err)
		}
	}
	n := tool.New("n", "", func(context.Context, struct{}) (llm.Result, error) {
		return llm.Result{}, tool.Fatal(broken)
	})
	if _, err := n.Run(t.Context(), llm.Call{}, nil); !errors.Is(err, broken) {
		t.Errorf("from New: %v", err)
	}
	if tool.Fatal(nil) != nil || tool.IsFatal(broken) || !tool.IsFatal(fmt.Errorf("so: %w", tool.Fatal(broken))) {
		t.Error("Fatal and IsFatal disagree")
	}
}

func TestProgressAndWrap(t *testing.T) {
	inner := tool.Func("inner", "Inner.", func(ctx context.Context, _ struct{}) (string, error) {
		tool.Progress(ctx)("half")
		return "in", nil
	}, tool.ReadOnly())
	wrapped := tool.Wrap(inner, func(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) {
		r, err := next(ctx, c)
		return tool.Text("<" + text(r) + ">"), err
	})
	var shown []string
	r, err := wrapped.Run(t.Context(), llm.Call{ID: "c1"}, func(s string) { shown = append(shown, s) })
	if err != nil || text(r) != "<in>" || r.ID != "c1" || !cmp.Equal(shown, []string{"half"}) {
		t.Errorf("result %q for %q, error %v, shown %q", text(r), r.ID, err, shown)
	}
	if got := text(run(t, wrapped, `{}`)); got != "<in>" {
		t.Errorf("without progress: %q", got)
	}
	if !cmp.Equal(wrapped.Spec(), inner.Spec()) || tool.Wrap(inner, nil) != inner {
		t.Error("a wrapper is known by its tool's spec")
	}
	tool.Progress(t.Context())("nobody")
}

func TestClassify(t *testing.T) {
	held := muster.Errorf(muster.Held, "bob has it")
	for _, c := range []struct {
		name  string
		err   error
		fatal bool
	}{
		{"nothing", nil, false},
		{"the model can act on it", fmt.Errorf("claim: %w", held), false},
		{"the engine is away", muster.Errorf(muster.Unavailable, "no disk"), true},
		{"anything else", errors.New("broken pipe"), true},
		{"marked already", tool.Fatal(held), true},
	} {
		if got := tool.Classify(c.err); tool.IsFatal(got) != c.fatal || !errors.Is(got, c.err) {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// A wrapper that looks at an input sees what the tool will read, through all other wrappers.
func TestFit(t *testing.T) {
	type in struct {
		Command string `json:"command"`
		Timeout int    `json:"timeout,omitempty"`
	}
	made := tool.New("run", "runs", func(context.Context, in) (llm.Result, error) { return llm.Result{}, nil })
	around := func(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) { return next(ctx, c) }
	recoverable := tool.Recoverable(made, func(context.Context, in, bool) (llm.Result, bool, error) {
		return llm.Result{}, false, nil
	})
	for _, x := range []llm.Tool{made, tool.Wrap(made, around), tool.Wrap(recoverable, around)} {
		for input, want := range map[string]string{
			`{"command":"ls"}`:                 `{"command":"ls"}`,
			`{"Command":"ls","timeout":"5"}`:   `{"command":"ls","timeout":5}`,
			`{"nothing":"like","it":"at all"}`: `{"nothing":"like","it":"at all"}`,
		} {
			got := tool.Fit(x, json.RawMessage(input))
			var a, b map[string]any
			if json.Unmarshal(got, &a) != nil || json.Unmarshal([]byte(want), &b) != nil || len(a) != len(b) {
				t.Fatalf("%s is read as %s, want %s", input, got, want)
			}
			for name := range b {
				if a[name] != b[name] {
					t.Errorf("%s is read as %s, want %s", input, got, want)
				}
			}
		}
	}
}

func says(parts ...llm.Part) llm.Tool {
	return tool.New("say", "", func(context.Context, struct{}) (llm.Result, error) {
		return llm.Result{Parts: parts, IsError: true}, nil
	})
}

func TestLimit(t *testing.T) {
	var lines []string
	for i := range 100 {
		lines = append(lines, fmt.Sprintf("line %d ä", i))
	}
	whole := strings.Join(lines, "\n")
	image := llm.Image{Media: "image/png"}
	var kept string
	keep := func(_ context.Context, c llm.Call, s string) (string, error) {
		kept = c.ID + s
		return "/out/1.txt", nil
	}
	r := run(t, tool.Limit(says(llm.Text{Text: whole[:300]}, image, llm.Text{Text: whole[300:]}), 400, keep), "")
	got := text(r)
	if kept != "c1"+whole {
		t.Errorf("kept %q", kept)
	}
	if n := utf8.RuneCountInString(got); n > 400 || n < 300 {
		t.Errorf("%d characters", n)
	}
	if !strings.HasPrefix(got, "line 0 ä\nline 1 ä\n") || !strings.HasSuffix(got, "\nline 99 ä") ||
		!strings.Contains(got, " of 989 characters cut here; the whole is in /out/1.txt ...") {
		t.Error(got)
	}
	if !r.IsError || len(r.Parts) != 2 || r.Parts[1].(llm.Image).Media != "image/png" || len(r.Files) != 1 ||
		r.Files[0] != "/out/1.txt" {
		t.Errorf("lost something: %+v", r)
	}

	kept = ""
	if got := text(run(t, tool.Limit(says(llm.Text{Text: whole}), 989, keep), "")); got != whole || kept != "" {
		t.Errorf("what fits is cut: %q", got)
	}
	if got := text(run(t, tool.Limit(says(llm.Text{Text: whole}), 200, nil), "")); !strings.Contains(got,
		"; the middle is lost ...") {
		t.Error(got)
	}
	full := func(context.Context, llm.Call, string) (string, error) { return "", errors.New("no space left") }
	if got := text(run(t, tool.Limit(says(llm.Text{Text: whole}), 200, full), "")); !strings.Contains(got,
		"; the whole could not be kept: no space left ...") {
		t.Error(got)
	}
}

func TestCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.RuneFrom([]rune("aä\n€😀"))).Draw(t, "text")
		most := rapid.IntRange(0, 300).Draw(t, "max")
		got := tool.Cut(s, most, "gone")
		total := utf8.RuneCountInString(s)
		if total <= most {
			if got != s {
				t.Fatal("changed what fits")
			}
			return
		}
		if !utf8.ValidString(got) {
			t.Fatalf("cut within a character: %q", got)
		}
		head, tail, ok := strings.Cut(got, "\n... ")
		if !ok { // no room for more than the note
			if !strings.HasPrefix(got, "... ") {
				t.Fatalf("%q", got)
			}
			return
		}
		var cut int
		require.Value(fmt.Sscanf(tail, "%d of", &cut))(t)
		_, tail, _ = strings.Cut(tail, " ...\n")
		if !strings.HasPrefix(s, head) || !strings.HasSuffix(s, tail) ||
			cut != total-utf8.RuneCountInString(head+tail) || utf8.RuneCountInString(got) > most {
			t.Fatalf("%q is not %q with %d cut", got, s, cut)
		}
	})
}
