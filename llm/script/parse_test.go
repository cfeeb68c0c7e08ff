package script

import (
	"errors"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster"
	"muster/internal/testing/require"
)

func TestMistakesAreNamedWithTheirPlace(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"unknown key", "speakers:\n  a:\n    - sya: hi\n", `script:3:7: unknown field "sya"`},
		{"not YAML", "speakers:\n  a: [\n", "script:2:"},
		{"a list as text", "speakers:\n  a:\n    - say: [x]\n", "script:3:12: text is expected here"},
		{"text as list", "speakers:\n  a: hi\n", "script:2:6: a list is expected here"},
		{"key twice", "speakers:\n  a:\n    - say: x\n      say: y\n", "script:4:7: "},
		{"empty", "\n", "script: it is empty"},
		{"two documents", "speakers: {a: [{say: x}]}\n---\nspeakers: {}\n", "script: there are 2 documents"},
		{"empty turn", "speakers:\n  a:\n    - say: x\n    - cue: y\n", "script:4:7: a turn needs say, think or do"},
		{"bad regexp", "scenes:\n  - cue: '('\n    turns: [{say: x}]\n",
			"script:2:10: this is not a regular expression: "},
		{"scene without cue", "scenes:\n  - turns: [{say: x}]\n", "script:2:5: a scene needs a cue"},
		{"scene without turns", "scenes:\n  - cue: x\n", "script:2:5: a scene needs turns"},
		{"bad wait", "speakers:\n  a:\n    - {say: x, wait: soon}\n", `script:3:22: "soon" is not a duration`},
		{"bad stop", "speakers:\n  a:\n    - {say: x, stop: paused}\n",
			"script:3:22: a turn's stop is end, max_tokens or refused"},
		{"stop with calls", "speakers:\n  a:\n    - {do: [{x: {}}], stop: end}\n",
			"script:3:29: a turn with calls stops for their results"},
		{"two tools in one", "speakers:\n  a:\n    - do:\n        - {x: {}, y: {}}\n",
			"script:4:12: each entry of do is one call"},
		{"input is text", "speakers:\n  a:\n    - do:\n        - bash: ls\n",
			"script:4:17: the input of bash is not a mapping"},
		{"bad error kind", "speakers:\n  a:\n    - {say: x, error: {kind: oops}}\n",
			"script:3:24: an error's kind is "},
		{"bad times", "speakers:\n  a:\n    - {say: x, error: {kind: spent, times: -1}}\n", "script:3:44: times is"},
		{"nobody captures", "speakers:\n  a:\n    - say: x\n    - do: [{bash: {command: ['a ${HOME}']}}]\n",
			"script:4:7: nothing can fill in ${HOME}"},
		{"number nobody captures", "speakers:\n  a:\n    - say: '${number:n}'\n",
			"script:3:7: nothing can fill in ${n}"},
		{"not UTF-8", "speakers:\n  a: [{say: \"\xff\"}]\n", "script:2: this line is not UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse([]byte(c.text))
			if !errors.Is(err, muster.ErrInvalid) {
				t.Fatalf("got %v", err)
			}
			if !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %q, want %q", err, c.want)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(filepath.Join(dir, "none.yaml")); !errors.Is(err, muster.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	file := filepath.Join(dir, "demo.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"speakers": {"a": [{"say": "hi", "do": [{"bash": {"command": "ls"}}]}]}}`),
		0o600))
	s := require.Value(Load(file))(t)
	want(t, begin(t, s, "a@x").tell("go"), `hi[bash {"command":"ls"}]`)
	require.NoError(t, os.WriteFile(file, []byte("oops: 1\n"), 0o600))
	if _, err := Load(file); err == nil || !strings.HasPrefix(err.Error(), "demo.json:1:1: ") {
		t.Errorf("got %v", err)
	}
}

// The example of the package comment is one that works.
func TestTheExampleOfTheComment(t *testing.T) {
	f := require.Value(parser.ParseFile(token.NewFileSet(), "script.go", nil, parser.ParseComments))(t)
	var example strings.Builder
	for line := range strings.Lines(f.Doc.Text()) {
		if text, ok := strings.CutPrefix(line, "\t"); ok && !strings.HasPrefix(text, "$") {
			example.WriteString(text)
		}
	}
	s := parsed(t, example.String())
	lead := begin(t, s, "lead@demo")
	want(t, lead.tell("The goal: words"),
		`Two tasks.[task_create {"subject":"tokenizer"}][task_create {"blocked_by":["tokenizer"],"subject":"counter"}]`)
	want(t, lead.tell("Task #1 tokenizer [pending] created.", "Task #2 counter [pending] created."), "[wait {}]")
	want(t, lead.tell("There is mail for you.", heardMail), `[review_plan {"approve":true,"request_id":"7f2c91aa"}]`)
	want(t, lead.tell("ok"), `[review_plan {"approve":true,"request_id":"00112233"}]`)
	want(t, lead.tell("ok"), "[wait {}]")
	want(t, lead.tell("All done: 2 tasks landed, nothing is open."), "Both have landed.")
	alice := begin(t, s, "alice@demo")
	want(t, alice.tell("<auto-claimed>\nTask #1: tokenizer\n\nYour lane: x\n</auto-claimed>"),
		`[write_file {"content":"package words\n","path":"tokenizer.go"}]`)
	want(t, alice.tell("written"), `[complete_task {"summary":"Splits at spaces.","task_id":1}]`)
	want(t, alice.tell("Task #1 came back: red"), `[bash {"command":"go test ./..."}]`)
}
