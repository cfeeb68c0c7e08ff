package code

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"muster"
	"muster/llm"
	"muster/tool"
)

// editInput is the input of edit_file.
type editInput struct {
	Path       string `json:"path"`
	OldText    string `json:"old_text" jsonschema:"exactly as in the file"`
	NewText    string `json:"new_text"`
	ReplaceAll bool   `json:"replace_all,omitempty"`
}

// The limits of an edit. The whole file is held in memory, before and after.
const (
	maxEditBytes  = 20 << 20 // of a file, before and after
	maxEditPlaces = 100_000  // at which one call replaces text
	// A file with more lines is not searched for lines that are similar to an old text that it does not have, nor is
	// it for an old text of more lines.
	maxSimilarLines, maxSimilarText = 100_000, 2000
)

// editTool returns the tool edit_file.
func (t toolset) editTool() llm.Tool {
	return tool.Func("edit_file", "Change a part of a file: replaces text that occurs exactly once, "+
		"or everywhere with replace_all.", t.edit, tool.NeedsPlan())
}

// edit reads a file, replaces the text in it and writes it back. If anything is wrong, the file stays as it
// is.
func (t toolset) edit(ctx context.Context, in editInput) (string, error) {
	at, err := t.open(ctx, in.Path, true)
	if err != nil {
		return "", err
	}
	defer at.root.Close()
	// The mode of the old file is kept, and its content is needed whole to find how often the text occurs.
	before, old, err := at.readText()
	if err != nil {
		return "", err
	}
	after, inserted, changed, err := replaceText(at.show, before, in)
	if err != nil {
		return "", err
	}
	// A change that somebody else has made since the file was read is lost here. But only the member
	// itself, and the commands that it has started, write in its working directory.
	if err := at.replace(after, old); err != nil {
		return "", at.explain(err)
	}
	return describeEdit(at.show, after, inserted, changed), nil
}

// readText reads a file that is to be edited. The error is in the model's words.
func (s confinedPath) readText() (string, fs.FileInfo, error) {
	fi, err := s.stat()
	switch {
	case errors.Is(err, muster.ErrNotFound):
		return "", nil, fmt.Errorf("%w (write_file makes new files)", err)
	case err != nil:
		return "", nil, err
	case fi.Size() > maxEditBytes:
		return "", nil, fmt.Errorf("%s is too large for edit_file (%s): use bash", s.show, formatSize(fi.Size()))
	}
	f, err := s.openRegular(s.rel)
	if err != nil {
		return "", nil, s.explain(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxEditBytes)) // the file may have grown since it was measured
	if err != nil {
		return "", nil, s.explain(err)
	}
	if isBinary(data[:min(len(data), sniffedBytes)]) {
		return "", nil, fmt.Errorf("%s is not text: use bash", s.show)
	}
	return string(data), fi, nil
}

// replaceText replaces what in says. It returns the text that was inserted, with line ends as in the file,
// and the indexes in after at which it stands. name is the file's, for errors.
func replaceText(name, before string, in editInput) (after, new string, changed []int, err error) {
	old := in.OldText
	new = in.NewText
	switch {
	case old == "":
		return "", "", nil, errors.New("old_text is empty: give the text to replace (write_file makes new files)")
	case old == new:
		return "", "", nil, errors.New("old_text and new_text are the same: nothing would change")
	}
	if strings.Contains(before, "\r\n") && !strings.Contains(old, "\r\n") && strings.Contains(old+new, "\n") {
		// read_file shows lines without their ends, so the model writes newlines where the file has CRLF.
		// The new lines get CRLF as well. In a file with both kinds old may only match as it is; then
		// nothing is converted.
		if crlf := toCRLF(old); strings.Contains(before, crlf) {
			old, new = crlf, toCRLF(new)
		}
	}
	places := strings.Count(before, old)
	switch size := len(before) + places*(len(new)-len(old)); {
	case places > maxEditPlaces:
		return "", "", nil, fmt.Errorf("old_text occurs %d times in %s, and edit_file replaces %d at most: use bash",
			places, name, maxEditPlaces)
	case size > maxEditBytes && in.ReplaceAll:
		return "", "", nil, fmt.Errorf("%s would have %s, and edit_file writes %s at most: use bash", name,
			formatSize(int64(size)), formatSize(maxEditBytes))
	}
	// starts are the places of old in before, changed those of new in the result.
	var starts []int
	for from := 0; ; from = starts[len(starts)-1] + len(old) {
		i := strings.Index(before[from:], old)
		if i < 0 {
			break
		}
		changed = append(changed, from+i+len(starts)*(len(new)-len(old)))
		starts = append(starts, from+i)
	}
	switch {
	case len(starts) == 0:
		return "", "", nil, explainMissing(name, before, in.OldText)
	case len(starts) > 1 && !in.ReplaceAll:
		return "", "", nil, fmt.Errorf("old_text occurs %d times in %s (lines %s): "+
			"give more lines around it, or set replace_all", len(starts), name, lineNumbers(before, starts))
	}
	return strings.ReplaceAll(before, old, new), new, changed, nil
}

// toCRLF ends each line with CRLF.
func toCRLF(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}

// lineNumber returns the number of the line that holds byte i of text.
func lineNumber(text string, i int) int { return strings.Count(text[:i], "\n") + 1 }

// lineNumbers lists the numbers of the lines that hold the bytes at starts, the first 20 of them.
func lineNumbers(text string, starts []int) string {
	const most = 20
	var numbers []string
	for i, start := range starts {
		if i == most {
			numbers = append(numbers, "...")
			break
		}
		numbers = append(numbers, fmt.Sprint(lineNumber(text, start)))
	}
	return strings.Join(numbers, ", ")
}

const (
	contextLines    = 3  // that are shown before and after a change
	maxSnippetLines = 40 // that are shown in all
)

// describeEdit shows the model what it has changed: the new text with its line numbers and some lines
// around it.
func describeEdit(name, after, inserted string, changed []int) string {
	from := max(0, lineNumber(after, changed[0])-1-contextLines)
	to := min(countLines(after), lineNumber(after, changed[0]+len(inserted))+contextLines)
	title := fmt.Sprintf("Edited %s:\n", name)
	if len(changed) > 1 {
		title = fmt.Sprintf("Edited %s at %d places (lines %s). The first:\n",
			name, len(changed), lineNumbers(after, changed))
	}
	// Of a long change only the beginning and the end are shown.
	if to-from <= maxSnippetLines {
		return title + numberText(after, from, to)
	}
	return title + numberText(after, from, from+maxSnippetLines/2) + "...\n" +
		numberText(after, to-maxSnippetLines/2, to)
}

// countLines returns the number of lines; the last one may lack its newline.
func countLines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}

// numberText is numberLines for the lines of a text, which need not be taken apart.
func numberText(text string, from, to int) string {
	var b strings.Builder
	i := 0
	for line := range strings.Lines(text) {
		if i++; i > to {
			break
		}
		if i > from {
			writeNumbered(&b, i, line)
		}
	}
	return b.String()
}

// explainMissing says why an edit has not found its old text: the model most often gets the whitespace
// wrong, copies the line numbers that read_file shows, or has not seen a later change.
func explainMissing(name, text, old string) error {
	if strings.Count(text, "\n") > maxSimilarLines || strings.Count(old, "\n") > maxSimilarText {
		return fmt.Errorf("old_text is not in %s: read the part again that you want to change", name)
	}
	// The newlines at both ends of old are left out, because the lines between them are what the model means.
	have, want := strings.Split(text, "\n"), strings.Split(strings.Trim(old, "\r\n"), "\n")
	if bare, ok := cutLineNumbers(want); ok {
		if at := findLines(have, bare, trimCR); at >= 0 {
			return fmt.Errorf("old_text is not in %s, but without the line numbers it is, at line %d: "+
				"leave out the numbers and tabs that read_file shows", name, at+1)
		}
	}
	if strings.TrimSpace(old) == "" {
		return fmt.Errorf("old_text is not in %s: there is no such whitespace", name)
	}
	if at := findLines(have, want, removeSpace); at >= 0 {
		return fmt.Errorf("old_text is not in %s, but lines %d-%d are the same apart from whitespace. They are:\n%s",
			name, at+1, at+len(want), numberLines(have, at, min(at+len(want), at+maxSnippetLines)))
	}
	// The first line that says something shows the place that is meant, if it is there. A brace alone says
	// nothing.
	i := slices.IndexFunc(want, func(line string) bool { return len(removeSpace(line)) >= 4 })
	if i >= 0 {
		if at := findLines(have, want[i:i+1], removeSpace); at >= 0 {
			from := max(0, at-i-1)
			to := min(len(have), from+len(want)+2, from+maxSnippetLines)
			return fmt.Errorf("old_text is not in %s. Its line %d is there as line %d, "+
				"but what is around it differs:\n%s", name, i+1, at+1, numberLines(have, from, to))
		}
	}
	return fmt.Errorf("old_text is not in %s: read the file again, it may have changed", name)
}

// findLines returns the index in have of the first line of want, or -1. Lines are compared as normalize
// leaves them.
func findLines(have, want []string, normalize func(string) string) int {
	normalizeAll := func(lines []string) []string {
		out := make([]string, len(lines))
		for i, line := range lines {
			out[i] = normalize(line)
		}
		return out
	}
	have, want = normalizeAll(have), normalizeAll(want)
	for at := 0; at+len(want) <= len(have); at++ {
		if slices.Equal(have[at:at+len(want)], want) {
			return at
		}
	}
	return -1
}

// trimCR removes the carriage return of a line that ends with CRLF.
func trimCR(line string) string { return strings.TrimRight(line, "\r") }

// removeSpace removes all whitespace of a line.
func removeSpace(line string) string { return strings.Join(strings.Fields(line), "") }

// cutLineNumbers removes the number and the tab that read_file puts before each line. ok is false unless
// every line has them.
func cutLineNumbers(lines []string) (bare []string, ok bool) {
	for _, line := range lines {
		number, text, found := strings.Cut(strings.TrimLeft(line, " "), "\t")
		if _, err := strconv.Atoi(number); !found || err != nil {
			return nil, false
		}
		bare = append(bare, text)
	}
	return bare, true
}

// writeInput is the input of write_file.
type writeInput struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

// writeTool returns the tool write_file.
func (t toolset) writeTool() llm.Tool {
	return tool.Func("write_file", "Write a whole file: a new one, or all of one. To change a part, use edit_file.",
		t.write, tool.NeedsPlan())
}

// write replaces a file or makes a new one.
func (t toolset) write(ctx context.Context, in writeInput) (string, error) {
	at, err := t.open(ctx, in.Path, true)
	if err != nil {
		return "", err
	}
	defer at.root.Close()
	verb := "Wrote"
	old, err := at.stat()
	switch {
	case errors.Is(err, muster.ErrNotFound):
		verb = "Made"
	case err != nil:
		return "", err
	}
	if err := at.replace(in.Content, old); err != nil {
		return "", at.explain(err)
	}
	return fmt.Sprintf("%s %s: %s.", verb, at.show, plural(countLines(in.Content), "line")), nil
}

// replace writes content to the file. old describes the file, whose mode is kept. It is nil if there is
// none: then the missing directories are made, too. The content goes to a temporary file first, and its
// rename puts it in place: who reads the file meanwhile sees all of the old content or all of the new, also
// if this process is killed.
func (s confinedPath) replace(content string, old fs.FileInfo) (err error) {
	dir := filepath.Dir(s.rel)
	if old == nil {
		if err := s.root.MkdirAll(dir, 0o777); err != nil {
			return err
		}
	}
	// The temporary file is in the same directory, because a rename across file systems fails. Its random
	// name keeps two writes at the same time apart.
	temp := filepath.Join(dir, ".write-"+rand.Text())
	f, err := s.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = s.root.Remove(temp) // the first error is the one to report
		}
	}()
	_, err = f.WriteString(content)
	if old != nil {
		err = errors.Join(err, f.Chmod(old.Mode().Perm()))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return s.root.Rename(temp, s.rel)
}
