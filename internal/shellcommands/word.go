package shellcommands

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Word is a word of a command as far as it is known: a text without its quotes, or one with a hole of which only what
// is before and behind it is known.
type Word struct {
	// Prefix is the whole text of a word that is known.
	Prefix string
	Suffix string
	// Hole says that something unknown is between Prefix and Suffix.
	Hole bool
	// Globs says that the word stands for one or more words, each of this form.
	Globs bool
	// Splits says that the word stands for any number of words.
	Splits bool
}

// Known returns the word with a text.
func Known(text string) Word { return Word{Prefix: text} }

// anything is a word that stands for any number of unknown ones.
var anything = Word{Hole: true, Splits: true}

// IsKnown reports whether the whole word is known.
func (w Word) IsKnown() bool { return !w.Hole }

// mayBeOption reports whether a word that is known only when it runs may turn out to be an option.
func (w Word) mayBeOption() bool { return w.Hole && (w.Splits || w.Prefix == "" || w.Prefix[0] == '-') }

// String returns the word for people: holes are three dots.
func (w Word) String() string {
	if w.Hole {
		return w.Prefix + "..." + w.Suffix
	}
	return w.Prefix
}

// Base returns the part of the word behind its last slash; ok is false if that is not known. It is known of "$X/git",
// whatever X is, and not of $X/git, which may be several words.
func (w Word) Base() (base string, ok bool) {
	last := w.Prefix
	if w.Hole {
		last = w.Suffix
		if w.Splits || !strings.Contains(last, "/") {
			return "", false
		}
	}
	return last[strings.LastIndexByte(last, '/')+1:], true
}

// join returns the text of known words with blanks between them, as eval takes it. The blanks are those that eval and
// ssh put between their arguments, so that quotes in them count again.
func join(words []Word) (text string, ok bool) {
	parts := make([]string, len(words))
	for i, w := range words {
		if !w.IsKnown() {
			return "", false
		}
		parts[i] = w.Prefix
	}
	return strings.Join(parts, " "), true
}

// wordBuilder puts a word together from the parts of its syntax. A text that was quoted and one that was not differ
// only while the word is built: later all that counts is its text.
type wordBuilder struct {
	w          Word
	text       strings.Builder
	hasLiteral bool // some of the text was quoted or escaped, and has what substitutions begin with
	brace      bool // an unquoted brace is open
}

// put adds known text.
func (b *wordBuilder) put(s string) { b.text.WriteString(s) }

// hole adds something unknown. splits and globs say what it may become. Only the text before the first hole and behind
// the last one is kept, because a word is compared from its ends.
func (b *wordBuilder) hole(globs, splits bool) {
	if !b.w.Hole {
		b.w.Prefix = b.text.String()
	}
	b.w.Hole, b.w.Globs, b.w.Splits = true, b.w.Globs || globs, b.w.Splits || splits
	b.text.Reset()
}

// newWord returns what is known of a word. hasSubstitution says that a text in it, which was quoted, has what a
// substitution begins with.
func newWord(word *syntax.Word) (w Word, hasSubstitution bool) {
	if word == nil {
		return Word{}, false
	}
	if lit := word.Lit(); lit == "[" || lit == "[[" { // no pattern: it has no end
		return Known(lit), false
	}
	b := &wordBuilder{}
	for i, part := range word.Parts {
		b.part(part, i == 0)
	}
	if b.w.Hole {
		b.w.Suffix = b.text.String()
	} else {
		b.w.Prefix = b.text.String()
	}
	return b.w, b.hasLiteral
}

// part adds a part of a word. A substitution without quotes may become any number of words. With quotes it is always
// one.
func (b *wordBuilder) part(part syntax.WordPart, first bool) {
	switch x := part.(type) {
	case *syntax.Lit:
		b.literal(x.Value, first)
	case *syntax.SglQuoted:
		text, ok := x.Value, true
		if x.Dollar {
			text, ok = ansi(text)
		}
		if !ok {
			b.hasLiteral = true
			b.hole(false, false)
			return
		}
		b.quoted(text)
	case *syntax.DblQuoted:
		for _, inner := range x.Parts {
			b.quotedPart(inner)
		}
	case *syntax.ExtGlob:
		b.hole(true, false)
	case *syntax.ProcSubst:
		b.hole(false, false)
	case *syntax.ArithmExp:
		b.hole(false, true)
	default: // a substitution or a parameter, without quotes
		b.hole(true, true)
	}
}

// quotedPart adds a part within double quotes.
func (b *wordBuilder) quotedPart(part syntax.WordPart) {
	switch x := part.(type) {
	case *syntax.Lit:
		var text strings.Builder
		for i := 0; i < len(x.Value); i++ {
			if x.Value[i] == '\\' && i+1 < len(x.Value) && strings.IndexByte("$`\"\\\n", x.Value[i+1]) >= 0 {
				if i++; x.Value[i] == '\n' {
					continue
				}
			}
			text.WriteByte(x.Value[i])
		}
		b.quoted(text.String())
	case *syntax.ParamExp:
		// "$@" and "${a[@]}" are any number of words, also below an operator such as ${x:+"$@"}.
		isList := x.Param == nil || x.Param.Value == "@" || x.Index != nil || x.Exp != nil || x.Names != 0 || x.Excl
		b.hole(false, isList)
	default:
		b.hole(false, false)
	}
}

// quoted adds a text that was quoted.
func (b *wordBuilder) quoted(text string) {
	b.hasLiteral = b.hasLiteral || strings.ContainsAny(text, "$`")
	b.put(text)
}

// literal adds a text without quotes. A tilde at the beginning is a directory that is not known; the name of the file
// behind it is. A pattern becomes the names of files, each of which begins and ends as the pattern does.
func (b *wordBuilder) literal(s string, first bool) {
	if first && strings.HasPrefix(s, "~") {
		user, rest, hasRest := strings.Cut(s, "/")
		b.hole(false, false)
		if s = ""; hasRest {
			s = "/" + rest
		} else if strings.ContainsAny(user, `\*?[{`) {
			b.hole(true, true)
		}
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			switch i++; {
			case i == len(s): // at the end of the script it stands for itself
				b.put(`\`)
			case s[i] != '\n':
				b.quoted(s[i : i+1])
			}
		case '*', '?', '[':
			b.hole(true, false)
		case '{':
			b.put("{")
			b.brace = true
		case ',':
			b.comma()
		case '.':
			if b.put("."); b.brace && i+1 < len(s) && s[i+1] == '.' {
				b.comma()
			}
		default:
			b.put(s[i : i+1])
		}
	}
}

// comma adds a comma. Within a brace it makes several words of one, with text that is before the brace. What bash makes
// of it are several words, so from the brace on nothing is known of the word.
func (b *wordBuilder) comma() {
	if !b.brace {
		b.put(",")
		return
	}
	before := b.text.String()
	if i := strings.IndexByte(before, '{'); i >= 0 {
		b.text.Reset()
		b.put(before[:i])
	}
	b.hole(true, true)
}

// ansi returns the text of $'...'. Only the escapes that are the same in all versions of bash are known. The others
// depend on the version or on the locale: a word with one of them is not known.
func ansi(s string) (text string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		if i++; i == len(s) {
			return "", false
		}
		switch s[i] {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case '\\', '\'', '"':
			b.WriteByte(s[i])
		default:
			return "", false
		}
	}
	return b.String(), true
}
