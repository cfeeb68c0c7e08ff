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
			escape := p.in[p.pos:min(p.pos+2, len(p.in))]
			isJSON := len(escape) == 2 && strings.Contains("bfnrt", escape[1:]) || isUnicode(p.in[p.pos:])
			switch {
			case len(escape) < 2:
				return errCut
			case isJSON || strings.Contains(`"\/`, escape[1:]):
				known = known || isJSON
				p.out.WriteString(escape)
				p.pos += 2
			case escape[1:] == open:
				p.out.WriteString(open)
				p.pos += 2
			case escape[1] <= ' ' || strings.Contains("'ux0123456789", escape[1:]):
				return p.errAt(`the escape %s is not one of JSON`, escape)
			default:
				unknown = true
				p.out.WriteString(`\\`)
				p.pos++
			}
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

// isUnicode reports whether text begins with the escape of a character by its number.
func isUnicode(text string) bool {
	return len(text) >= 6 && text[:2] == `\u` && strings.Trim(text[2:6], "0123456789abcdefABCDEF") == ""
}
