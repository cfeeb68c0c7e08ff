package textmatch

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// file is a text in which quotes are found that are not exact.
type file struct {
	source string
	form
	unit string // of indentation
}

// newFile returns the file with that text.
func newFile(text string) *file { return &file{text, newForm(text), unitOf(text)} }

// quote is a reading that is looked for. Empty lines that both texts have at their ends are left out.
type quote struct {
	reading
	form
	// isFromStart and isToEnd say that the quote begins or ends with a line, and isWithEnd that the newline after it
	// is removed too.
	isFromStart, isToEnd, isWithEnd bool
}

// newQuote returns the quote that a reading means. ok is false if no text can be similar to it.
func newQuote(r reading) (q quote, ok bool) {
	old, new := toLF(r.old), toLF(r.new)
	for strings.HasPrefix(old, "\n") && strings.HasPrefix(new, "\n") {
		old, new, q.isFromStart = old[1:], new[1:], true
	}
	for strings.HasSuffix(old, "\n") && strings.HasSuffix(new, "\n") {
		old, new, q.isToEnd = old[:len(old)-1], new[:len(new)-1], true
	}
	// One newline more in the quote joins two lines only where the quote is exact. With nothing in its place, the line
	// is removed.
	if line, hasEnd := strings.CutSuffix(old, "\n"); hasEnd {
		old, q.isToEnd, q.isWithEnd = line, true, new == ""
	}
	q.reading = reading{old, new, r.isWhole, r.line}
	q.form = newForm(old)
	q.isFromStart = q.isFromStart || indentOf(old) != ""
	if q.isWhole || strings.Contains(q.text, "\n") {
		q.isFromStart, q.isToEnd = true, true
	}
	return q, q.text != "" && old[0] != '\n' && old[len(old)-1] != '\n'
}

// match is a part of a file that has the form of a quote: the bytes start to end, of which at is the place in the form.
type match struct {
	start, end, at int
	isFromStart    bool // it begins with its line, of which the indentation belongs to it
}

// similar finds the places that have the form of a quote. Of several, what stands there then is only told if all are to
// be changed.
func (f *file) similar(r reading, all bool) (places []Place, err error) {
	q, ok := newQuote(r)
	if !ok {
		return nil, nil
	}
	found, end := f.find(q), 0
	for _, m := range found {
		p := Place{Start: m.start, End: m.end}
		switch {
		case len(found) > 1 && !all:
		case m.start < end:
			continue // it overlaps the one before
		default:
			if p, err = f.write(q, m); err != nil {
				return nil, err
			}
			end = p.End
		}
		places = append(places, p)
	}
	return places, nil
}

// find returns where the file has the form of a quote. Where some are the quote to the last blank, others are not
// meant.
func (f *file) find(q quote) (found []match) {
	for from := 0; len(found) <= MaxPlaces; {
		i := strings.Index(f.text[from:], q.text)
		if i < 0 {
			break
		}
		from += i + 1
		if m, ok := f.match(q, from-1); ok {
			found = append(found, m)
		}
	}
	isSame := func(m match) bool { return toLF(f.source[m.start:m.end]) == q.old }
	if slices.ContainsFunc(found, isSame) {
		found = slices.DeleteFunc(found, func(m match) bool { return !isSame(m) })
	}
	return found
}

// match returns the match at a place in the form. ok is false if the quote cannot mean it.
func (f *file) match(q quote, at int) (m match, ok bool) {
	end := at + len(q.text)
	isFromStart := at == 0 || f.text[at-1] == '\n'
	isToEnd := end == len(f.text) || f.text[end] == '\n'
	if f.isCut(at) || f.isCut(end) || q.isFromStart && !isFromStart || q.isToEnd && !isToEnd {
		return m, false
	}
	_, size := utf8.DecodeRuneInString(f.source[f.at[end-1]:])
	m = match{f.at[at], f.at[end-1] + size, at, isFromStart}
	if q.line != 0 && q.line != 1+strings.Count(f.source[:m.start], "\n") {
		return m, false
	}
	if isFromStart {
		m.start = len(strings.TrimRight(f.source[:m.start], " \t"))
	}
	return m, true
}
