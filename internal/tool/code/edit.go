package code

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"muster/llm"
	"muster/tool"
)

type editInput struct {
	Path       string `json:"path"`
	OldText    string `json:"old_text" jsonschema:"exactly as in the file"`
	NewText    string `json:"new_text"`
	ReplaceAll bool   `json:"replace_all,omitempty"`
}

// editMost is the largest file that is edited, in bytes.
const editMost = 20 << 20

func (t toolset) editFile() llm.Tool {
	return tool.New("edit_file", "Change a part of a file: replaces text that occurs exactly once, or everywhere with replace_all.",
		func(ctx context.Context, in editInput) (llm.Result, error) {
			s, err := t.stand(ctx)
			if err != nil {
				return tool.FromError(err)
			}
			at, err := s.at(in.Path, true)
			if err != nil {
				return tool.FromError(err)
			}
			defer at.close()
			before, err := at.content()
			if err != nil {
				return tool.FromError(err)
			}
			after, changed, err := edit(at.show, before, in)
			if err != nil {
				return tool.FromError(err)
			}
			if err := replace(at, []byte(after)); err != nil {
				return tool.FromError(at.why(err))
			}
			return tool.Text(shown(at.show, after, changed)), nil
		}, tool.NeedsPlan())
}

// content reads a file that is to be edited.
func (s confinedPath) content() (string, error) {
	fi, err := s.root.Stat(s.rel)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%w (write_file makes new files)", s.why(err))
	case err != nil:
		return "", s.why(err)
	case fi.IsDir():
		return "", s.isDir()
	case !fi.Mode().IsRegular():
		return "", fmt.Errorf("%s is not a file but a %s", s.show, special(fi.Mode()))
	case fi.Size() > editMost:
		return "", fmt.Errorf("%s is too large to edit so (%s): use bash", s.show, size(fi.Size()))
	}
	data, err := s.root.ReadFile(s.rel)
	if err != nil {
		return "", s.why(err)
	}
	if binary(data[:min(len(data), sniffed)]) {
		return "", fmt.Errorf("%s is not text: use bash", s.show)
	}
	return string(data), nil
}

// span is a piece of a text, in bytes.
type span struct{ from, to int }

// edit replaces and returns where the new text stands. name is the file's, for errors.
func edit(name, before string, in editInput) (after string, changed []span, err error) {
	old, new := in.OldText, in.NewText
	switch {
	case old == "":
		return "", nil, errors.New("old_text is empty: give the text to replace (write_file makes new files)")
	case old == new:
		return "", nil, errors.New("old_text and new_text are the same: nothing would change")
	}
	if strings.Contains(before, "\r\n") && !strings.Contains(old, "\r\n") && (strings.Contains(old, "\n") || strings.Contains(new, "\n")) {
		// The file keeps its line ends: read_file shows lines without them. Where old alone matches too, it has no newline,
		// or the file has both kinds.
		if crlf := ends(old); strings.Contains(before, crlf) {
			old, new = crlf, ends(new)
		}
	}
	at := occurrences(before, old)
	switch {
	case len(at) == 0:
		return "", nil, missing(name, before, in.OldText)
	case len(at) > 1 && !in.ReplaceAll:
		return "", nil, fmt.Errorf("old_text occurs %d times in %s (lines %s): give more lines around it, or set replace_all", len(at), name, numbers(before, at))
	}
	var b strings.Builder
	from := 0
	for _, i := range at {
		b.WriteString(before[from:i])
		changed = append(changed, span{b.Len(), b.Len() + len(new)})
		b.WriteString(new)
		from = i + len(old)
	}
	b.WriteString(before[from:])
	return b.String(), changed, nil
}

// ends writes newlines as CRLF.
func ends(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}

func occurrences(text, part string) (at []int) {
	for from := 0; ; {
		i := strings.Index(text[from:], part)
		if i < 0 {
			return at
		}
		at = append(at, from+i)
		from += i + len(part)
	}
}

// lineOf is the number of the line in which byte i of text is.
func lineOf(text string, i int) int { return strings.Count(text[:i], "\n") + 1 }

// numbers lists the lines of at, not too many of them.
func numbers(text string, at []int) string {
	const most = 20
	var ns []string
	for i, a := range at {
		if i == most {
			ns = append(ns, "...")
			break
		}
		ns = append(ns, fmt.Sprint(lineOf(text, a)))
	}
	return strings.Join(ns, ", ")
}

// missing says why old was not found, as well as can be told.
func missing(name, text, old string) error {
	have, want := strings.Split(text, "\n"), strings.Split(strings.Trim(old, "\r\n"), "\n")
	if bare, ok := unnumbered(want); ok {
		if at := find(have, bare, trimmed); at >= 0 {
			return fmt.Errorf("old_text is not in %s, but without the line numbers it is, at line %d: leave out the numbers and tabs that read_file shows", name, at+1)
		}
	}
	if strings.TrimSpace(old) == "" {
		return fmt.Errorf("old_text is not in %s: there is no such whitespace", name)
	}
	if at := find(have, want, squeezed); at >= 0 {
		return fmt.Errorf("old_text is not in %s, but lines %d-%d are the same apart from whitespace. They are:\n%s", name, at+1, at+len(want),
			numbered(have, at, min(at+len(want), at+snippetMost)))
	}
	for i, line := range want {
		if len(squeezed(line)) < 4 {
			continue // a brace says nothing
		}
		if at := find(have, want[i:i+1], squeezed); at >= 0 {
			from := max(0, at-i-1)
			return fmt.Errorf("old_text is not in %s. Its line %d is there as line %d, but what is around it differs:\n%s", name, i+1, at+1,
				numbered(have, from, min(len(have), from+len(want)+2, from+snippetMost)))
		}
		break
	}
	return fmt.Errorf("old_text is not in %s: read the file again, it may have changed", name)
}

// find finds lines in others, compared as norm leaves them; -1 when they are not there.
func find(have, want []string, norm func(string) string) int {
	normal := func(lines []string) []string {
		out := make([]string, len(lines))
		for i, line := range lines {
			out[i] = norm(line)
		}
		return out
	}
	have, want = normal(have), normal(want)
	for at := 0; at+len(want) <= len(have); at++ {
		if slices.Equal(have[at:at+len(want)], want) {
			return at
		}
	}
	return -1
}

func trimmed(line string) string { return strings.TrimRight(line, "\r") }

// squeezed leaves out all whitespace.
func squeezed(line string) string { return strings.Join(strings.Fields(line), "") }

// unnumbered leaves out the number and the tab that read_file puts before each line; ok if all lines have them.
func unnumbered(lines []string) (bare []string, ok bool) {
	for _, line := range lines {
		number, text, found := strings.Cut(strings.TrimLeft(line, " "), "\t")
		if _, err := strconv.Atoi(number); !found || err != nil {
			return nil, false
		}
		bare = append(bare, text)
	}
	return bare, true
}

const (
	snippetAround = 3  // lines before and after what changed
	snippetMost   = 40 // lines in all
)

// shown is what the model sees of an edit: the new text with its line numbers and some lines around it.
func shown(name, after string, changed []span) string {
	lines := strings.Split(after, "\n")
	first, last := lineOf(after, changed[0].from)-1, lineOf(after, changed[0].to)-1
	from := max(0, first-snippetAround)
	to := min(len(lines), last+1+snippetAround)
	if to == len(lines) && to > 0 && lines[to-1] == "" {
		to-- // what follows the last newline is no line
	}
	var b strings.Builder
	if len(changed) == 1 {
		fmt.Fprintf(&b, "Edited %s:\n", name)
	} else {
		var at []int
		for _, c := range changed {
			at = append(at, c.from)
		}
		fmt.Fprintf(&b, "Edited %s at %d places (lines %s). The first:\n", name, len(changed), numbers(after, at))
	}
	if to-from <= snippetMost {
		b.WriteString(numbered(lines, from, to))
		return b.String()
	}
	b.WriteString(numbered(lines, from, from+snippetMost/2))
	fmt.Fprintf(&b, "...\n%s", numbered(lines, to-snippetMost/2, to))
	return b.String()
}

// numbered shows lines[from:to] as read_file does.
func numbered(lines []string, from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		line := strings.ToValidUTF8(strings.TrimRight(lines[i], "\r"), "\uFFFD")
		if len(line) > readLine {
			cut := readLine
			for !utf8.RuneStart(line[cut]) {
				cut--
			}
			line = line[:cut] + " ..."
		}
		fmt.Fprintf(&b, "%d\t%s\n", i+1, line)
	}
	return b.String()
}
