package code

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// searchCase is a repository and a search in it.
type searchCase struct {
	files, ignores map[string]string
	tracked        []string // added even if ignored
	in             in
	options        []string // of ripgrep, for the same
}

var (
	searchedNames = rapid.SampledFrom([]string{"a.go", "b.go", "c.log", ".hidden", "sub/a.go", "sub/c.log", "sub/d e.txt",
		"sub/deep/a.go", "sub/deep/x.log", "build/out.go", "build/keep/é.go", "other/build/a.go", "A.LOG", "-n"})
	ignoringNames = rapid.SampledFrom([]string{".gitignore", "sub/.gitignore", "sub/deep/.gitignore", "build/.gitignore",
		".git/info/exclude", "../global"})
	ignoringLines = rapid.SampledFrom([]string{"*.log\n", "!*.log\n", "/build/\n", "build\n", "!build/keep/\n", "sub/*\n",
		"!sub/deep\n", "deep/\n", "**/x.log\n", "a.go\n", "!/a.go\n", "# build\n", "\\!a\n", "d e.txt\n", "*\n", "!*/\n", "*.go  \n",
		"[ab].go\n", "sub/**/a.go\n"})
	searchedText = rapid.SampledFrom([]string{"a", "b", "ab", "aba", " ", "\n", "\n", "\n", "7", "_", "A", "B", "-", "é"})
)

// drawSearch draws a search that ripgrep and package regexp understand alike: in their \w and . they differ only on text
// that is not ASCII, or not UTF-8.
func drawSearch(t *rapid.T) (c searchCase) {
	c.files = rapid.MapOfN(searchedNames, rapid.Map(rapid.SliceOfN(searchedText, 0, 30), join), 1, 8).Draw(t, "files")
	c.ignores = rapid.MapOfN(ignoringNames, rapid.Map(rapid.SliceOfN(ignoringLines, 1, 4), join), 0, 3).Draw(t, "ignores")
	for name := range c.files {
		if rapid.Bool().Draw(t, "tracked") {
			c.tracked = append(c.tracked, name)
		}
	}
	atom := rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"a", "b", "ab", "[a-c]", `[^ab]`, `\d`, `[0-9_]`, "(?i:b)", "aba", "(?:a|b7)"}).Draw(t, "atom") +
			rapid.SampledFrom([]string{"", "", "*", "+", "?", "{2}", "*?"}).Draw(t, "times")
	})
	pattern := rapid.Map(rapid.SliceOfN(rapid.OneOf(atom, atom, rapid.SampledFrom([]string{"^", "$", "|", `\n`, `\s`, ".*?"})), 1, 5), join)
	// Of an end and a beginning at the same place ripgrep finds none in an empty line.
	both := func(s string) bool { return !strings.Contains(s, "^") || !strings.Contains(s, "$") }
	c.in = in{"pattern": pattern.Filter(both).Draw(t, "pattern"), "head_limit": maxHeadLimit}
	c.options = []string{"-e", c.in["pattern"].(string)}
	modes := []string{showContent, showFiles, showCounts}
	if rapid.Bool().Draw(t, "multiline") {
		c.in["multiline"], c.options = true, append(c.options, "--multiline-dotall")
	}
	if len(c.options) > 2 || strings.Contains(c.options[1], `\n`) {
		c.options = append(c.options, "-U")
		modes = modes[:2] // ripgrep counts lines
		// It finds a match without text behind the last line, too, and takes the end of a match for the beginning
		// of a line.
		c.in["pattern"] = "(?:" + strings.NewReplacer("^", "", "$", "").Replace(c.options[1]) + ")[^ ]"
		c.options[1] = c.in["pattern"].(string)
	}
	if rapid.Bool().Draw(t, "ignores case") {
		c.in["-i"], c.options = true, append(c.options, "-i")
	}
	switch mode := rapid.SampledFrom(modes).Draw(t, "mode"); mode {
	case showContent:
		before, after := rapid.IntRange(0, 2).Draw(t, "-B"), rapid.IntRange(0, 2).Draw(t, "-A")
		c.in["-B"], c.in["-A"] = before, after
		c.options = append(c.options, fmt.Sprint("-B", before), fmt.Sprint("-A", after))
	default:
		c.in["output_mode"] = mode
		c.options = append(c.options, map[string]string{showFiles: "-l", showCounts: "-c"}[mode])
	}
	return c
}

func join(list []string) string { return strings.Join(list, "") }

// TestGrepFindsWhatRipgrepFinds compares grep with ripgrep in the files that git lists, and glob with that list.
func TestGrepFindsWhatRipgrepFinds(t *testing.T) {
	rg, err := exec.LookPath("rg")
	if err != nil {
		t.Skip(err)
	}
	k := newKit(t)
	k.git("init", "-q")
	t.Setenv("HOME", filepath.Dir(k.dir))
	t.Setenv("XDG_CONFIG_HOME", "")
	global := "[core]\n\texcludesFile = ~/global\n"
	if err := os.WriteFile(filepath.Join(filepath.Dir(k.dir), ".gitconfig"), []byte(global), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) string {
		c := exec.Command(name, args...)
		c.Dir = k.dir
		out, err := c.Output()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() != 1 {
			t.Fatalf("%s %q: %v: %s", name, args, err, exit.Stderr)
		}
		return string(out)
	}
	rapid.Check(t, func(t *rapid.T) {
		c := drawSearch(t)
		for _, name := range []string{".git/index", ".git/info/exclude", "../global"} {
			_ = os.Remove(filepath.Join(k.dir, name))
		}
		old, err := os.ReadDir(k.dir)
		for _, e := range old {
			if e.Name() != ".git" {
				err = errors.Join(err, os.RemoveAll(filepath.Join(k.dir, e.Name())))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		k.put("always.go", "ab\n")
		for name, text := range c.files {
			k.put(name, text)
		}
		for name, text := range c.ignores {
			k.put(name, text)
		}
		k.git(append([]string{"add", "-f", "--", "always.go"}, c.tracked...)...)
		listed := run("git", "ls-files", "-coz", "--exclude-standard")
		files := strings.Split(strings.TrimSuffix(listed, "\x00"), "\x00")
		slices.Sort(files)
		if got, want := k.ok("glob", in{"pattern": "*"}), strings.Join(files, "\n"); got != want {
			t.Fatalf("glob lists\n%s\nand git\n%s", got, want)
		}
		// Where git lists nothing, grep searches what is ignored: somebody who names it wants that.
		below := slices.DeleteFunc(slices.Clone(files), func(name string) bool { return !strings.HasPrefix(name, "sub/") })
		if len(below) > 0 && rapid.Bool().Draw(t, "below sub") {
			c.in["path"], files = "sub", below
		}
		args := append(append([]string{"--no-config", "-j1", "-nH", "--no-heading"}, c.options...), "--")
		want := run(rg, append(args, files...)...)
		got := k.ok("grep", c.in)
		if i := strings.LastIndex(got, "\n[") + 1; i > 0 { // what grep says beside the matches
			got = got[:i]
		}
		if strings.HasPrefix(got, "No match") {
			got = ""
		}
		if got != want {
			t.Fatalf("grep %v finds\n%s\nand rg %q\n%s", c.in, got, args, want)
		}
	})
}
