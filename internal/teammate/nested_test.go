package teammate

import (
	"context"
	"encoding/json"
	"fmt"
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
	tools := map[string]string{"command": "bash", "cmd": "bash", "input": "apply_patch", "path": "read_file"}
	call := func(input map[string]any, fails bool) string {
		t.Helper()
		name := ""
		for field := range input {
			name = tools[field]
		}
		data, err := json.Marshal(input)
		if err != nil {
			t.Fatal(err)
		}
		r, err := n.around(t.Context(), llm.Call{Name: name, Input: data}, func(context.Context, llm.Call) (llm.Result, error) {
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
		{map[string]any{"command": "echo a/missing; ls ../../other; cat main.go"}, false, "done."},
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

// A command and a patch touch the directories of the paths that they name.
func TestNestedInstructionsOfCommandsAndPatches(t *testing.T) {
	for _, c := range []struct{ tool, input, want string }{ // input is the command or the patch
		{"bash", "cat a/x.go", "a"},
		{"bash", "sed -i 's/x/y/' ./a/x.go && go vet", "a"},
		{"bash", "go test ./a/...", "a"},
		{"bash", "cd a && cat b/y.go", "a a/b"},
		{"bash", "cd a/b; ls", "a a/b"},
		{"bash", "grep -n x a/*.go", "a"},
		{"bash", "make -C=a", "a"},
		{"bash", "cat <a/x.go", "a"},
		{"bash", "cat DIR/a/b/y.go", "a a/b"},
		{"bash", "cat a/b/none", ""},
		{"bash", "cat link/y.go", ""},
		{"bash", "cat ../../../../../../../etc/passwd /etc/passwd ~/a", ""},
		{"bash", "ls", ""},
		{"bash", strings.Repeat("x ", maxCommandWords) + "a/x.go", ""},
		{"apply_patch", "*** Begin Patch\n*** Update File: a/x.go\n@@\n-a\n+b\n*** End Patch", "a"},
		{"apply_patch", "*** Begin Patch\n*** Update File: main.go\n*** Move to: a/b/z.go\n*** End Patch", "a a/b"},
		{"apply_patch", "--- a/a/b/y.go\n+++ b/a/b/y.go\n@@ -1 +1 @@\n-a\n+b\n", "a a/b"},
		{"apply_patch", "--- a/x.go\n+++ b/x.go\n@@ -1 +1 @@\n-a\n+b\n", "a"}, // as the patch tool takes it, too
		{"apply_patch", "nothing", ""},
	} {
		root, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		s := &self{Config: Config{Services: Services{Home: paths.Dir(root)}}, claims: &claims{}}
		s.Record.Name = "alice"
		dir := filepath.Join(s.Home.Scratch(), "alice")
		for name, text := range map[string]string{"main.go": "m", "a/x.go": "x", "a/b/y.go": "y", "a/AGENTS.md": "of a",
			"a/b/AGENTS.md": "of b"} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(filepath.Join(dir, "a/b"), filepath.Join(dir, "link")); err != nil {
			t.Fatal(err)
		}
		field := map[string]string{"bash": "command", "apply_patch": "input"}[c.tool]
		data, err := json.Marshal(map[string]any{field: strings.ReplaceAll(c.input, "DIR", dir), "timeout": 3})
		if err != nil {
			t.Fatal(err)
		}
		for _, fails := range []bool{true, false} {
			n := &nestedInstructions{self: s}
			r, err := n.around(t.Context(), llm.Call{Name: c.tool, Input: data}, func(context.Context, llm.Call) (llm.Result, error) {
				r := tool.Text("done.")
				r.IsError = fails
				return r, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			want := "done."
			for _, d := range strings.Fields(c.want) {
				if !fails || c.tool == "bash" {
					want += fmt.Sprintf("\n<instructions file=%q>\nof %s\n</instructions>", d+"/AGENTS.md", filepath.Base(d))
				}
			}
			if got := textOf(llm.Message{Parts: r.Parts}); got != want {
				t.Errorf("%s %q, failed: %v: %q, want %q", c.tool, c.input, fails, got, want)
			}
		}
	}
}
