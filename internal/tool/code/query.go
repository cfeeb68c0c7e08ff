package code

import (
	"bytes"
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"

	"muster/internal/text"
)

// query is what a call of grep looks for. Several workers use it at once; it does not change.
type query struct {
	re *regexp.Regexp
	// program is re compiled, and reversed the same for texts that are read backwards.
	program, reversed *syntax.Prog
	// anchors are of texts of which each match contains one, or nil. Most files do not, and are done with.
	anchors []anchor
	// literal is the length of the text, if every place of it is a match, or 0.
	literal int
	// spansLines says that a match may contain the end of a line.
	spansLines bool
	// longest is how much text re is tried on at once. Nothing can stop it in between, so this bounds its time.
	longest int
}

// newQuery compiles the pattern of a call. One that contains a newline can only be meant to match more than one line.
func newQuery(in grepInput) (*query, error) {
	parsed, program, err := compile(in.Pattern)
	if err != nil {
		return nil, err
	}
	q := &query{spansLines: in.Multiline || hasNewline(parsed)}
	flags := ""
	if in.Multiline {
		flags += "s"
	}
	if q.spansLines {
		flags += "m"
	}
	if in.IgnoreCase {
		flags += "i"
	}
	pattern := in.Pattern
	if flags != "" {
		pattern = "(?" + flags + ")" + pattern
		if parsed, program, err = compile(pattern); err != nil {
			return nil, err
		}
	}
	if q.re, err = regexp.Compile(pattern); err != nil {
		return nil, err
	}
	q.program = program
	if q.reversed, err = syntax.Compile(reversed(parsed).Simplify()); err != nil {
		return nil, err
	}
	q.longest = min(max(maxSteps/max(len(program.Inst), 1), minSearched), maxGrepBytes)
	needles := requiredNeedles(parsed)
	q.anchors = anchorsOf(needles)
	if len(needles) == 1 && parsed.Op == syntax.OpLiteral && needles[0].text == string(parsed.Rune) {
		q.literal = len(needles[0].text)
	}
	return q, nil
}

// hasNewline reports whether the text of an expression contains a newline that it matches literally, or in a class such
// as [\r\n]. A class with spaces, or of all but some characters, says nothing about lines.
func hasNewline(re *syntax.Regexp) bool {
	has := func(r rune) bool {
		for i := 0; re.Op == syntax.OpCharClass && i < len(re.Rune); i += 2 {
			if re.Rune[i] <= r && r <= re.Rune[i+1] {
				return true
			}
		}
		return re.Op == syntax.OpLiteral && slices.Contains(re.Rune, r)
	}
	isNewline := has('\n') && (re.Op == syntax.OpLiteral || !has(' ') && !has(unicode.MaxRune))
	return isNewline || slices.ContainsFunc(re.Sub, hasNewline)
}

// errTooLong says that re was not tried on the whole text.
var errTooLong = errors.New("text is too long to be searched as a whole")

// each calls found with the place of each match, in their order, until it returns false. Where matches do not span
// lines it calls found once for each line, without the line's end; the place in a short line may be the whole line.
func (q *query) each(a *automaton, data []byte, found func(from, to int) bool) (err error) {
	if q.spansLines {
		return q.eachSpan(a, data, found)
	}
	hay := newHaystack(data, q.anchors)
	for pos := 0; pos < len(data) && a.forward.ctx.Err() == nil; {
		at := pos // on the next line that may match
		if q.anchors != nil {
			if at = hay.index(pos); at < 0 {
				return err
			}
		}
		start := bytes.LastIndexByte(data[:at], '\n') + 1
		end, next := lineEnd(data, at)
		pos = next
		from, to, isWhole := q.match(a, data[start:end], at-start)
		if !isWhole {
			err = errTooLong
		}
		if from >= 0 && !found(start+from, start+to) {
			return err
		}
	}
	return err
}

// match returns the place of the first match in a line, or -1. at is where a text stands that it must contain. isWhole
// is false if not the whole line was searched.
func (q *query) match(a *automaton, line []byte, at int) (from, to int, isWhole bool) {
	if q.literal > 0 && at+q.literal <= len(line) {
		return at, at + q.literal, true
	}
	switch is, known := a.matches(line); {
	case known && !is:
		return -1, -1, true
	case known && len(line) <= maxShownLine:
		return 0, len(line), true
	case known:
		if from, to, known = a.find(line, 0); known {
			return from, to, true
		}
	case a.forward.ctx.Err() != nil:
		return -1, -1, true
	}
	isWhole = len(line) <= q.longest
	if !isWhole {
		line = text.WholeRunes(line[:q.longest])
	}
	if place := q.re.FindIndex(line); place != nil {
		return place[0], place[1], isWhole
	}
	return -1, -1, isWhole
}

// lineEnd returns where the line of a position ends, without its line end, and where the next one begins.
func lineEnd(data []byte, at int) (end, next int) {
	end = len(data)
	if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
		end = at + i
	}
	next = end + 1
	if end > at && data[end-1] == '\r' {
		end--
	}
	return end, next
}

// isBehind reports whether a position is behind the last line.
func isBehind(data []byte, at int) bool {
	return at == len(data) && (at == 0 || data[at-1] == '\n')
}

// maxSpans is how many matches of one file are counted where they may span lines.
const maxSpans = 100_000

// eachSpan is each for matches that may contain the end of a line.
func (q *query) eachSpan(a *automaton, data []byte, found func(from, to int) bool) (err error) {
	if q.anchors != nil && newHaystack(data, q.anchors).index(0) < 0 {
		return nil
	}
	// The places are those of package regexp: a match without text does not count right behind the one before.
	last := -1
	for n, pos := 0, 0; n < maxSpans && pos <= len(data); {
		from, to, known := a.find(data, pos)
		if !known && a.forward.ctx.Err() == nil {
			return q.eachSpanSlowly(data, pos, found)
		}
		if from < 0 || isBehind(data, from) {
			return nil
		}
		counts := to != pos || from != last
		last = to
		if to == pos {
			_, size := utf8.DecodeRune(data[pos:])
			to += max(size, 1)
		}
		pos = to
		if counts {
			n++
			if !found(from, last) {
				return nil
			}
		}
	}
	return nil
}

// eachSpanSlowly is eachSpan with package regexp, for the matches that begin at or after pos.
func (q *query) eachSpanSlowly(data []byte, pos int, found func(from, to int) bool) (err error) {
	if len(data) > q.longest {
		data, err = data[:q.longest], errTooLong
	}
	for _, place := range q.re.FindAllIndex(data, maxSpans) {
		if place[0] >= pos && !isBehind(data, place[0]) && !found(place[0], place[1]) {
			break
		}
	}
	return err
}
