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

// checkout is a directory in which a member without a task reads, with instructions in it.
type checkout struct {
	*testing.T
	*nestedInstructions
	dir string
}

func newCheckout(t *testing.T, files map[string]string) *checkout {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &self{Config: Config{Services: Services{Home: paths.Dir(root)}}, claims: &claims{}}
	s.Record.Name = "alice"
	c := &checkout{t, &nestedInstructions{self: s}, filepath.Join(s.Home.Scratch(), "alice")}
	for name, text := range files {
		c.write(name, text)
	}
	return c
}

func (c *checkout) write(name, text string) {
	c.Helper()
	path := filepath.Join(c.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		c.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.Fatal(err)
	}
}

// call returns what the model reads of a call.
func (c *checkout) call(name string, input map[string]any, fails bool) string {
	c.Helper()
	data, err := json.Marshal(input)
	if err != nil {
		c.Fatal(err)
	}
	r, err := c.around(c.Context(), llm.Call{Name: name, Input: data}, func(context.Context, llm.Call) (llm.Result, error) {
		r := tool.Text("done.")
		r.IsError = fails
		return r, nil
	})
	if err != nil {
		c.Fatal(err)
	}
	return textOf(llm.Message{Parts: r.Parts})
}

// The instructions of a directory reach the model with the first call that touches it, once for each text, from the
// outermost directory to the innermost.
func TestNestedInstructions(t *testing.T) {
	c := newCheckout(t, map[string]string{"AGENTS.md": "root", // which the first message has
		"a/AGENTS.md": "of a", "a/b/CLAUDE.md": "of b", "other/AGENTS.md": "of other"})
	for i := range 8 {
		c.write("big/"+strings.Repeat("x/", i)+"AGENTS.md", strings.Repeat("many ", 4000))
	}
	read := func(path string) string { return c.call("read_file", map[string]any{"path": path}, false) }
	if got := c.call("read_file", map[string]any{"path": "a/b/x.go"}, true); got != "done." {
		t.Errorf("a call that failed: %q", got)
	}
	for _, x := range []struct{ path, want string }{
		{"main.go", ""}, {"../../secret/x", ""}, {"/etc/passwd", ""},
		{"a/b/x.go", "\n<instructions file=\"a/AGENTS.md\">\nof a\n</instructions>\n<instructions file=\"a/b/CLAUDE.md\">\nof b\n</instructions>"},
		{"a/b/y.go", ""},
		{filepath.Join(c.dir, "other/x"), "\n<instructions file=\"other/AGENTS.md\">\nof other\n</instructions>"},
	} {
		if got := read(x.path); got != "done."+x.want {
			t.Errorf("%s: %q, want %q", x.path, got, x.want)
		}
	}
	c.write("a/AGENTS.md", "changed")
	if got := read("a/z"); !strings.Contains(got, "\nchanged\n") {
		t.Errorf("after a change the model reads %q", got)
	}
	c.reset()
	if got := read("a/b"); !strings.Contains(got, "of b") {
		t.Errorf("a fresh conversation reads %q", got)
	}
	got := read("big/x/x/x/x/x/x/x/f")
	if len(got) > maxNestedTotal+4000 || !strings.Contains(got, "not shown") || !strings.Contains(got, "[cut: ") {
		t.Errorf("%d bytes of instructions were added", len(got))
	}
}

// A command and a patch touch the directories of the paths that they name.
func TestNestedInstructionsOfCommandsAndPatches(t *testing.T) {
	for _, x := range []struct{ tool, input, want string }{ // input is the command or the patch
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
		c := newCheckout(t, map[string]string{"main.go": "m", "a/x.go": "x", "a/b/y.go": "y", "a/AGENTS.md": "of a",
			"a/b/AGENTS.md": "of b"})
		if err := os.Symlink(filepath.Join(c.dir, "a/b"), filepath.Join(c.dir, "link")); err != nil {
			t.Fatal(err)
		}
		field := map[string]string{"bash": "command", "apply_patch": "input"}[x.tool]
		for _, fails := range []bool{true, false} {
			want := "done."
			for _, d := range strings.Fields(x.want) {
				if !fails || x.tool == "bash" {
					want += fmt.Sprintf("\n<instructions file=%q>\nof %s\n</instructions>", d+"/AGENTS.md", filepath.Base(d))
				}
			}
			c.reset()
			input := map[string]any{field: strings.ReplaceAll(x.input, "DIR", c.dir), "timeout": 3}
			if got := c.call(x.tool, input, fails); got != want {
				t.Errorf("%s %q, failed: %v: %q, want %q", x.tool, x.input, fails, got, want)
			}
		}
	}
}
