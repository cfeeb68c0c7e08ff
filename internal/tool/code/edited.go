package code

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"muster/internal/difflines"
	"muster/llm"
	"muster/tool"
)

// Edit is the difference that one call of edit_file, write_file or apply_patch makes. That of EditOf is what the input
// tells: what write_file replaces is not in it, and the numbers of lines are known for whole files only. That of
// ReadUnified is what the call has changed. Its texts are a model's, and may hold anything.
type Edit struct {
	Lines   []difflines.Line
	Files   []string // of ReadUnified: the names, with what else happens to the files, such as "a.go (new)"
	Added   int
	Removed int
	IsNew   bool // of ReadUnified: the difference is one file, which is new
	IsCut   bool // of ReadUnified: lines are left out, or cut

	heads []FileChange // of lines of kind File, in their order, without texts
}

// These stand behind the name of a file that an edit makes, deletes or moves.
const (
	NewSuffix     = " (new)"
	deletedSuffix = " (deleted)"
	movedArrow    = " → "
)

// EditOf returns the difference that a call makes. ok is false for calls of other tools, and for input that the tool
// refuses to read.
func EditOf(c llm.Call) (e Edit, ok bool) {
	if e, ok = editOf(c); ok {
		difflines.Mark(e.Lines)
	}
	return e, ok
}

func editOf(c llm.Call) (e Edit, ok bool) {
	switch c = AsPatch(c); c.Name {
	case "write_file":
		in, ok := fitted[writeInput](c)
		e.addFile(in.Path, in.Content)
		return e, ok
	case "edit_file":
		in, ok := fitted[editInput](c)
		if len(in.Edits) == 0 {
			in.Edits = []change{{OldText: in.OldText, NewText: in.NewText, ReplaceAll: in.ReplaceAll}}
		}
		for _, x := range in.Edits {
			where := ""
			if x.ReplaceAll {
				where = "everywhere in the file"
			}
			e.addChange(in.Path, where, x.OldText, x.NewText)
		}
		return e, ok
	case "apply_patch":
		in, ok := fitted[patchInput](c)
		files, err := parsePatch(in.Input)
		for _, f := range files {
			e.addPatched(f)
		}
		return e, ok && err == nil
	}
	return e, false
}

// fitted returns the input of a call as its tool reads it.
func fitted[In any](c llm.Call) (in In, ok bool) {
	input := tool.Fit(tool.Func[In](c.Name, "", nil), c.Input)
	return in, json.Unmarshal(input, &in) == nil
}

// addFile adds the content of a whole file.
func (e *Edit) addFile(path, content string) {
	for i, line := range linesOf(content) {
		e.Lines = append(e.Lines, difflines.Line{Kind: difflines.Added, File: path, Text: line, New: i + 1})
		e.Added++
	}
}

func (e *Edit) addPatched(f *patchFile) {
	name := f.path
	if f.isDiff {
		name = bareName(name)
	}
	path := name
	switch {
	case f.isAdd:
		name += NewSuffix
	case f.isGone:
		name += deletedSuffix
	case f.to != "" && f.to != f.path:
		name += movedArrow + f.to
	}
	e.Lines = append(e.Lines, difflines.Line{Kind: difflines.File, File: path, Text: name})
	head := FileChange{Path: path, IsNew: f.isAdd, IsGone: f.isGone}
	if f.to != "" && f.to != f.path {
		head.From, head.Path = path, f.to
	}
	e.heads = append(e.heads, head)
	e.addFile(path, f.content.String())
	for _, h := range f.hunks {
		e.addChange(path, strings.Join(h.headers, " "), h.old.String(), h.new.String())
	}
}

// addChange adds the lines of a text that another one replaces. where says in what part of the file, "" if unknown.
func (e *Edit) addChange(path, where, before, after string) {
	isNext := len(e.Lines) > 0 && e.Lines[len(e.Lines)-1].Kind != difflines.File
	if isNext || where != "" {
		e.Lines = append(e.Lines, difflines.Line{Kind: difflines.Gap, Text: where})
	}
	before, after = wholeLines(before), wholeLines(after)
	at := 0
	for _, x := range udiff.Lines(before, after) {
		e.add(path, difflines.Context, before[at:x.Start])
		e.Removed += e.add(path, difflines.Removed, before[x.Start:x.End])
		e.Added += e.add(path, difflines.Added, x.New)
		at = x.End
	}
	e.add(path, difflines.Context, before[at:])
}

// add adds lines without a number, and returns how many.
func (e *Edit) add(path string, kind difflines.Kind, lines string) (n int) {
	for _, line := range linesOf(lines) {
		e.Lines = append(e.Lines, difflines.Line{Kind: kind, File: path, Text: line})
		n++
	}
	return n
}

// wholeLines returns a text that ends with a newline, unless it is empty.
func wholeLines(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	return s
}

func linesOf(s string) (all []string) {
	for line := range strings.Lines(wholeLines(s)) {
		all = append(all, strings.TrimSuffix(line, "\n"))
	}
	return all
}

// previewContext is how many lines of context a preview has before and after a change.
const previewContext = 1

// Preview returns at most n lines that are removed and added, with some lines next to them, the names of files, and
// gaps for other lines of context. Blank lines of a new file do not count.
func (e Edit) Preview(n int) (lines []difflines.Line) {
	isChange := func(at int) bool {
		return at >= 0 && at < len(e.Lines) &&
			(e.Lines[at].Kind == difflines.Removed || e.Lines[at].Kind == difflines.Added)
	}
	isNear := func(at int) bool {
		for i := at - previewContext; i <= at+previewContext; i++ {
			if isChange(i) {
				return true
			}
		}
		return false
	}
	// Blank lines at the edges are left out.
	isEdge := func(at int) bool {
		return strings.TrimSpace(e.Lines[at].Text) == "" &&
			!(at > 0 && isNear(at-1) && at+1 < len(e.Lines) && isNear(at+1))
	}
	isGap, changes, shown := false, 0, 0 // lines up to the last change and the context after it
	for i, l := range e.Lines {
		if l.Kind == difflines.Gap || l.Kind == difflines.Context && (!isNear(i) || isEdge(i)) {
			isGap = true
			continue
		}
		if isChange(i) && !(e.IsNew && strings.TrimSpace(l.Text) == "") {
			changes++
		}
		if changes > n || len(lines) >= 2*n+2*previewContext {
			return lines[:shown]
		}
		if isGap && len(lines) > 0 && l.Kind != difflines.File && lines[len(lines)-1].Kind != difflines.File {
			lines = append(lines, difflines.Line{Kind: difflines.Gap})
		}
		isGap = false
		lines = append(lines, l)
		if isChange(i) || l.Kind == difflines.Meta || l.Kind == difflines.Context && shown == len(lines)-1 {
			shown = len(lines)
		}
	}
	return lines
}

// Bare returns the difference without lines of context.
func (e Edit) Bare() Edit {
	e.Lines = slices.Clone(e.Lines)
	for i := range e.Lines {
		if e.Lines[i].Kind == difflines.Context {
			e.Lines[i] = difflines.Line{Kind: difflines.Gap}
		}
	}
	return e
}

// Counts says how many lines are added and removed, as "+12 -3".
func (e Edit) Counts() string {
	switch {
	case e.Removed == 0:
		return fmt.Sprintf("+%d", e.Added)
	case e.Added == 0:
		return fmt.Sprintf("-%d", e.Removed)
	}
	return fmt.Sprintf("+%d -%d", e.Added, e.Removed)
}

// changes returns the files of the difference, as far as it tells: without the lines around those that change.
func (e Edit) changes() (all []FileChange) {
	heads := e.heads
	for _, l := range e.Lines {
		switch {
		case l.Kind == difflines.File && len(heads) > 0:
			all, heads = append(all, heads[0]), heads[1:]
		case len(all) == 0 && l.IsCode(): // a call that edits one file has no heads
			all = append(all, FileChange{Path: l.File})
		}
		if !l.IsCode() {
			continue
		}
		c := &all[len(all)-1]
		if l.Kind != difflines.Added {
			c.Before += l.Text + "\n"
		}
		if l.Kind != difflines.Removed {
			c.After += l.Text + "\n"
		}
	}
	return all
}

// UnifiedCall is Unified for a call that does not fit the files of this moment, by what its input says.
func UnifiedCall(c llm.Call, hide func(string) string, most int) string {
	e, ok := EditOf(c)
	if !ok {
		return ""
	}
	diff, _, _ := Unified(e.changes(), hide, most)
	if diff == "" {
		return ""
	}
	return asCalled + "\n" + diff
}
