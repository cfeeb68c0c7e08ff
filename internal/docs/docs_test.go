// Package docs tries what the documentation says: every command in docs/*.md and README.md is run, in the order of its
// page, and what it prints is compared with what the page shows.
//
// Each page has a fresh git repository called words, an empty HOME, and the real program first in PATH. A page is plain
// Markdown with these rules for its fenced blocks:
//
//   - console: lines that begin with "$ " are commands, what follows is what they print on both outputs. A line "..."
//     stands for any number of lines, "..." within a line for anything. Times, ids and the space between columns are
//     compared loosely (match_test.go). A command exits 0 unless its output ends with a line "[exit 3]".
//   - sh: commands whose output is not shown. Each must exit 0, or be excused below, with the reason.
//   - any other whose first line is a comment that is only a file's name: that file, written where the shell stands.
//
// It also checks that what docs/architecture.md and CONTRIBUTING.md name of the source exists.
//
// Read in this order: docs_test.go (the pages), page_test.go (their blocks), shell_test.go (running), match_test.go
// (comparing), readme_test.go (what the README needs), names_test.go (names of the source), translation_test.go (pages in
// Chinese), messages_test.go (messages that a page quotes), commands_test.go (commands within the text).
package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"muster/internal/testing/gittest"
	"muster/internal/testing/program"
	"muster/internal/testing/require"
)

// excused are commands of sh blocks that are not run here.
var excused = map[string]string{
	"go run ./cmd/muster demo": "the demo is run by internal/e2e and by CI",
	"./test.sh":                "it runs this test",
	"go install ./cmd/muster":  "the program under test was built already",
	`muster run "..." --model openai/qwen3@http://localhost:11434/v1`: "needs a model server at that port; internal/e2e speaks to stand-ins",
	"muster":        "the conversation is for people; docs/conversation.md runs it in a pipe, internal/e2e in a terminal",
	"muster watch":  "needs a terminal; internal/cli tests it in one",
	"muster log -f": "follows until it is interrupted; internal/cli tests that",
	"muster web":    "serves until it is interrupted; internal/cli tests that",
	"muster resume": "nothing is stopped there; docs/files-on-disk.md kills a run and resumes it",
}

// root is the module's directory; bin holds the program.
var root, bin string

// goDirs are the Go command's own directories, as variables: they would lie in the home of each page.
var goDirs []string

func TestMain(m *testing.M) {
	root, _ = filepath.Abs(filepath.Join("..", ".."))
	path, err := program.Find()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	bin = filepath.Dir(path)
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	dirs := strings.Fields(string(out))
	if err != nil || len(dirs) != 2 {
		fmt.Fprintf(os.Stderr, "go env: %v\n%s", err, out)
		os.Exit(1)
	}
	goDirs = []string{"GOCACHE=" + dirs[0], "GOMODCACHE=" + dirs[1]}
	gittest.Main(m)
}

func pages(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(found) < 2 {
		t.Fatalf("pages %q, %v", found, err)
	}
	return append(found, filepath.Join(root, "README.md"), filepath.Join(root, "README.zh-CN.md"),
		filepath.Join(root, "CONTRIBUTING.md"))
}

func TestPages(t *testing.T) {
	used := make(chan string, 100)
	t.Run("of", func(t *testing.T) {
		for _, path := range pages(t) {
			p := read(t, path)
			if len(p) == 0 || strings.HasSuffix(path, translated) {
				continue // nothing to run, or the same as in English
			}
			name, _ := filepath.Rel(root, path)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var env []string
				if words, ok := vendors[filepath.ToSlash(name)]; ok {
					env = vendor(t, words)
				}
				s := open(t, env)
				if name == "README.md" {
					s.must(yours)
				}
				for _, b := range p {
					s.do(b, used)
				}
			})
		}
	})
	close(used)
	left := map[string]string{}
	for command, why := range excused {
		left[command] = why
	}
	for command := range used {
		delete(left, command)
	}
	for command := range left {
		if !t.Failed() {
			t.Errorf("%q is excused, but no page has it any more", command)
		}
	}
}

// Links between pages, and from pages to the code, lead somewhere.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`)
	for _, path := range pages(t) {
		data := require.Value(os.ReadFile(path))(t)
		for _, m := range link.FindAllStringSubmatch(string(data), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s: %v", filepath.Base(path), err)
			}
		}
	}
}
