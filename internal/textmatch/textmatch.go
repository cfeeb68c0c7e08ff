// Package textmatch finds the place in a file that a model means when it quotes a text, and puts another text there.
//
// Replace is the way in, and ReplaceLines for the hunks of patches. A quote that is in the file as it stands is found
// there. Else the package looks for one place that differs from the quote only in what models get wrong when they
// copy: whitespace, line ends, characters that look alike, the line numbers of a listing, escapes, and a code fence
// around it. Nothing else counts as the same.
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

// exact finds the quote as it stands. In a text whose lines end with CRLF the quote may have newlines, because a
// listing shows lines without their ends; the new text gets the ends of its place.
func exact(text string, r reading, all bool) []Place {
	if !strings.Contains(text, "\r\n") || strings.Contains(r.old, "\r\n") {
		return occurrences(text, r, all)
	}
	var plain strings.Builder
	var returns []int // the newlines of plain that have a carriage return in text
	for line := range strings.Lines(text) {
		body, isCRLF := strings.CutSuffix(line, "\r\n")
		plain.WriteString(body)
		if isCRLF {
			returns = append(returns, plain.Len())
			plain.WriteByte('\n')
		}
	}
	places := occurrences(plain.String(), r, all)
	for i, p := range places {
		start, _ := slices.BinarySearch(returns, p.Start)
		end, _ := slices.BinarySearch(returns, p.End)
		places[i] = Place{p.Start + start, p.End + end, r.new}
		if isCRLFAt(text, places[i].Start) {
			places[i].New = toCRLF(r.new)
		}
	}
	return places
}

// occurrences finds the old text of a reading. The places overlap only if not all are to be replaced: then two that
// overlap are two meanings.
func occurrences(text string, r reading, all bool) (places []Place) {
	for from := 0; len(places) <= MaxPlaces; {
		i := strings.Index(text[from:], r.old)
		if i < 0 {
			break
		}
		i += from
		places = append(places, Place{i, i + len(r.old), r.new})
		from = i + len(r.old)
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

// toCRLF ends each line with CRLF.
func toCRLF(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}
