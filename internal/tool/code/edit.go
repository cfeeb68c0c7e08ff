package code

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
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

// maxEditBytes is the size of the largest file that can be edited. The whole file is held in memory.
const maxEditBytes = 20 << 20

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
	data, err := s.root.ReadFile(s.rel)
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
	lines := slices.Collect(strings.Lines(after))
	from := max(0, lineNumber(after, changed[0])-1-contextLines)
	to := min(len(lines), lineNumber(after, changed[0]+len(inserted))+contextLines)
	title := fmt.Sprintf("Edited %s:\n", name)
	if len(changed) > 1 {
		title = fmt.Sprintf("Edited %s at %d places (lines %s). The first:\n",
			name, len(changed), lineNumbers(after, changed))
	}
	// Of a long change only the beginning and the end are shown.
	if to-from <= maxSnippetLines {
		return title + numberLines(lines, from, to)
	}
	return title + numberLines(lines, from, from+maxSnippetLines/2) + "...\n" +
		numberLines(lines, to-maxSnippetLines/2, to)
}
