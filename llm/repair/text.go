package repair

import (
	"fmt"
	"strings"
)

// quotes are the marks that may open a string, and those that close it then. Between the tokens that Gemma and Kimi
// have for a quote, nothing is escaped.
var quotes = map[string]string{`"`: `"`, `'`: `'`, "“": "”", `<|"|>`: `<|"|>`, `<|">`: `<|">`}

// quote returns the mark that opens a string here, or "".
func (p *parser) quote() string {
	for open := range quotes {
		if strings.HasPrefix(p.in[p.pos:], open) {
			return open
		}
	}
	return ""
}

// text reads a string and writes it as JSON. A control character stands for itself. So does a backslash before a
// letter that JSON does not know, as in a regular expression: "\d" has no other meaning. But where "\d" and "\b"
// stand side by side, nobody can say whether the second was meant as JSON, so that is an error.
func (p *parser) text() error {
	open := p.quote()
	end := quotes[open]
	p.pos += len(open)
	p.out.WriteByte('"')
	var known, unknown bool
	for p.pos < len(p.in) {
		switch c := p.in[p.pos]; {
		case strings.HasPrefix(p.in[p.pos:], end):
			p.pos += len(end)
			p.out.WriteByte('"')
			if known && unknown {
				return p.errAt("a string mixes escapes that JSON knows with others")
			}
			return nil
		case c == '\\' && open[0] == '<':
			p.out.WriteString(`\\`)
			p.pos++
		case c == '\\':
			isKnown, err := p.escape(open)
			if err != nil {
				return err
			}
			known, unknown = known || isKnown == yes, unknown || isKnown == no
		case c < 0x20:
			fmt.Fprintf(&p.out, `\u%04x`, c)
			p.pos++
		case c == '"':
			p.out.WriteString(`\"`)
			p.pos++
		default:
			p.out.WriteByte(c)
			p.pos++
		}
	}
	return errCut
}

// answer is whether an escape is one of JSON: those for quotes and backslashes say nothing of the others.
type answer int

const (
	neither answer = iota
	yes
	no
)

// escape reads a backslash and what it escapes.
func (p *parser) escape(open string) (answer, error) {
	if p.pos+1 == len(p.in) {
		return neither, errCut
	}
	c := p.in[p.pos+1]
	switch {
	case strings.IndexByte(`"\/`, c) >= 0:
		p.out.WriteString(p.in[p.pos : p.pos+2])
		p.pos += 2
		return neither, nil
	case strings.IndexByte("bfnrt", c) >= 0:
		p.out.WriteString(p.in[p.pos : p.pos+2])
		p.pos += 2
		return yes, nil
	case c == '\'' && open == `'`:
		p.out.WriteByte(c)
		p.pos += 2
		return neither, nil
	case c == 'u' && isHex(p.in[p.pos+2:], 4):
		p.out.WriteString(p.in[p.pos : p.pos+6])
		p.pos += 6
		return yes, nil
	case c <= ' ' || strings.IndexByte("'ux0123456789", c) >= 0:
		return neither, p.errAt(`the escape \%c is not one of JSON`, c)
	}
	p.out.WriteString(`\\`)
	p.pos++
	return no, nil
}

// isHex reports whether text begins with n hexadecimal digits.
func isHex(text string, n int) bool {
	return len(text) >= n && strings.Trim(text[:n], "0123456789abcdefABCDEF") == ""
}
