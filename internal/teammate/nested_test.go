package teammate

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/internal/paths"
	"muster/llm"
	"muster/tool"
)

// The instructions of a directory reach the model with the first call that touches it, once for each text, from the
// outermost directory to the innermost.
func TestNestedInstructions(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &self{Config: Config{Services: Services{Home: paths.Dir(root)}}, claims: &claims{}}
	s.Record.Name = "alice"
	n := &nestedInstructions{self: s}
	dir := filepath.Join(s.Home.Scratch(), "alice")
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("AGENTS.md", "root") // which the first message has
	write("a/AGENTS.md", "of a")
	write("a/b/CLAUDE.md", "of b")
	write("other/AGENTS.md", "of other")
	for i := range 8 {
		write("big/"+strings.Repeat("x/", i)+"AGENTS.md", strings.Repeat("many ", 4000))
	}
	call := func(input map[string]any, fails bool) string {
		t.Helper()
		data, err := json.Marshal(input)
		if err != nil {
			t.Fatal(err)
		}
		r, err := n.around(t.Context(), llm.Call{Input: data}, func(context.Context, llm.Call) (llm.Result, error) {
			r := tool.Text("done.")
			r.IsError = fails
			return r, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return textOf(llm.Message{Parts: r.Parts})
	}
	a := "<instructions file=\"a/AGENTS.md\">\nof a\n</instructions>"
	b := "<instructions file=\"a/b/CLAUDE.md\">\nof b\n</instructions>"
	for i, c := range []struct {
		input map[string]any
		fails bool
		want  string
	}{
		{map[string]any{"path": "main.go"}, false, "done."},
		{map[string]any{"command": "cat a/x"}, false, "done."},
		{map[string]any{"path": "a/b/x.go"}, true, "done."},
		{map[string]any{"path": "../../secret/x"}, false, "done."},
		{map[string]any{"path": "/etc/passwd"}, false, "done."},
		{map[string]any{"path": "a/b/x.go"}, false, "done.\n" + a + "\n" + b},
		{map[string]any{"path": "a/b/y.go"}, false, "done."},
		{map[string]any{"file_path": filepath.Join(dir, "other/x")}, false,
			"done.\n<instructions file=\"other/AGENTS.md\">\nof other\n</instructions>"},
	} {
		if got := call(c.input, c.fails); got != c.want {
			t.Errorf("call %d: %q, want %q", i, got, c.want)
		}
	}
	write("a/AGENTS.md", "changed")
	if got := call(map[string]any{"path": "a/z"}, false); !strings.Contains(got, "\nchanged\n") {
		t.Errorf("after a change the model reads %q", got)
	}
	n.reset()
	if got := call(map[string]any{"path": "a/b"}, false); !strings.Contains(got, "of b") {
		t.Errorf("a fresh conversation reads %q", got)
	}
	got := call(map[string]any{"path": "big/x/x/x/x/x/x/x/f"}, false)
	if len(got) > maxNestedTotal+4000 || !strings.Contains(got, "not shown") || !strings.Contains(got, "[cut: ") {
		t.Errorf("%d bytes of instructions were added", len(got))
	}
}
