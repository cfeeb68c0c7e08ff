package code

import (
	"bytes"
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// query is what a call of grep looks for. Several workers use it at once; it does not change.
type query struct {
	re      *regexp.Regexp
	program *syntax.Prog
	// literal is text that each match contains, or nil. Most files do not, and are done with.
	literal []byte
	rarest  int // the index of its byte that is the least common
	// isLiteral says that every place of literal is a match.
	isLiteral bool
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
	q.longest = min(max(maxSteps/max(len(program.Inst), 1), minSearched), maxGrepBytes)
	literal := requiredLiteral(parsed)
	// Invalid bytes match this character, so its bytes need not be there.
	if literal != "" && !strings.ContainsRune(literal, utf8.RuneError) {
		q.literal = []byte(literal)
		q.rarest = rarestByte(q.literal)
	}
	q.isLiteral = len(q.literal) > 0 && parsed.Op == syntax.OpLiteral
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

// requiredLiteral returns the longest text that each match of an expression contains, or "".
func requiredLiteral(re *syntax.Regexp) (longest string) {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			return string(re.Rune)
		}
	case syntax.OpCapture, syntax.OpPlus:
		return requiredLiteral(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return requiredLiteral(re.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if s := requiredLiteral(sub); len(s) > len(longest) {
				longest = s
			}
		}
	default: // of an alternative or an option nothing is required
	}
	return longest
}

// errTooLong says that re was not tried on the whole text.
var errTooLong = errors.New("text is too long to be searched as a whole")

// each calls found with the place of each match, in their order, until it returns false. Where matches do not span
// lines it calls found once for each line, without the line's end; the place in a short line may be the whole line.
func (q *query) each(a *automaton, data []byte, found func(from, to int) bool) (err error) {
	if q.spansLines {
		return q.eachSpan(a, data, found)
	}
	for pos := 0; pos < len(data) && a.ctx.Err() == nil; {
		at := pos // on the next line that may match
		switch {
		case q.literal != nil:
			at = q.index(data, pos)
		case !a.isUseless():
			at = a.find(data, pos)
		}
		if at < 0 {
			return err
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

// index returns where literal stands next, or -1. The search is for its rarest byte and what follows, since it stops at
// each byte of that kind.
func (q *query) index(data []byte, pos int) int {
	for pos += q.rarest; pos <= len(data); pos++ {
		i := bytes.Index(data[pos:], q.literal[q.rarest:])
		if i < 0 {
			return -1
		}
		if pos += i; bytes.HasSuffix(data[:pos], q.literal[:q.rarest]) {
			return pos - q.rarest
		}
	}
	return -1
}

// rarestByte returns the index of the byte of a text that is the least common in programs.
func rarestByte(text []byte) (at int) {
	const common = " etaionsrl\tcdupmfhg_.()\n,\"=-/:0;1x>*vw<k'2{}[]$#bySTECAI"
	rank := func(c byte) int {
		if i := strings.IndexByte(common, c); i >= 0 {
			return i
		}
		return len(common)
	}
	for i := range text {
		if rank(text[i]) > rank(text[at]) {
			at = i
		}
	}
	return at
}

// match returns the place of the first match in a line, or -1. at is where its literal stands, or where an automaton
// has found that the line may match: behind the line if only with its end. isWhole is false if not the whole line was
// searched.
func (q *query) match(a *automaton, line []byte, at int) (from, to int, isWhole bool) {
	if q.isLiteral && at+len(q.literal) <= len(line) {
		return at, at + len(q.literal), true
	}
	if q.literal != nil && !a.isUseless() {
		if at = a.find(line, 0); at < 0 {
			return -1, -1, true
		}
	}
	isMatch := a.isExact && !a.isUseless() && at < len(line)
	if isMatch && len(line) <= maxShownLine {
		return 0, len(line), true
	}
	isWhole = true
	if len(line) > q.longest {
		line, isWhole = trimPartialRune(line[:q.longest]), isMatch
	}
	if place := q.re.FindIndex(line); place != nil {
		return place[0], place[1], isWhole
	}
	if isMatch {
		return 0, 0, true
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
	if q.literal != nil && !bytes.Contains(data, q.literal) {
		return nil
	}
	if !a.isUseless() && a.find(data, 0) < 0 {
		return nil
	}
	if len(data) > q.longest {
		data, err = data[:q.longest], errTooLong
	}
	for _, place := range q.re.FindAllIndex(data, maxSpans) {
		if !isBehind(data, place[0]) && !found(place[0], place[1]) {
			break
		}
	}
	return err
}
