package code

import (
	"bytes"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxNeedles is how many texts are searched for at once. With more of them an automaton is faster.
const maxNeedles = 8

// needle is a text that a match contains.
type needle struct {
	text string
	// isFolded says that the case of the letters does not matter. All of them are ASCII then, and none has a third
	// form.
	isFolded bool
}

// requiredNeedles returns texts of which each match of an expression contains one, or nil.
func requiredNeedles(re *syntax.Regexp) (best []needle) {
	switch re.Op {
	case syntax.OpLiteral:
		if n := literalNeedle(re); n.text != "" {
			return []needle{n}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return requiredNeedles(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return requiredNeedles(re.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if n := requiredNeedles(sub); shortest(n) > shortest(best) {
				best = n
			}
		}
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			n := requiredNeedles(sub)
			if best = append(best, n...); n == nil || len(best) > maxNeedles {
				return nil
			}
		}
	default: // of an option nothing is required
	}
	return best
}

// shortest returns the length of the shortest of several needles, or 0.
func shortest(all []needle) int {
	if len(all) == 0 {
		return 0
	}
	return len(slices.MinFunc(all, func(a, b needle) int { return len(a.text) - len(b.text) }).text)
}

// literalNeedle returns what text contains that matches a literal.
func literalNeedle(re *syntax.Regexp) needle {
	// Invalid bytes match this character, so its bytes need not be there.
	isOther := func(r rune) bool { return r == utf8.RuneError }
	isFolded := re.Flags&syntax.FoldCase != 0
	if isFolded { // k and s have a third form, which is not ASCII, as have other letters
		isOther = func(r rune) bool { return r >= utf8.RuneSelf || strings.ContainsRune("kKsS", r) }
	}
	longest := ""
	for _, piece := range strings.FieldsFunc(string(re.Rune), isOther) {
		if len(piece) > len(longest) {
			longest = piece
		}
	}
	return needle{longest, isFolded}
}

// anchor is a byte of a needle by which the needle is searched for.
type anchor struct {
	needle []byte
	at     int  // the index of the byte
	c      byte // which is in one case, where the case of the needle does not matter
	isFold bool
}

// anchorsOf returns the bytes by which needles are searched for: the rarest of each, in both cases.
func anchorsOf(all []needle) (out []anchor) {
	for _, n := range all {
		if n.isFolded {
			n.text = strings.ToLower(n.text) // whose letters are the common ones
		}
		a := anchor{needle: []byte(n.text), at: rarestByte(n.text), isFold: n.isFolded}
		a.c = n.text[a.at]
		out = append(out, a)
		if other := otherCase(a.c); n.isFolded && other != a.c {
			a.c = other
			out = append(out, a)
		}
	}
	return out
}

// otherCase returns an ASCII letter in the other case, and any other byte as it is.
func otherCase(c byte) byte {
	if 'a' <= c|0x20 && c|0x20 <= 'z' {
		return c ^ 0x20
	}
	return c
}

// index returns where the needle stands at or after pos, or the length of data.
func (a *anchor) index(data []byte, pos int) int {
	wanted := a.needle[a.at:]
	if a.isFold {
		wanted = []byte{a.c}
	}
	for p := pos + a.at; p < len(data); p++ {
		i := bytes.Index(data[p:], wanted)
		if i < 0 {
			break
		}
		p += i
		if start := p - a.at; a.isAt(data[start:]) {
			return start
		}
	}
	return len(data)
}

// isAt reports whether data begins with the needle.
func (a *anchor) isAt(data []byte) bool {
	if a.isFold {
		return len(data) >= len(a.needle) && bytes.EqualFold(data[:len(a.needle)], a.needle)
	}
	return bytes.HasPrefix(data, a.needle)
}

// haystack is a text in which needles are searched for from its beginning to its end.
type haystack struct {
	data    []byte
	anchors []anchor
	found   []int // where each stands next, at or after the last position that was asked for
}

// newHaystack returns the haystack of a text.
func newHaystack(data []byte, anchors []anchor) haystack {
	h := haystack{data, anchors, make([]int, len(anchors))}
	for i := range h.found {
		h.found[i] = -1
	}
	return h
}

// index returns where the first needle stands at or after pos, or -1. Positions only ever grow, so no part of the text
// is searched twice for the same one.
func (h haystack) index(pos int) int {
	first := len(h.data)
	for i := range h.anchors {
		if h.found[i] < pos {
			h.found[i] = h.anchors[i].index(h.data, pos)
		}
		first = min(first, h.found[i])
	}
	if first == len(h.data) {
		return -1
	}
	return first
}

// rarestByte returns the index of the byte of a text that is the least common in programs.
func rarestByte(text string) (at int) {
	const common = " etaionsrl\tcdupmfhg_.()\n,\"=-/:0;1x>*vw<k'2{}[]$#bySTECAI"
	rank := func(c byte) int {
		if i := strings.IndexByte(common, c); i >= 0 {
			return i
		}
		return len(common)
	}
	for i := range len(text) {
		if rank(text[i]) > rank(text[at]) {
			at = i
		}
	}
	return at
}
