package code

import "unicode/utf8"

// cleaner makes harmless text of what programs print, as it comes, in pieces of any size: terminal sequences and control
// characters go, a carriage return ends a line, and what is not UTF-8 becomes U+FFFD, one for each run of such bytes.
type cleaner struct {
	state  byte
	length int    // of the sequence that is being skipped
	part   []byte // of a character that is not complete yet
	bad    bool   // the last thing written was U+FFFD for bytes that are not UTF-8
	cr     bool   // the last byte was a carriage return
}

const (
	inText byte = iota
	inEscape
	inCSI      // ESC [ ... letter
	inString   // ESC ] ... until BEL or ESC \: titles, links
	inStringST // within a string, after ESC
	inCharset  // ESC ( B and such: one more byte
)

// longest is where a sequence that does not end is given up: its rest is text.
const longest = 4096

// clean appends to dst what is to be seen of p.
func (c *cleaner) clean(dst, p []byte) []byte {
	if len(c.part) > 0 {
		p = append(c.part, p...)
		c.part = nil
	}
	for len(p) > 0 {
		if c.state != inText && c.skip(p[0]) {
			p = p[1:]
			continue
		}
		if n := plain(p); n > 0 && !(c.cr && p[0] == '\n') {
			dst = append(dst, p[:n]...)
			p, c.bad, c.cr = p[n:], false, false
			continue
		}
		if b := p[0]; b < utf8.RuneSelf {
			dst = c.ascii(dst, b)
			p = p[1:]
			continue
		}
		if !utf8.FullRune(p) {
			c.part = append([]byte(nil), p...)
			return dst
		}
		r, n := utf8.DecodeRune(p)
		switch {
		case r == utf8.RuneError && n == 1:
			dst = c.wrong(dst)
		case r < 0xA0: // C1 controls
			c.cr = false
		default:
			c.bad, c.cr = false, false
			dst = append(dst, p[:n]...)
		}
		p = p[n:]
	}
	return dst
}

// plain is how many bytes p begins with that are text in any case: most of all that is ever printed.
func plain(p []byte) int {
	for i, b := range p {
		if (b < ' ' || b > '~') && b != '\n' && b != '\t' {
			return i
		}
	}
	return len(p)
}

// finish appends what is left of a character that never became complete.
func (c *cleaner) finish(dst []byte) []byte {
	if len(c.part) > 0 {
		c.part = nil
		dst = c.wrong(dst)
	}
	return dst
}

func (c *cleaner) wrong(dst []byte) []byte {
	if !c.bad {
		dst = append(dst, "\uFFFD"...)
	}
	c.bad, c.cr = true, false
	return dst
}

func (c *cleaner) ascii(dst []byte, b byte) []byte {
	cr := c.cr
	c.cr = false
	switch {
	case b == '\r':
		c.cr, c.bad = true, false
		return append(dst, '\n')
	case b == '\n' && cr:
		return dst // its carriage return stands for it
	case b == 0x1b:
		c.state, c.length = inEscape, 0
		return dst
	case b == 0:
		return c.wrong(dst)
	case b < ' ' && b != '\n' && b != '\t' || b == 0x7f:
		return dst
	}
	c.bad = false
	return append(dst, b)
}

// skip takes b as a part of the sequence that is being skipped. If it cannot be one, the sequence is over and b is text.
func (c *cleaner) skip(b byte) bool {
	c.length++
	state := c.state
	c.state = inText
	if c.length > longest || b == '\n' {
		return false
	}
	switch state {
	case inEscape:
		switch {
		case b == '[':
			c.state = inCSI
		case b == ']' || b == 'P' || b == 'X' || b == '^' || b == '_':
			c.state = inString
		case b >= 0x20 && b <= 0x2f:
			c.state = inCharset
		default:
			return b >= 0x30 && b <= 0x7e
		}
	case inCSI:
		switch {
		case b >= 0x20 && b <= 0x3f:
			c.state = inCSI
		default:
			return b >= 0x40 && b <= 0x7e
		}
	case inString:
		switch b {
		case 0x07:
		case 0x1b:
			c.state = inStringST
		default:
			c.state = inString
		}
	case inStringST:
		if b != '\\' {
			c.state = inString
		}
	case inCharset:
		if b >= 0x20 && b <= 0x2f {
			c.state = inCharset
			return true
		}
		return b >= 0x30 && b <= 0x7e
	}
	return true
}
