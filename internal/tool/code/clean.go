package code

import (
	"bytes"
	"unicode/utf8"
)

// cleaner turns what programs print into text without side effects, as it comes, in pieces of any size. It removes
// terminal sequences and control characters, ends a line at a carriage return, and writes one U+FFFD for each run of
// bytes that are not UTF-8. Where a piece ends makes no difference.
type cleaner struct {
	state      sequenceState
	skipped    int    // bytes of the sequence that is being skipped
	partial    []byte // the beginning of a character whose rest has not come yet
	isInvalid  bool   // the last thing written was U+FFFD for bytes that are not UTF-8
	isCarriage bool   // the last byte was a carriage return
}

// sequenceState says which part of a terminal sequence comes next.
type sequenceState byte

const (
	inText         sequenceState = iota
	inEscape                     // after ESC
	inCSI                        // ESC [ ... letter
	inString                     // ESC ] ... until BEL or ESC \: titles, links
	inStringEscape               // within a string, after ESC
	inCharset                    // ESC ( B and such: one more byte
)

// maxSequence is the longest sequence. Of one that does not end before it, the rest is text: otherwise one broken
// sequence would hide everything that follows.
const maxSequence = 4096

// clean appends the visible part of p to dst.
func (c *cleaner) clean(dst, p []byte) []byte {
	if len(c.partial) > 0 {
		p = append(c.partial, p...)
		c.partial = nil
	}
	for len(p) > 0 {
		if c.state != inText && c.skip(p[0]) {
			p = p[1:]
			continue
		}
		// A newline right after a carriage return belongs to the line end that is written already.
		if n := plainLen(p); n > 0 && !(c.isCarriage && p[0] == '\n') {
			dst = append(dst, p[:n]...)
			p, c.isInvalid, c.isCarriage = p[n:], false, false
			continue
		}
		if p[0] < utf8.RuneSelf {
			dst = c.control(dst, p[0])
			p = p[1:]
			continue
		}
		// The rest of the character may come with the next write.
		if !utf8.FullRune(p) {
			c.partial = bytes.Clone(p)
			return dst
		}
		r, n := utf8.DecodeRune(p)
		switch {
		case r == utf8.RuneError && n == 1:
			dst = c.invalid(dst)
		case r < 0xA0: // a C1 control character
			c.isCarriage = false
		default:
			c.isInvalid, c.isCarriage = false, false
			dst = append(dst, p[:n]...)
		}
		p = p[n:]
	}
	return dst
}

// finish appends what is left of a character that never became complete.
func (c *cleaner) finish(dst []byte) []byte {
	if len(c.partial) > 0 {
		c.partial = nil
		dst = c.invalid(dst)
	}
	return dst
}

// plainLen returns how many bytes at the beginning of p are text in any case. That is nearly all of most outputs, so
// they are copied at once.
func plainLen(p []byte) int {
	for i, b := range p {
		if (b < ' ' || b > '~') && b != '\n' && b != '\t' {
			return i
		}
	}
	return len(p)
}

// invalid appends U+FFFD, unless it stands at the end already for the bytes before. Binary output would otherwise
// become a long row of them.
func (c *cleaner) invalid(dst []byte) []byte {
	if !c.isInvalid {
		dst = append(dst, "\uFFFD"...)
	}
	c.isInvalid, c.isCarriage = true, false
	return dst
}

// control handles an ASCII control character, or a newline after a carriage return.
func (c *cleaner) control(dst []byte, b byte) []byte {
	c.isCarriage = b == '\r'
	switch b {
	case '\r':
		c.isInvalid = false
		return append(dst, '\n') // a newline that follows is dropped: one line end, not two
	case 0x1b:
		c.state, c.skipped = inEscape, 0
	case 0:
		return c.invalid(dst)
	}
	return dst
}

// skip takes b as a part of the sequence that is being skipped. It reports false if b cannot belong to the sequence:
// then the sequence is over, and b is text.
func (c *cleaner) skip(b byte) bool {
	c.skipped++
	state := c.state
	c.state = inText
	if c.skipped > maxSequence || b == '\n' {
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
		if b < 0x20 || b > 0x3f {
			return b >= 0x40 && b <= 0x7e
		}
		c.state = inCSI
	case inString, inStringEscape: // anything may be in a string, also an ESC that does not end it
		switch {
		case state == inString && b == 0x07, state == inStringEscape && b == '\\': // the end of the string
		case state == inString && b == 0x1b:
			c.state = inStringEscape
		default:
			c.state = inString
		}
	case inCharset:
		if b < 0x20 || b > 0x2f {
			return b >= 0x30 && b <= 0x7e
		}
		c.state = inCharset
	}
	return true
}
