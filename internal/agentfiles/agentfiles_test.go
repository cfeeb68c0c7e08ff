//go:build unix

package agentfiles

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
)

// shown returns files as lines.
func shown(files []File) (lines []string) {
	for _, f := range files {
		line := f.Name + " " + f.Place + " " + f.Below + ": " + f.Body
		if f.Problem != "" {
			line += "! " + f.Problem
		}
		lines = append(lines, line)
	}
	return lines
}

// same fails the test where the lines differ.
func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestFind: the repository's files come before the user's. What leads out of either, is no text, is a pipe, or has no
// end, cannot be used, and nothing that is shown has control characters.
func TestFind(t *testing.T) {
	root, home, config := t.TempDir(), t.TempDir(), t.TempDir()
	gittest.Write(t, root, map[string]string{".agents/roles/b.md": "b", ".agents/roles/deep/c.MD": "c", ".claude/roles/README.md": "no",
		".claude/roles/node_modules/d.md": "no", ".claude/roles/e.txt": "no", "roles/f.md": "no",
		".claude/roles/big.md": strings.Repeat("x", maxFile+1), ".claude/roles/binary.md": "a\x00", ".claude/roles/o\x1b[31m.md": "o"})
	gittest.Write(t, home, map[string]string{".claude/roles/g.md": "g\x1b[31m", "secret": "the user's"})
	gittest.Write(t, config, map[string]string{"roles/h.md": "h"})
	for link, to := range map[string]string{"out.md": filepath.Join(home, "secret"), "again.md": "../../.agents/roles/b.md", "away": home,
		"loop": ".."} {
		require.NoError(t, os.Symlink(to, filepath.Join(root, ".claude/roles", link)))
	}
	require.NoError(t, syscall.Mkfifo(filepath.Join(root, ".claude/roles/pipe.md"), 0o600))
	files := Find(Kind{Dir: "roles"}, root, home, config)
	for i, f := range files {
		if f.IsUser != (f.Name == "g" || f.Name == "h") {
			t.Errorf("%s: of the user %v", f.Place, f.IsUser)
		}
		f.Place = strings.Replace(f.Place, config, "CONFIG", 1)
		files[i] = f
	}
	same(t, shown(files),
		"b .agents/roles/b.md b: b",
		"c .agents/roles/deep/c.MD deep/c: c",
		"big .claude/roles/big.md big: ! it cannot be read: it has more than 256 KB",
		"binary .claude/roles/binary.md binary: ! it cannot be read: it is not text",
		"o[31m .claude/roles/o[31m.md o\x1b[31m: o",
		"pipe .claude/roles/pipe.md pipe: ! it cannot be read: it is not a regular file",
		"out .claude/roles/out.md out: ! it cannot be read: it leads out of the repository",
		"away .claude/roles/away away: ! it cannot be read: it leads out of the repository",
		"h CONFIG/roles/h.md h: h",
		"g ~/.claude/roles/g.md g: g[31m")
}

// TestAlone: a file that has its directory for itself is called as the directory is, and hides what else lies there.
func TestAlone(t *testing.T) {
	root := t.TempDir()
	gittest.Write(t, root, map[string]string{"kits/a/KIT.md": "text", "kits/a/b/kit.md": "no", "kits/a/part.md": "no",
		".claude/kits/c/Kit.md": "---\nname: other\n---\n", "kits/loose.md": "---\ndescription: d\n---\nno", "real/kit.md": "linked",
		".claude/kits/INDEX.md": "no", ".claude/kits/loose.md": "---\ndescription: d\n---\nloose"})
	require.NoError(t, os.Symlink("../real", filepath.Join(root, "kits/z")))
	same(t, shown(Find(Kind{Dir: "kits", Alone: "kit.md", InRoot: true}, root, "", "")),
		"a kits/a a/KIT: text", "z kits/z z/kit: linked",
		"loose .claude/kits/loose.md loose: loose! it is no directory with a kit.md", "other .claude/kits/c c/Kit: ! it has no text below its front matter")
}

// TestNames: the first usable file of a name gets it, however the others spell it, and what has a problem takes none.
func TestNames(t *testing.T) {
	root := t.TempDir()
	gittest.Write(t, root, map[string]string{".claude/roles/1.md": "---\nname: A b\n---\n", ".claude/roles/2.md": "---\nname: a-B\n---\nx",
		".claude/roles/3.md": "---\nname: A_B\n---\nx", ".claude/roles/4.md": "---\nname: '--'\n---\nx", ".claude/roles/5.md": "x"})
	all := Find(Kind{Word: "role", Dir: "roles", Check: func(f File) string { return strings.Trim(f.Name, "aAbB_- ") }}, root, "", "")
	var problems []string
	for _, f := range all {
		problems = append(problems, f.Problem)
	}
	same(t, problems, "it has no text below its front matter", "", "a role in .claude/roles/2.md has the same name",
		"its name has no letters", "5")
	if f, ok := Named(all, " a B "); !ok || f.Name != "a-B" || len(Usable(all)) != 1 {
		t.Errorf("%+v of %+v", f, Usable(all))
	}
	for _, name := range []string{"", "--", "5", "d"} {
		if f, ok := Named(all, name); ok {
			t.Errorf("%q is %+v", name, f)
		}
	}
}

// TestDescription: without a description the first sentence counts. It is one line, whatever escapes YAML has in it.
func TestDescription(t *testing.T) {
	for content, want := range map[string]string{
		"---\ndescription: Does a: b\n---\nText.":                   "Does a: b",
		"---\ndescription: \"a\\x1b[31m\\nb\\u202ec\"\n---\nText.":  "a[31m bc",
		"# Title\nFirst\nsentence. Second.":                         "First sentence.",
		"# Title\n\nOther. More.":                                   "Other.",
		"# Title":                                                   "",
		"---\ndescription: " + strings.Repeat("é", 600) + "\n---\n": strings.Repeat("é", 510) + " ...",
	} {
		if got := New("x", "", content).Description; got != want {
			t.Errorf("%.30q: %q, want %q", content, got, want)
		}
	}
}
