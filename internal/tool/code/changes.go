package code

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"muster/internal/difflines"
	"muster/internal/editdist"
	"muster/internal/text"
	"muster/llm"
)

// FileChange is a file as a call of edit_file, write_file or apply_patch finds it, and as it leaves it.
type FileChange struct {
	Path, From    string // From is where it was moved from; "": it was not
	Before, After string
	IsNew, IsGone bool
	// IsUnread says that Before is not known: the file is too long, or cannot be read.
	IsUnread bool
}

type changesKey struct{}

// changesNote is what a context has for the tools that change files.
type changesNote struct {
	note      func([]FileChange)
	isPreview bool // nothing is written
}

var errPreview = errors.New("nothing is written: only the change was asked for")

// WithChanges returns a context in which a call of edit_file, write_file or apply_patch tells note, right before it
// writes, what it changes.
func WithChanges(ctx context.Context, note func([]FileChange)) context.Context {
	return context.WithValue(ctx, changesKey{}, changesNote{note: note})
}

// Preview returns what a call would change in a place, and writes nothing. It is nil for calls that edit no files, and
// for one that would fail.
func Preview(ctx context.Context, p Place, c llm.Call) (changes []FileChange) {
	ctx = context.WithValue(ctx, changesKey{}, changesNote{func(all []FileChange) { changes = all }, true})
	t := newToolset(p, nil, nil, Options{}) // it has no record of reads, so it refuses no file
	// Each of them ends with an error, at the latest with errPreview.
	switch c = AsPatch(c); c.Name {
	case "edit_file":
		if in, ok := fitted[editInput](c); ok {
			_, _ = t.edit(ctx, in)
		}
	case "write_file":
		if in, ok := fitted[writeInput](c); ok {
			_, _ = t.write(ctx, in)
		}
	case "apply_patch":
		if in, ok := fitted[patchInput](c); ok {
			_, _ = t.patch(ctx, in)
		}
	}
	return changes
}

func isPreview(ctx context.Context) bool {
	n, _ := ctx.Value(changesKey{}).(changesNote)
	return n.isPreview
}

// noteChanges reports changes to the observer of the context. After an error the caller must not write.
func noteChanges(ctx context.Context, changes ...FileChange) error {
	n, _ := ctx.Value(changesKey{}).(changesNote)
	if n.note != nil {
		n.note(changes)
	}
	if n.isPreview {
		return errPreview
	}
	return nil
}

const (
	maxDiffed    = 1 << 20 // bytes before and after, between what the two have in common, that are compared
	maxDiffLine  = 500     // bytes of a line
	maxDiffFiles = 200     // files that are named
)

// Placeholders for what a diff leaves out, and notes. Other programs skip such lines.
const (
	// ChangedSince stands before a change that is another one than that which was shown before.
	ChangedSince = "... the change is another one since your answer\n"

	tooLong   = "... too long to compare: all between its first and its last change counts"
	notRead   = "... what it replaces cannot be shown"
	notShown  = "... +%d -%d not shown"
	moreFiles = " more files"
	onlyEnds  = "... only the ends of lines change"
	asCalled  = "... as the call says: it does not fit the files of this moment"
)

// Unified returns changes as a unified diff, and how many lines are added and removed. hide removes secrets from it;
// nil: it has none. Lines beyond most bytes are left out, but each file is named, up to maxDiffFiles, with the
// number of lines that are not shown. Long lines are cut.
func Unified(changes []FileChange, hide func(string) string, most int) (diff string, added, removed int) {
	var b strings.Builder
	for i, c := range changes {
		lines, come, gone := c.lines(hide)
		added, removed = added+come, removed+gone
		if i >= maxDiffFiles {
			continue
		}
		from, to := "a/"+text.OneLine(c.Path), "b/"+text.OneLine(c.Path)
		switch {
		case c.IsNew:
			from = "/dev/null"
		case c.IsGone:
			to = "/dev/null"
		case c.From != "":
			from = "a/" + text.OneLine(c.From)
		}
		head := fmt.Sprintf("--- %s\n+++ %s\n", from, to)
		if hide != nil {
			head = hide(head)
		}
		b.WriteString(head)
		switch {
		case c.IsUnread:
			b.WriteString(notRead + "\n")
		case come+gone == 0 && c.Before != c.After:
			b.WriteString(onlyEnds + "\n")
		case lines == nil && come+gone > 0:
			b.WriteString(tooLong + "\n")
		}
		for _, h := range hunks(lines) {
			h, room := h.cut(most)
			most = room
			come, gone = come-h.count(difflines.Added), gone-h.count(difflines.Removed)
			h.write(&b)
		}
		if come+gone > 0 {
			fmt.Fprintf(&b, notShown+"\n", come, gone)
		}
	}
	if n := len(changes) - maxDiffFiles; n > 0 {
		fmt.Fprintf(&b, "... %d%s\n", n, moreFiles)
	}
	return b.String(), added, removed
}

// lines returns the lines of the difference with some context, and the heads of its hunks. There are none where the
// difference is too long to be compared.
func (c *FileChange) lines(hide func(string) string) (lines []difflines.Line, added, removed int) {
	before, after := wholeLines(c.Before), wholeLines(c.After)
	// Only what lies between the common ends is compared, with the lines of context around it.
	head, tail := editdist.CommonEnds([]byte(before), []byte(after))
	from, to := head, len(before)-tail
	for range contextLines + 1 {
		from = strings.LastIndexByte(before[:max(from, 0)], '\n')
		to += strings.IndexByte(before[to:], '\n') + 1
	}
	from++
	offset := strings.Count(before[:from], "\n")
	after = after[from : len(after)-(len(before)-to)]
	before = before[from:to]
	if len(before)+len(after) > maxDiffed {
		return nil, strings.Count(after, "\n"), strings.Count(before, "\n")
	}
	edits := udiff.Lines(before, after)
	for _, x := range edits {
		removed += strings.Count(before[x.Start:x.End], "\n")
		added += strings.Count(x.New, "\n")
	}
	diff, _ := udiff.ToUnified("", "", before, edits, contextLines) // it fails only for edits of another text
	if hide != nil {
		diff = hide(diff)
	}
	for _, l := range difflines.Parse(diff, nil) {
		if l.IsCode() {
			if l.Old > 0 {
				l.Old += offset
			}
			if l.New > 0 {
				l.New += offset
			}
		}
		if l.IsCode() || l.Kind == difflines.Hunk {
			lines = append(lines, l)
		}
	}
	return lines, added, removed
}

// diffHunk is a part of a difference: lines that follow each other in the file.
type diffHunk []difflines.Line

// hunks returns the hunks of lines, without their heads.
func hunks(lines []difflines.Line) (all []diffHunk) {
	for _, l := range lines {
		if l.Kind == difflines.Hunk {
			all = append(all, nil)
		} else if n := len(all); n > 0 {
			all[n-1] = append(all[n-1], l)
		}
	}
	return all
}

// cut returns the first lines of the hunk that have at most most bytes, each at most maxDiffLine, and how much room is
// left: none where a line was left out.
func (h diffHunk) cut(most int) (_ diffHunk, room int) {
	for i := range h {
		h[i].Text = text.CutBytes(h[i].Text, maxDiffLine)
		if most -= len(h[i].Text) + 2; most < 0 {
			return h[:i], 0
		}
	}
	return h, most
}

func (h diffHunk) count(kinds ...difflines.Kind) (n int) {
	for i := range h {
		if slices.Contains(kinds, h[i].Kind) {
			n++
		}
	}
	return n
}

// write writes the hunk with its head, unless it has no line that changes.
func (h diffHunk) write(b *strings.Builder) {
	if h.count(difflines.Added, difflines.Removed) == 0 {
		return
	}
	side := func(kind difflines.Kind, number func(difflines.Line) int) string {
		n, first := h.count(difflines.Context, kind), 0
		for _, l := range h {
			if first = number(l); first > 0 {
				break
			}
		}
		return fmt.Sprintf("%d,%d", first, n)
	}
	fmt.Fprintf(b, "@@ -%s +%s @@\n", side(difflines.Removed, func(l difflines.Line) int { return l.Old }),
		side(difflines.Added, func(l difflines.Line) int { return l.New }))
	for _, l := range h {
		fmt.Fprintf(b, "%s%s\n", l.Sign(), l.Text)
	}
}

// ReadUnified returns the difference that a text of Unified has. That of one file has no line of kind File.
func ReadUnified(diff string) (e Edit) {
	from, name, isAsCalled := "", "", false
	for _, l := range difflines.Parse(diff, nil) {
		file, isName := strings.CutPrefix(l.Text, "+++ ")
		var added, removed int
		switch n, _ := fmt.Sscanf(l.Text, notShown, &added, &removed); {
		case l.IsCode():
			l.File = name
			switch l.Kind {
			case difflines.Added:
				e.Added++
			case difflines.Removed:
				e.Removed++
			}
			e.IsCut = e.IsCut || len(l.Text) >= maxDiffLine-len(" ...") && strings.HasSuffix(l.Text, " ...")
			if isAsCalled {
				l.Old, l.New = 0, 0
			}
			e.Lines = append(e.Lines, l)
		case l.Kind == difflines.Hunk:
			if n := len(e.Lines); n > 0 && e.Lines[n-1].Kind != difflines.File {
				e.Lines = append(e.Lines, difflines.Line{Kind: difflines.Gap})
			}
		case isName:
			name = strings.TrimPrefix(file, "b/")
			said := name
			switch old := strings.TrimPrefix(from, "a/"); {
			case from == "/dev/null":
				said += NewSuffix
			case file == "/dev/null":
				name, said = old, old+deletedSuffix
			case old != name:
				said = old + movedArrow + name
			}
			e.Files = append(e.Files, said)
			e.Lines = append(e.Lines, difflines.Line{Kind: difflines.File, File: name, Text: said})
		case strings.HasPrefix(l.Text, "--- "):
			from = l.Text[len("--- "):]
		case n == 2:
			e.Added, e.Removed, e.IsCut = e.Added+added, e.Removed+removed, true
			e.Lines = append(e.Lines, difflines.Line{Kind: difflines.Gap, Text: l.Text[len("... "):]})
		case strings.HasPrefix(l.Text, "... "):
			isAsCalled = isAsCalled || l.Text == asCalled
			e.IsCut = e.IsCut || strings.HasSuffix(l.Text, moreFiles)
			e.Lines = append(e.Lines, difflines.Line{Kind: difflines.Meta, Text: l.Text})
		}
	}
	if len(e.Files) == 1 {
		e.IsNew = from == "/dev/null"
		e.Lines = slices.DeleteFunc(e.Lines, func(l difflines.Line) bool { return l.Kind == difflines.File })
	}
	difflines.Mark(e.Lines)
	return e
}
