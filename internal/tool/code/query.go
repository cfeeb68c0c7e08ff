package code

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"muster/internal/text"
)

// The limits on an expression. A short one may take hours to match.
const (
	maxInstructions = 5000      // of a compiled regular expression, each of which may be tried at each byte
	maxSteps        = 320 << 20 // instructions times bytes that are matched without a look at the time
	minSearched     = 64 << 10  // bytes that are searched at once, however large the expression is
)

// query is what a call of grep looks for. Several workers use it at once; it does not change.
type query struct {
	re *regexp.Regexp
	// later is re for a text that does not begin at the beginning of the file: \A does not match in it.
	later *regexp.Regexp
	// literal is a text that each match contains, or nil. Most files do not contain it, and are done with.
	literal []byte
	// isFolded says that the case of the literal does not matter.
	isFolded bool
	// isLiteral says that the literal is all of the expression.
	isLiteral bool
	// spansLines says that a match may contain the end of a line.
	spansLines bool
	// longest is how much text re is tried on at once. Nothing can stop it in between, so this bounds its time.
	longest int
	// ripgrep is the expression for ripgrep, where each line is a text of its own.
	ripgrep string
}

// newQuery compiles the pattern of a call. One that contains a newline can only be meant to match more than one line.
func newQuery(in grepInput) (*query, error) {
	if len(in.Pattern) > maxPattern {
		return nil, fmt.Errorf("the pattern has %d bytes, and may have %d", len(in.Pattern), maxPattern)
	}
	if in.Literal {
		in.Pattern = regexp.QuoteMeta(in.Pattern)
	}
	parsed, err := syntax.Parse(in.Pattern, syntax.Perl)
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
	pattern := "(?" + flags + ")" + in.Pattern
	if parsed, err = syntax.Parse(pattern, syntax.Perl); err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	size := len(program.Inst)
	if size > maxInstructions {
		return nil, fmt.Errorf("the pattern compiles to %d instructions, limit %d: use smaller repetitions", size,
			maxInstructions)
	}
	if q.re, err = regexp.Compile(pattern); err != nil {
		return nil, err
	}
	if q.later, err = regexp.Compile(rewrite(parsed, `\A`, `[^\x00-\x{10FFFF}]`)); err != nil {
		return nil, err
	}
	q.longest = min(max(maxSteps/size, minSearched), maxGrepBytes)
	q.setLiteral(parsed)
	q.ripgrep, err = forRipgrep(pattern)
	return q, err
}

// rewrite returns the text of an expression with other texts in the place of escapes such as \A.
func rewrite(re *syntax.Regexp, escapes ...string) string {
	return strings.NewReplacer(append([]string{`\\`, `\\`}, escapes...)...).Replace(re.String())
}

// forRipgrep returns an expression for single lines as ripgrep understands it. Classes such as \w, which have more
// characters there, are spelt out.
func forRipgrep(pattern string) (string, error) {
	re, err := syntax.Parse("(?m)"+pattern, syntax.Perl)
	if err != nil {
		return "", err
	}
	return rewrite(re, `\A`, `(?m:^)`, `\z`, `(?m:$)`, `\b`, `(?-u:\b)`, `\B`, `(?-u:\B)`), nil
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

// setLiteral finds a text that each match of the expression contains.
func (q *query) setLiteral(re *syntax.Regexp) {
	literal := requiredLiteral(re)
	if literal == nil {
		return
	}
	isFolded := literal.Flags&syntax.FoldCase != 0
	// Invalid bytes match the replacement character. Letters other than those of ASCII, and k and s, have other forms
	// than two.
	isOther := func(r rune) bool {
		return r == utf8.RuneError || isFolded && (r >= utf8.RuneSelf || strings.ContainsRune("kKsS", r))
	}
	longest := ""
	for _, piece := range strings.FieldsFunc(string(literal.Rune), isOther) {
		if len(piece) > len(longest) {
			longest = piece
		}
	}
	q.literal, q.isFolded = []byte(longest), isFolded && longest != ""
	q.isLiteral = literal == re && longest == string(re.Rune) && !strings.Contains(longest, "\r")
}

// requiredLiteral returns the longest part of an expression that is a text which each match contains, or nil.
func requiredLiteral(re *syntax.Regexp) (best *syntax.Regexp) {
	switch re.Op {
	case syntax.OpLiteral:
		return re
	case syntax.OpCapture, syntax.OpPlus:
		return requiredLiteral(re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if literal := requiredLiteral(sub); literal != nil && (best == nil || len(literal.Rune) > len(best.Rune)) {
				best = literal
			}
		}
	}
	return best
}

// index returns where the literal stands first in a text, or -1.
func (q *query) index(data []byte) int {
	if !q.isFolded {
		return bytes.Index(data, q.literal)
	}
	for i := 0; i+len(q.literal) <= len(data); i++ {
		// The first comparison is quick. It holds for letters in either case, and for few other bytes.
		if data[i]|0x20 == q.literal[0]|0x20 && bytes.EqualFold(data[i:i+len(q.literal)], q.literal) {
			return i
		}
	}
	return -1
}

// errTooLong says that re was not tried on the whole text.
var errTooLong = errors.New("text is too long to be searched as a whole")

// each calls found with the place of each match, in their order, until it returns false or ctx ends. A line belongs to
// one match at most: the search goes on behind the last line of a match. Where matches do not span lines, a place ends
// with its line, and in a short line it may begin with it.
func (q *query) each(ctx context.Context, data []byte, found func(from, to int) bool) (err error) {
	if q.spansLines {
		return q.eachSpan(ctx, data, found)
	}
	for pos := 0; pos < len(data) && ctx.Err() == nil; {
		i := q.index(data[pos:])
		if i < 0 {
			break
		}
		at := pos + i // in the next line that may match
		start := lineStart(data, at)
		end, next := lineEnd(data, at)
		pos = next
		if !q.isLiteral {
			line := data[start:end]
			if len(line) > q.longest {
				line, err = text.WholeRunes(line[:q.longest]), errTooLong
			}
			if !q.re.Match(line) {
				continue
			}
			at = start
			if len(line) > maxShownLine {
				at += q.re.FindIndex(line)[0]
			}
		}
		if !found(at, end) {
			break
		}
	}
	return err
}

// eachSpan is each for matches that may contain the end of a line.
func (q *query) eachSpan(ctx context.Context, data []byte, found func(from, to int) bool) error {
	re := q.re
	for pos := 0; pos < len(data) && q.index(data[pos:]) >= 0 && ctx.Err() == nil; re = q.later {
		part := data[pos:]
		if len(part) > q.longest {
			part = text.WholeRunes(part[:q.longest])
		}
		place := re.FindIndex(part)
		switch {
		case place == nil && pos+len(part) < len(data):
			return errTooLong
		case place == nil || isBehind(data, pos+place[0]):
			return nil
		}
		from, to := pos+place[0], pos+place[1]
		if !found(from, to) {
			return nil
		}
		pos = lineAfter(data, from, to)
	}
	return nil
}

// lineStart returns where the line of a position begins.
func lineStart(data []byte, at int) int { return bytes.LastIndexByte(data[:at], '\n') + 1 }

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

// lineAfter returns where the line begins that follows the last line of a match.
func lineAfter(data []byte, from, to int) int {
	if to > from && data[to-1] == '\n' {
		return to // a match that ends with a line end takes nothing of the next line
	}
	_, next := lineEnd(data, to)
	return min(next, len(data))
}

// isBehind reports whether a position is behind the last line.
func isBehind(data []byte, at int) bool {
	return at == len(data) && (at == 0 || data[at-1] == '\n')
}
