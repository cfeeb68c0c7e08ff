package code

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"muster/internal/difflines"
	"muster/internal/text"
	"muster/llm"
)

// FileChange is a file as a call of edit_file, write_file or apply_patch finds it, and as it leaves it.
type FileChange struct {
	Path, From    string // From is where it was moved from; "": it was not
	Before, After string
	IsNew, IsGone bool
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
	t := newToolset(p, nil, nil, Options{}) // which has seen no file, and so refuses none
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

// noteChanges tells who asked for it what a call is about to write. An error means that it must not.
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

// maxDiffed is how many bytes a file has at most, before and after together, that is compared.
const maxDiffed = 1 << 20

// Unified returns changes as a unified diff, and how many lines are added and removed. A file that is too long to be
// compared has its head only. Line ends are no difference.
func Unified(changes []FileChange) (diff string, added, removed int) {
	var b strings.Builder
	for _, c := range changes {
		from, to := "a/"+text.OneLine(c.Path), "b/"+text.OneLine(c.Path)
		switch {
		case c.IsNew:
			from = "/dev/null"
		case c.IsGone:
			to = "/dev/null"
		case c.From != "":
			from = "a/" + text.OneLine(c.From)
		}
		before, after := wholeLines(c.Before), wholeLines(c.After)
		if len(before)+len(after) > maxDiffed {
			before, after = "", ""
		}
		edits := udiff.Lines(before, after)
		for _, x := range edits {
			removed += strings.Count(before[x.Start:x.End], "\n")
			added += strings.Count(x.New, "\n")
		}
		one, _ := udiff.ToUnified(from, to, before, edits, contextLines) // which fails for edits of another text
		if one == "" {
			one = fmt.Sprintf("--- %s\n+++ %s\n", from, to)
		}
		b.WriteString(one)
	}
	return b.String(), added, removed
}

// CutUnified returns the beginning of a text of Unified: whole lines, and one that says that there are more.
func CutUnified(diff string, most int) string {
	if len(diff) <= most {
		return diff
	}
	diff = diff[:most]
	return diff[:strings.LastIndexByte(diff, '\n')+1] + "... more\n"
}

// ReadUnified returns the difference that a text of Unified has, which may end early. The only file of one has no head.
func ReadUnified(diff string) (e Edit) {
	from, name := "", ""
	for _, l := range difflines.Parse(diff, nil) {
		file, isNew := strings.CutPrefix(l.Text, "+++ ")
		switch {
		case l.IsCode():
			l.File = name
			switch l.Kind {
			case difflines.Added:
				e.Added++
			case difflines.Removed:
				e.Removed++
			}
			e.Lines = append(e.Lines, l)
		case l.Kind == difflines.Hunk:
			if n := len(e.Lines); n > 0 && e.Lines[n-1].Kind != difflines.File {
				e.Lines = append(e.Lines, difflines.Line{Kind: difflines.Gap})
			}
		case isNew:
			name = strings.TrimPrefix(file, "b/")
			said := name
			switch old := strings.TrimPrefix(from, "a/"); {
			case from == "/dev/null":
				said += " (new)"
			case file == "/dev/null":
				name, said = old, old+" (deleted)"
			case old != name:
				said = old + " → " + name
			}
			e.Files = append(e.Files, said)
			e.Lines = append(e.Lines, difflines.Line{Kind: difflines.File, File: name, Text: said})
		case strings.HasPrefix(l.Text, "--- "):
			from = l.Text[len("--- "):]
		case strings.HasPrefix(l.Text, "..."):
			e.Lines = append(e.Lines, difflines.Line{Kind: difflines.Gap, Text: "more"})
		}
	}
	if len(e.Files) == 1 {
		e.Lines = e.Lines[1:]
	}
	difflines.Mark(e.Lines)
	return e
}
