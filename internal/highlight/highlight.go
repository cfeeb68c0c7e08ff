// Package highlight finds comments, strings, keywords and numbers in code, so that faces can colour them.
//
// A Lexer reads code line by line, and carries only what a line leaves open to the next, such as a comment of several
// lines. So code that arrives in pieces is coloured as code that is there at once, and the fragments of a difference
// are coloured too. The rules of a language are a table (languages.go): its keywords, and how its comments and strings
// begin and end. There are no regular expressions, and each line takes time in proportion to its length, whatever it
// holds.
//
// It is an approximation for readers, not a parser: what it does not know is plain.
package highlight

import (
	"cmp"
	"path"
	"strings"
)

// Kind says what a piece of code is.
type Kind uint8

// The kinds of pieces.
const (
	Plain Kind = iota
	Comment
	String
	Keyword // also the names of keys in data, and of tags
	Number
)

// Colours are the SGR codes of the kinds on a terminal. They are calm, can be read on a dark ground and on a light one,
// and mean nothing else: amber says that something waits for the user, and green and red are news.
var Colours = [...]string{Plain: "", Comment: "2", String: "38;5;30", Keyword: "38;5;98", Number: "38;5;67"}

// Bright are Colours for a ground that is dark and coloured.
var Bright = [...]string{Plain: "", Comment: "38;5;247", String: "38;5;115", Keyword: "38;5;183", Number: "38;5;153"}

// Span is a piece of a line.
type Span struct {
	Len  int // bytes
	Kind Kind
}

// Lexer reads code of one language line by line. The zero value knows no language. A copy goes on by itself.
type Lexer struct {
	language *language
	// open is the comment or the string that goes on in the next line; nil: none.
	open *delimiter
	// inTag says that the next line begins within a tag of markup.
	inTag bool
}

// For returns the lexer of a language by its name or an alias, as they stand behind a fence of Markdown.
func For(name string) Lexer {
	// Writers add more to the name, such as "go title=x" or "rust,ignore".
	if i := strings.IndexAny(name, " ,{:"); i >= 0 {
		name = name[:i]
	}
	return Lexer{language: byName()[strings.ToLower(name)]}
}

// ForFile returns the lexer of a file by its name.
func ForFile(file string) Lexer {
	base := strings.ToLower(path.Base(file))
	name := strings.TrimPrefix(cmp.Or(path.Ext(base), base), ".")
	if stem, _, _ := strings.Cut(base, "."); stem == "dockerfile" || stem == "makefile" {
		name = stem
	}
	return Lexer{language: byName()[name]}
}

// IsKnown reports whether the language is known. Without one all code is plain.
func (l *Lexer) IsKnown() bool { return l.language != nil }

// maxLine is the longest line, in bytes, that is looked at. Longer ones are data.
const maxLine = 10_000

// Line returns the pieces of the next line, which has no newline. Their lengths add up to that of the line. It returns
// nil for a line that is plain.
func (l *Lexer) Line(line string) []Span {
	if l.language == nil || len(line) > maxLine {
		return nil
	}
	s := scanner{language: l.language, line: line, inTag: l.inTag}
	s.open = l.open
	s.scan()
	l.open, l.inTag = s.open, s.inTag
	if len(s.spans) == 1 && s.spans[0].Kind == Plain {
		return nil
	}
	return s.spans
}

// scanner reads one line.
type scanner struct {
	*language
	line  string
	at    int
	spans []Span
	open  *delimiter
	inTag bool
	// unclosed are delimiters that have no end on this line, which are looked for only once.
	unclosed uint32
}

// add appends the bytes up to end as a piece.
func (s *scanner) add(end int, kind Kind) {
	if n := len(s.spans); n > 0 && s.spans[n-1].Kind == kind {
		s.spans[n-1].Len += end - s.at
	} else if end > s.at {
		s.spans = append(s.spans, Span{end - s.at, kind})
	}
	s.at = end
}

func (s *scanner) scan() {
	if s.open != nil {
		end, ok := s.open.end(s.line, 0)
		s.add(end, s.open.kind)
		if !ok {
			return
		}
		s.open = nil
	} else {
		s.begin()
	}
	for s.at < len(s.line) {
		if !s.delimited() {
			s.word()
		}
	}
}

// begin reads what only the beginning of a line can have.
func (s *scanner) begin() {
	words := strings.TrimLeft(s.line, " \t")
	indent := len(s.line) - len(words)
	switch {
	case s.heading && strings.HasPrefix(words, "#"), s.sections && strings.HasPrefix(words, "["):
		s.add(len(s.line), Keyword)
	case s.hasBlockComment() && (words == "*" || strings.HasPrefix(words, "* ") || strings.HasPrefix(words, "*/")):
		// The beginning of the comment may be outside of a fragment.
		end := len(s.line)
		if i := strings.Index(s.line, "*/"); i >= 0 {
			end = i + len("*/")
		}
		s.add(end, Comment)
	case s.keys != "":
		dashes := strings.TrimLeft(words, "- ")
		if name := len(dashes) - len(strings.TrimLeftFunc(dashes, isKeyRune)); name > 0 {
			from := indent + len(words) - len(dashes)
			rest := dashes[name:]
			value, ok := strings.CutPrefix(strings.TrimLeft(rest, " "), s.keys)
			if ok && (value == "" || value[0] == ' ' || value[0] == '\t' || s.keys != ":") {
				s.add(from, Plain)
				s.add(from+name, Keyword)
			}
		}
	}
}

func isKeyRune(r rune) bool {
	return r == '_' || r == '-' || r == '.' || r == '/' || r == '$' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' ||
		r >= '0' && r <= '9' || r >= 0x80
}

// delimited reads a comment or a string, if one begins here.
func (s *scanner) delimited() bool {
	rest := s.line[s.at:]
	for i := range s.delimiters {
		d := &s.delimiters[i]
		if rest[0] != d.from[0] || s.unclosed&(1<<i) != 0 || !strings.HasPrefix(rest, d.from) {
			continue
		}
		if d.inTag && !s.inTag || d.afterBlank && s.at > 0 && !strings.ContainsRune(" \t;(", rune(s.line[s.at-1])) {
			continue
		}
		end, ok := d.end(s.line, s.at+len(d.from))
		switch {
		case d.isChar && (!ok || end-s.at > len(`'\U00000000'`) || !isChar(s.line[s.at+1:end-1])):
			continue // such as the lifetimes of Rust
		case !ok && !d.isLong: // such as the apostrophe of a text
			s.unclosed |= 1 << i
			continue
		case !ok:
			s.open = d
		}
		kind := d.kind
		if kind == String && s.colonKeys && strings.HasPrefix(strings.TrimLeft(s.line[end:], " \t"), ":") {
			kind = Keyword // a key of JSON
		}
		s.add(end, kind)
		return true
	}
	return false
}

// isChar reports whether a text is one character of a language, perhaps an escaped one.
func isChar(s string) bool { return strings.HasPrefix(s, `\`) || len([]rune(s)) == 1 }

// word reads a word, a number or another character.
func (s *scanner) word() {
	c := s.line[s.at]
	switch {
	case s.markup:
		s.tag(c)
	case isDigit(c):
		s.add(s.number(), Number)
	case isWord(c) || c == '@' || c == '#' && s.hashWords:
		end := s.at + 1
		for end < len(s.line) && (isWord(s.line[end]) || s.dashes && s.line[end] == '-') {
			end++
		}
		if s.isKeyword(s.line[s.at:end]) {
			s.add(end, Keyword)
		} else {
			s.add(end, Plain)
		}
	default:
		s.add(s.at+1, Plain)
	}
}

// isKeyword reports whether a word is one, and not the name of a field, a variable or a flag.
func (s *scanner) isKeyword(word string) bool {
	if s.at > 0 && strings.IndexByte(".$-", s.line[s.at-1]) >= 0 {
		return false
	}
	if s.ignoreCase {
		word = strings.ToUpper(word)
	}
	return s.keywords[word]
}

// number returns the end of a number. Letters belong to it, as in 0xff and 10px.
func (s *scanner) number() int {
	end := s.at
	for end < len(s.line) {
		c := s.line[end]
		isPoint := c == '.' && end+1 < len(s.line) && isDigit(s.line[end+1])
		isSign := (c == '-' || c == '+') && (s.line[end-1] == 'e' || s.line[end-1] == 'E') &&
			end+1 < len(s.line) && isDigit(s.line[end+1])
		if !isWord(c) && !isPoint && !(isSign && end > s.at+1) {
			break
		}
		end++
	}
	return end
}

// tag reads a character of markup, or the name of a tag.
func (s *scanner) tag(c byte) {
	end := s.at + 1
	switch {
	case c == '<' && end < len(s.line) && strings.IndexByte("/!?", s.line[end]) >= 0:
		end++
	case c == '>':
		s.inTag = false
	}
	if c != '<' || end >= len(s.line) || !isWord(s.line[end]) {
		s.add(s.at+1, Plain)
		return
	}
	s.inTag = true
	s.add(end, Plain)
	for end < len(s.line) && (isWord(s.line[end]) || strings.IndexByte("-:.", s.line[end]) >= 0) {
		end++
	}
	s.add(end, Keyword)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isWord reports whether a byte may be in a word. All that is not ASCII may.
func isWord(c byte) bool {
	return c == '_' || isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
