package code

import (
	"bytes"
	"regexp"
	"sync"
	"unicode"
	"unicode/utf8"
)

// cleaner turns what programs print into text without side effects, as it comes, in pieces of any size. It
// removes terminal sequences and control characters, ends a line at a carriage return, and writes one
// U+FFFD for each run of bytes that are not UTF-8. Where a piece ends makes no difference.
type cleaner struct {
	pending    []byte // the beginning of a character or a sequence whose rest has not come yet
	isInvalid  bool   // the last thing written was U+FFFD for bytes that are not UTF-8
	isCarriage bool   // the last byte was a carriage return
}

const (
	escape = 0x1b
	// maxSequence is the longest sequence. Of one that does not end before it, the rest is text: otherwise
	// one broken sequence would hide everything that follows.
	maxSequence = 4096
)

// sequences returns the expression for a whole terminal sequence, and the one for its longest beginning. A
// sequence is ESC [ with parameters and a letter, ESC ] and its like with anything up to BEL or ESC \
// (titles, links), or ESC with a few characters. No sequence goes on over the end of a line. They are
// compiled at the first use, because every command of the program would pay for what is compiled at its
// start.
var sequences = sync.OnceValues(func() (whole, begun *regexp.Regexp) {
	const csi, str, charset = `\[[ -?]*`, `[\]PX^_](?:[^\x07\x1b\n]|\x1b[^\\\n])*`, `[ -/]+`
	return regexp.MustCompile(`^\x1b(?:` + csi + `[@-~]|` + str + `(?:\x07|\x1b\\)|` + charset +
			`[0-~]|[0-OQ-WYZ\\` + "`-~])"),
		regexp.MustCompile(`^\x1b(?:` + csi + `|` + str + `\x1b?|` + charset + `)?`)
})

// sequenceLen returns how many bytes at the beginning of p, which begins with ESC, belong to a sequence. ok
// is false if what follows p may belong to it too.
func sequenceLen(p []byte) (n int, ok bool) {
	whole, begun := sequences()
	limited := p[:min(len(p), maxSequence+1)]
	if n = len(whole.Find(limited)); n > 0 {
		return n, true
	}
	n = len(begun.Find(limited))
	return n, n < len(p)
}

// clean appends the visible part of p to dst.
func (c *cleaner) clean(dst, p []byte) []byte {
	if len(c.pending) > 0 {
		p = append(c.pending, p...)
		c.pending = nil
	}
	for len(p) > 0 {
		r, n := utf8.DecodeRune(p)
		isWhole := true
		switch {
		case r == escape:
			n, isWhole = sequenceLen(p)
			c.isCarriage = false
		case !utf8.FullRune(p):
			isWhole = false
		case r == 0 || r == utf8.RuneError && n == 1:
			dst = c.invalid(dst)
		case r == '\r':
			dst = append(dst, '\n') // a newline that follows is dropped: one line end, not two
			c.isInvalid, c.isCarriage = false, true
		case unicode.IsControl(r) && r != '\t' && (r != '\n' || c.isCarriage):
			c.isCarriage = false
		default:
			n = max(n, plainLen(p))
			dst = append(dst, p[:n]...)
			c.isInvalid, c.isCarriage = false, false
		}
		if !isWhole { // the rest may come with the next write
			c.pending = bytes.Clone(p)
			return dst
		}
		p = p[n:]
	}
	return dst
}

// finish appends what is left of a character that never became complete.
func (c *cleaner) finish(dst []byte) []byte {
	if len(c.pending) > 0 && c.pending[0] != escape {
		dst = c.invalid(dst)
	}
	c.pending = nil
	return dst
}

// plainLen returns how many bytes at the beginning of p are text in any case. That is nearly all of most
// outputs, so they are copied at once.
func plainLen(p []byte) int {
	for i, b := range p {
		if (b < ' ' || b > '~') && b != '\n' && b != '\t' {
			return i
		}
	}
	return len(p)
}

// invalid appends U+FFFD, unless it stands at the end already for the bytes before. Binary output would
// otherwise become a long row of them.
func (c *cleaner) invalid(dst []byte) []byte {
	if !c.isInvalid {
		dst = append(dst, "\uFFFD"...)
	}
	c.isInvalid, c.isCarriage = true, false
	return dst
}
