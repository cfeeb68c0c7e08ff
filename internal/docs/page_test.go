package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/internal/testing/require"
)

// block is one thing to do: a file to write, or a command.
type block struct {
	at    string // page:line
	file  string // to write text to
	text  string // the command, or the file's content
	shown bool   // want is what it prints
	want  []string
	exit  string // "0" when the page names none
}

// named is a first line that is only a file's name.
var named = regexp.MustCompile(`^(?:#|//) (\S+\.\w+)$`)

var exits = regexp.MustCompile(`^\[exit (\d+)\]$`)

func read(t *testing.T, path string) (blocks []block) {
	t.Helper()
	data := require.Value(os.ReadFile(path))(t)
	blocks = require.Value(parse(filepath.Base(path), string(data)))(t)
	return blocks
}

func parse(page, text string) (blocks []block, err error) {
	var kind string
	var from int
	var inside []string
	for i, line := range strings.Split(text, "\n") {
		fence, is := strings.CutPrefix(line, "```")
		switch {
		case is && from == 0:
			kind, from, inside = fence, i+1, nil
		case is:
			more, err := take(page, kind, from, inside)
			if err != nil {
				return nil, err
			}
			blocks, from = append(blocks, more...), 0
		case from > 0:
			inside = append(inside, line)
		}
	}
	if from > 0 {
		return nil, wrong(page, from, "this block has no end")
	}
	return blocks, nil
}

func take(page, kind string, from int, lines []string) (all []block, err error) {
	switch kind {
	case "console":
		for i, line := range lines {
			command, is := strings.CutPrefix(line, "$ ")
			switch {
			case is:
				all = append(all, block{at: place(page, from+i+1), text: command, shown: true, exit: "0"})
			case len(all) == 0:
				return nil, wrong(page, from, `a console block begins with "$ "`)
			default:
				last := &all[len(all)-1]
				if m := exits.FindStringSubmatch(line); m != nil {
					last.exit = m[1]
				} else {
					last.want = append(last.want, line)
				}
			}
		}
	case "sh":
		for i, line := range lines {
			if command, _, _ := strings.Cut(line, " #"); strings.TrimSpace(command) != "" {
				all = append(all, block{at: place(page, from+i+1), text: strings.TrimSpace(command), exit: "0"})
			}
		}
	default:
		if len(lines) == 0 {
			return nil, wrong(page, from, "this block is empty")
		}
		if m := named.FindStringSubmatch(lines[0]); m != nil {
			all = append(all, block{at: place(page, from), file: m[1], text: strings.Join(lines[1:], "\n") + "\n"})
		}
	}
	return all, nil
}

func place(page string, line int) string { return fmt.Sprintf("%s:%d", page, line) }

func wrong(page string, line int, what string) error {
	return fmt.Errorf("%s: %s", place(page, line), what)
}

func TestParse(t *testing.T) {
	const page = "Words.\n```console\n$ one\na\n\n$ two\n[exit 3]\n```\n```sh\nthree  # why\n\nfour\n```\n```yaml\n# f.yaml\na: 1\n```\n```\n$ not this\n```\n"
	got, err := parse("p", page)
	want := []block{
		{at: "p:3", text: "one", shown: true, want: []string{"a", ""}, exit: "0"},
		{at: "p:6", text: "two", shown: true, exit: "3"},
		{at: "p:10", text: "three", exit: "0"},
		{at: "p:12", text: "four", exit: "0"},
		{at: "p:14", file: "f.yaml", text: "a: 1\n"},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(block{})); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	for _, bad := range []string{"```console\nout\n```\n", "```sh\nx\n", "```go\n```\n"} {
		if _, err := parse("p", bad); err == nil || !strings.HasPrefix(err.Error(), "p:1: ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
