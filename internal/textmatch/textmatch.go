// Package textmatch finds the text in a file that a model means when it quotes it, and puts another text there.
//
// Replace is the way in, and ReplaceLines for the hunks of patches. A quote that is in the file as it stands is found
// there. Otherwise the file and the quote are compared in a form (form.go) that leaves out what models get wrong when
// they copy: whitespace, line ends and characters that look alike. Before that, what was put around the quote is taken
// off (readings.go): line numbers, escapes, a code fence, entities. Nothing else counts as the same. find.go looks for
// the quote in the file, and write.go says what stands there then, with the indentation that indents.go tells.
//
// The package keeps these invariants:
//
//   - A quote that could mean two places changes nothing, unless all are to be changed. Places may overlap.
//   - What the quote and the new text have in common keeps the bytes that it has in the file.
//   - New lines are indented as the lines around them are in the file. Where that cannot be told, nothing is changed.
//
// It reads and writes no files.
package textmatch

import (
	"errors"
	"slices"
	"strings"
)

// MaxPlaces is at how many places a quote may stand.
const MaxPlaces = 100_000

// maxSimilar is how many bytes a text may have in which a quote is found that is not exact.
const maxSimilar = 4 << 20

// The reasons why nothing is replaced.
var (
	// ErrTooMany means that the quote is at more than MaxPlaces places.
	ErrTooMany = errors.New("the text is there too often")
	// ErrMissing means that the quote is nowhere in the text.
	ErrMissing = errors.New("the text is not there")
	// ErrIndent means that the quote was found, and that the indentation of the new text cannot be told.
	ErrIndent = errors.New("the indentation of the new text cannot be told")
)

// Place is a part of the text that was replaced: the bytes Start to End of the old text, and what stands there now.
type Place struct {
	Start, End int
	New        string
}

// Replace replaces what old quotes by new. Without all it returns the places and changes nothing if there are several:
// then places has more than one, and the result is the text as it was. Errors are ErrMissing, ErrIndent and ErrTooMany.
func Replace(text, old, new string, all bool) (after string, places []Place, err error) {
	return replace(text, readings(old, new), all)
}

// ReplaceLines is Replace for a quote of whole lines, as the hunks of a patch are, at one place.
func ReplaceLines(text, old, new string) (after string, places []Place, err error) {
	if len(text) > maxSimilar {
		return text, nil, ErrTooMany
	}
	return replace(text, []reading{{old: old, new: new, isWhole: true}}, false)
}

// replace replaces what the first reading means that is found.
func replace(text string, readings []reading, all bool) (after string, places []Place, err error) {
	var f *file
	for _, r := range readings {
		places = nil
		if !r.isWhole {
			places = exact(text, r, all)
		}
		if len(places) == 0 && len(text) <= maxSimilar {
			if f == nil {
				f = newFile(text)
			}
			if places, err = f.similar(r, all); err != nil {
				return text, nil, err
			}
		}
		switch {
		case len(places) > MaxPlaces:
			return text, nil, ErrTooMany
		case len(places) > 1 && !all:
			return text, places, nil
		case len(places) > 0:
			return put(text, places), places, nil
		}
	}
	return text, nil, ErrMissing
}

// put replaces the places, which are in their order.
func put(text string, places []Place) string {
	var b strings.Builder
	from := 0
	for _, p := range places {
		b.WriteString(text[from:p.Start])
		b.WriteString(p.New)
		from = p.End
	}
	b.WriteString(text[from:])
	return b.String()
}

// exact finds the quote as it stands. A listing shows lines without their ends, so a newline in the quote may be one
// with a carriage return, and the new text gets the ends of its place.
func exact(text string, r reading, all bool) []Place {
	places := occurrences(text, r.old, r.new, all)
	if strings.Contains(r.old, "\r\n") || !strings.Contains(text, "\r\n") {
		return places
	}
	if strings.Contains(r.old, "\n") {
		isHalf := func(p Place) bool { return r.old[0] == '\n' && p.Start > 0 && text[p.Start-1] == '\r' }
		places = slices.DeleteFunc(places, isHalf) // it begins within a line end
		places = append(places, occurrences(text, toCRLF(r.old), r.new, all)...)
		slices.SortFunc(places, func(a, b Place) int { return a.Start - b.Start })
	}
	for i, p := range places {
		if isCRLFAt(text, p.Start) {
			places[i].New = toCRLF(p.New)
		}
	}
	return places
}

// occurrences finds a text. The places overlap only if not all are to be replaced: then two that overlap are two
// meanings.
func occurrences(text, old, new string, all bool) (places []Place) {
	for from := 0; len(places) <= MaxPlaces; {
		i := strings.Index(text[from:], old)
		if i < 0 {
			break
		}
		i += from
		places = append(places, Place{i, i + len(old), new})
		from = i + len(old)
		if !all {
			from = i + 1
		}
	}
	return places
}

// isCRLFAt reports whether the line that holds byte i ends with CRLF, or the one before it if it has no end.
func isCRLFAt(text string, i int) bool {
	end := strings.IndexByte(text[i:], '\n')
	if end < 0 {
		i, end = 0, strings.LastIndexByte(text, '\n')
	}
	return i+end > 0 && text[i+end-1] == '\r'
}

// toLF ends each line with a newline alone, and toCRLF with a carriage return too.
func toLF(s string) string   { return strings.ReplaceAll(s, "\r\n", "\n") }
func toCRLF(s string) string { return strings.ReplaceAll(toLF(s), "\n", "\r\n") }
