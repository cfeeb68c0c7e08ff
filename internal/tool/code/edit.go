package code

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"muster"
	"muster/internal/editdist"
	"muster/internal/textmatch"
)

// editInput is the input of edit_file: one change, or several in Edits.
type editInput struct {
	Path       string   `json:"path"`
	OldText    string   `json:"old_text,omitempty" jsonschema:"as in the file, without line numbers"`
	NewText    string   `json:"new_text,omitempty"`
	ReplaceAll bool     `json:"replace_all,omitempty"`
	Edits      []change `json:"edits,omitempty" jsonschema:"several changes in order, all or none"`
}

// change replaces a text by another.
type change struct {
	OldText    string `json:"old_text"`
	NewText    string `json:"new_text"`
	ReplaceAll bool   `json:"replace_all,omitempty"`
	Path       string `json:"path,omitempty" jsonschema:"-"` // which models repeat here
}

// The limits of an edit. The whole file is held in memory, before and after.
const (
	maxEditBytes = 20 << 20 // of a file, before and after
	// A file with more lines is not searched for lines that are similar to an old text that it does not have, nor is
	// it for an old text of more lines.
	maxSimilarLines, maxSimilarText = 100_000, 2000
)

// edit reads a file, replaces the text in it and writes it back. If anything is wrong, the file stays as it
// is.
func (t toolset) edit(ctx context.Context, in editInput) (string, error) {
	at, err := t.open(ctx, in.Path, true)
	if err != nil {
		return "", err
	}
	defer at.root.Close()
	// The mode of the old file is kept, and its content is needed whole to find how often the text occurs.
	before, form, old, err := t.readText(ctx, at)
	if err != nil {
		return "", err
	}
	after, shown, err := editText(at.show, before, in)
	hasChanged := t.seen.hasChanged(at, before)
	switch {
	case err != nil && hasChanged:
		return "", fmt.Errorf("%w\n%s has changed since you read it", err, at.show)
	case err != nil:
		return "", err
	case hasChanged:
		shown += changedNote(at.show)
	}
	content, err := form.encode(before, after)
	if err != nil {
		return "", fmt.Errorf("%s is not changed: %w", at.show, err)
	}
	if err := noteChanges(ctx, FileChange{Path: at.show, Before: before, After: after}); err != nil {
		return "", err
	}
	// A change that somebody else has made since the file was read is lost here. But only the member
	// itself, and the commands that it has started, write in its working directory.
	if err := at.replace(content, old); err != nil {
		return "", at.explain(err)
	}
	t.seen.noteText(at, after)
	return shown + t.newSyntaxErrors(ctx, at, before, after), nil
}

// editText makes the changes of a call, all or none. It returns the text after them, and what the model reads.
func editText(name, before string, in editInput) (after, shown string, err error) {
	list := in.Edits
	switch one := (change{OldText: in.OldText, NewText: in.NewText, ReplaceAll: in.ReplaceAll}); {
	case len(list) == 0:
		list = []change{one}
	case in.OldText != "" || in.NewText != "":
		return "", "", errors.New("give either old_text and new_text, or edits: nothing is changed")
	}
	after = before
	for i, c := range list {
		if c.Path != "" && filepath.Clean(c.Path) != filepath.Clean(in.Path) {
			return "", "", fmt.Errorf("edit %d of %d is of %s, and one call changes one file: nothing is changed. "+
				"Call edit_file once for each file", i+1, len(list), c.Path)
		}
		next, places, changed, err := replaceText(name, after, c)
		if err != nil && len(list) > 1 {
			return "", "", fmt.Errorf("edit %d of %d: %w\nNone of the edits is made", i+1, len(list), err)
		}
		if err != nil {
			return "", "", err
		}
		if next == after { // apart from what the file has in its own way
			return "", "", fmt.Errorf("%s already has new_text there: nothing would change", name)
		}
		after = next
		shown = describeEdit(name, after, places[0].New, changed)
	}
	if len(list) > 1 {
		if after == before {
			return "", "", fmt.Errorf("the edits undo each other: nothing would change in %s", name)
		}
		shown = describeChange(fmt.Sprintf("Edited %s with %d edits:\n", name, len(list)), before, after)
	}
	return after, shown, nil
}

// describeChange shows the lines of after from the first to the last that differs.
func describeChange(title, before, after string) string {
	head, tail := editdist.CommonEnds([]byte(before), []byte(after))
	return title + showLines(after, head, len(after)-tail)
}

// readText reads a file that is to be changed, as UTF-8, and returns how it is to be written, also of a file that does
// not exist yet. The error is in the model's words.
func (t toolset) readText(ctx context.Context, at confinedPath) (string, charset, fs.FileInfo, error) {
	given := t.givenCharset(ctx, at)
	fi, err := at.stat()
	switch {
	case errors.Is(err, muster.ErrNotFound):
		return "", *cmp.Or(given, &charset{}), nil, fmt.Errorf("%w (write_file makes new files)", err)
	case err != nil:
		return "", charset{}, nil, err
	case fi.Size() > maxEditBytes:
		return "", charset{}, nil, fmt.Errorf("%s is too large for edit_file (%s): use bash", at.show,
			formatSize(fi.Size()))
	}
	f, err := at.openRegular(at.rel)
	if err != nil {
		return "", charset{}, nil, at.explain(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxEditBytes)) // the file may have grown since it was measured
	if err != nil {
		return "", charset{}, nil, at.explain(err)
	}
	content, form, err := decodeFile(data, given)
	if err != nil {
		return "", charset{}, nil, fmt.Errorf("%s is %w: use bash", at.show, err)
	}
	return content, form, fi, nil
}

// replaceText replaces what in says. It returns the places, and in changed where in after the new texts begin. name is
// the file's, for errors.
func replaceText(name, before string, in change) (after string, places []textmatch.Place, changed []int, err error) {
	switch {
	case in.OldText == "":
		return "", nil, nil, errors.New("old_text is empty: give the text to replace (write_file makes new files)")
	case in.OldText == in.NewText:
		return "", nil, nil, errors.New("old_text and new_text are the same: nothing would change")
	}
	// The size is looked at before anything is made that large.
	if size := len(before) + strings.Count(before, in.OldText)*(len(in.NewText)-len(in.OldText)); size > maxEditBytes &&
		in.ReplaceAll {
		return "", nil, nil, fmt.Errorf("%s would have %s, and edit_file writes %s at most: use bash", name,
			formatSize(int64(size)), formatSize(maxEditBytes))
	}
	after, places, err = textmatch.Replace(before, in.OldText, in.NewText, in.ReplaceAll)
	switch {
	case errors.Is(err, textmatch.ErrTooMany):
		return "", nil, nil, fmt.Errorf("old_text occurs %d times in %s, and edit_file replaces %d at most: use bash",
			max(strings.Count(before, in.OldText), textmatch.MaxPlaces+1), name, textmatch.MaxPlaces)
	case errors.Is(err, textmatch.ErrIndent):
		return "", nil, nil, fmt.Errorf("old_text is in %s with another indentation: read the part again, and copy "+
			"old_text exactly", name)
	case err != nil:
		return "", nil, nil, explainMissing(name, before, in.OldText)
	}
	var starts []int
	grown := 0
	for _, p := range places {
		starts, changed = append(starts, p.Start), append(changed, p.Start+grown)
		grown += len(p.New) - (p.End - p.Start)
	}
	if len(places) > 1 && !in.ReplaceAll {
		return "", nil, nil, fmt.Errorf("old_text occurs %d times in %s (lines %s): "+
			"give more lines around it, or set replace_all", len(starts), name, lineNumbers(before, starts))
	}
	return after, places, changed, nil
}

// lineNumber returns the number of the line that holds byte i of text.
func lineNumber(text string, i int) int { return strings.Count(text[:i], "\n") + 1 }

// lineNumbers lists the numbers of the lines that hold the bytes at starts, the first 20 of them.
func lineNumbers(text string, starts []int) string {
	const most = 20
	var numbers []string
	for _, start := range starts[:min(len(starts), most)] {
		numbers = append(numbers, fmt.Sprint(lineNumber(text, start)))
	}
	if len(starts) > most {
		numbers = append(numbers, "...")
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
	title := fmt.Sprintf("Edited %s:\n", name)
	if len(changed) > 1 {
		title = fmt.Sprintf("Edited %s at %d places (lines %s). The first:\n",
			name, len(changed), lineNumbers(after, changed))
	}
	return title + showLines(after, changed[0], changed[0]+len(inserted))
}

// showLines shows the lines of bytes start to end with their numbers, and some lines around them. Of many only the
// beginning and the end are shown.
func showLines(text string, start, end int) string {
	from := max(0, lineNumber(text, start)-1-contextLines)
	to := min(countLines(text), lineNumber(text, end)+contextLines)
	if to-from <= maxSnippetLines {
		return numberText(text, from, to)
	}
	return numberText(text, from, from+maxSnippetLines/2) + "...\n" +
		numberText(text, to-maxSnippetLines/2, to)
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
