package shellcommands

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Hole stands in a text for a part that is known only when the script runs.
const Hole = "\x01"

// Word is a word of a command without its quotes.
type Word struct {
	// Text is the word. It has a Hole for each part that is not known.
	Text string
	// Splits says that the word stands for any number of words.
	Splits bool
}

// IsKnown reports whether the whole word is known.
func (w Word) IsKnown() bool { return !strings.Contains(w.Text, Hole) }

// Ends returns the text before the first hole and that behind the last one. Of a word without holes both are the word.
func (w Word) Ends() (prefix, suffix string) {
	prefix, _, _ = strings.Cut(w.Text, Hole)
	return prefix, w.Text[strings.LastIndex(w.Text, Hole)+1:]
}

// Base returns the part of the word behind its last slash; ok is false if that is not known. It is known of $X/git,
// whatever X is.
func (w Word) Base() (base string, ok bool) {
	base = w.Text[strings.LastIndexByte(w.Text, '/')+1:]
	return base, !strings.Contains(base, Hole)
}

// String returns the word for people: holes are three dots.
func (w Word) String() string { return strings.ReplaceAll(w.Text, Hole, "...") }

// join returns the text of words as eval takes it: quotes in them count again.
func join(words []Word) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.Text
	}
	return strings.Join(texts, " ")
}

// newArgument returns what is known of an argument, in which braces are words that are not known.
func newArgument(arg *syntax.Word) Word {
	split := *arg
	syntax.SplitBraces(&split)
	return newWord(&split)
}

// newWord returns what is known of a word, in which braces stand for themselves. A text that was quoted and one that
// was not do not differ any more.
func newWord(word *syntax.Word) Word {
	if word == nil {
		return Word{}
	}
	b := &wordBuilder{}
	for i, part := range word.Parts {
		b.part(part, i == 0)
	}
	return Word{Text: b.text.String(), Splits: b.splits}
}

// document returns the text of a here-document. If its end is quoted, nothing in it is expanded.
func document(r *syntax.Redirect) string {
	if r.Hdoc == nil {
		return "" // it is empty
	}
	b := &wordBuilder{}
	end, isLit := r.Word.Parts[0].(*syntax.Lit)
	isQuoted := len(r.Word.Parts) > 1 || !isLit || strings.Contains(end.Value, `\`)
	for _, part := range r.Hdoc.Parts {
		if lit, ok := part.(*syntax.Lit); ok && isQuoted {
			b.text.WriteString(lit.Value)
		} else {
			b.quotedPart(part)
		}
	}
	return b.text.String()
}

// wordBuilder puts a word together from the parts of its syntax.
type wordBuilder struct {
	text   strings.Builder
	splits bool
}

// hole adds a part that is not known. splits says that it may become several words.
func (b *wordBuilder) hole(splits bool) {
	b.text.WriteString(Hole)
	b.splits = b.splits || splits
}

// part adds a part of a word. A text such as $'\x67' differs between versions and locales.
func (b *wordBuilder) part(part syntax.WordPart, isFirst bool) {
	switch x := part.(type) {
	case *syntax.Lit:
		b.literal(x.Value, isFirst)
	case *syntax.SglQuoted:
		if x.Dollar && strings.Contains(x.Value, `\`) {
			b.hole(false)
			return
		}
		b.text.WriteString(x.Value)
	case *syntax.DblQuoted:
		for _, inner := range x.Parts {
			b.quotedPart(inner)
		}
	case *syntax.ProcSubst:
		b.text.WriteString("/dev/fd/")
		b.hole(false)
	case *syntax.ExtGlob, *syntax.ArithmExp:
		b.hole(false)
	default: // a substitution, a parameter or braces, without quotes
		b.hole(true)
	}
}

// quotedPart adds a part within double quotes. "$@" and "${a[@]}" are any number of words, also below an operator such
// as ${x:+"$@"}.
func (b *wordBuilder) quotedPart(part syntax.WordPart) {
	switch x := part.(type) {
	case *syntax.Lit:
		for i := 0; i < len(x.Value); i++ {
			if x.Value[i] == '\\' && i+1 < len(x.Value) && strings.IndexByte("$`\"\\\n", x.Value[i+1]) >= 0 {
				if i++; x.Value[i] == '\n' {
					continue
				}
			}
			b.text.WriteByte(x.Value[i])
		}
	case *syntax.ParamExp:
		b.hole(x.Param == nil || x.Param.Value == "@" || x.Index != nil || x.Exp != nil || x.Names != 0 || x.Excl)
	default:
		b.hole(false)
	}
}

// literal adds a text without quotes. A tilde at the beginning is a directory that is not known, and so is what a
// pattern finds.
func (b *wordBuilder) literal(s string, isFirst bool) {
	if isFirst && strings.HasPrefix(s, "~") {
		b.hole(false)
		if s = s[1:]; strings.Contains(s, "/") {
			s = s[strings.IndexByte(s, '/'):]
		} else {
			s = ""
		}
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			if i++; i == len(s) { // at the end of the script it stands for itself, unless a line end is added
				b.hole(false)
			} else if s[i] != '\n' {
				b.text.WriteByte(s[i])
			}
		case '*', '?':
			b.hole(false)
		case '[': // without an end it is no pattern
			if end := strings.IndexByte(s[i:], ']'); end > 0 {
				b.hole(false)
				i += end
			} else {
				b.text.WriteByte(c)
			}
		case Hole[0]: // of a script that was put together from parts
			b.hole(true)
		default:
			b.text.WriteByte(c)
		}
	}
}
