package places

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster/internal/frontmatter"
	"muster/internal/testing/require"
)

// write makes files below dir.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
}

// TestFind: the repository's files come before the user's, and what leads out of either cannot be read.
func TestFind(t *testing.T) {
	root, home, config := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, root, map[string]string{".agents/roles/b.md": "b", ".agents/roles/deep/c.MD": "c", ".claude/roles/README.md": "no",
		".claude/roles/node_modules/d.md": "no", ".claude/roles/e.txt": "no", "roles/f.md": "no",
		".claude/roles/big.md": strings.Repeat("x", maxFile+1), ".claude/roles/binary.md": "a\x00"})
	write(t, home, map[string]string{".claude/roles/g.md": "g\x1b[31m", "secret": "the user's"})
	write(t, config, map[string]string{"roles/h.md": "h"})
	for link, to := range map[string]string{".claude/roles/out.md": filepath.Join(home, "secret"), ".claude/roles/again.md": "../../.agents/roles/b.md"} {
		require.NoError(t, os.Symlink(to, filepath.Join(root, link)))
	}
	var got []string
	for _, f := range Find(Of("roles", root, home, config), Markdown()) {
		text, err := f.Text()
		if err != nil {
			text = "error: " + err.Error()
		}
		if strings.Contains(text, root) || strings.Contains(text, "the user's") {
			t.Errorf("%s: %q", f.Path, text)
		}
		line := f.Name() + " " + strings.Replace(f.Show(), config, "CONFIG", 1) + " " + f.Dir
		if f.Place.IsUser {
			line += " user"
		}
		got = append(got, line+": "+text)
	}
	for i, line := range got {
		if strings.HasPrefix(line, "out ") { // the error is the system's
			got[i], _, _ = strings.Cut(line, ":")
		}
	}
	want := []string{
		"b .agents/roles/b.md .agents/roles: b",
		"c .agents/roles/deep/c.MD .agents/roles: c",
		"big .claude/roles/big.md .claude/roles: error: it has more than 256 KB",
		"binary .claude/roles/binary.md .claude/roles: error: it is not text",
		"out .claude/roles/out.md .claude/roles",
		"h CONFIG/roles/h.md roles user: h",
		"g ~/.claude/roles/g.md .claude/roles user: g[31m",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestDescribe: without a description the first sentence counts, in one line.
func TestDescribe(t *testing.T) {
	for text, want := range map[string]string{
		"---\ndescription: Does a: b\n---\nText.": "Does a: b",
		"# Title\nFirst\nsentence. Second.":       "First sentence.",
		"# Title\n\nOther. More.":                 "Other.",
		"# Title":                                 "",
		"---\ndescription: " + strings.Repeat("é", 600) + "\n---\n": strings.Repeat("é", 510) + "...",
	} {
		if got := Describe(frontmatter.Split(text)); got != want {
			t.Errorf("%.30q: %q, want %q", text, got, want)
		}
	}
}
