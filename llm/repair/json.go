package repair

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"muster/llm"
)

// maxDepth is how deep the JSON may be nested, and maxEncodings how often an object may be encoded as a string.
const (
	maxDepth     = 100
	maxEncodings = 3
)

// Object returns the JSON object that raw means, as llm.Input spells it. What is no JSON is read with the mistakes that
// models make: control characters in strings, trailing commas, single quotes, unquoted names, comments, words of
// Python, a fence around it, an object encoded as a string, and a last brace that is missing. It returns an error
// if raw has no reading, or could mean two things, or ends in the middle: what was cut must never run.
func Object(raw []byte) (json.RawMessage, error) { return object(string(raw), maxEncodings) }

// Value returns the one value of JSON that raw means, in the same way. Nothing may be missing at its end.
func Value(raw []byte) (json.RawMessage, error) {
	p := parser{in: string(raw) + " "} // raw is whole: a number at its end is, too
	err := p.value()
	if err == nil {
		err = p.end()
	}
	return p.out.Bytes(), err
}

// object is Object for a text that may still be decoded this many times.
func object(text string, encodings int) (json.RawMessage, error) {
	if input, err := llm.Input([]byte(text)); err == nil {
		return input, nil
	}
	text = unfence(strings.Trim(text, " \t\r\n\uFEFF\u200B"))
	if encodings == 0 {
		return nil, errors.New("it is encoded too often")
	}
	for strings.HasPrefix(text, "{{") && strings.HasSuffix(text, "}}") {
		text = strings.TrimSpace(text[1 : len(text)-1])
	}
	if strings.HasPrefix(text, `{\"`) { // the inside of a string, without its quotes
		text = `"` + text + `"`
	}
	p := parser{in: text, mayClose: strings.HasPrefix(text, "{")}
	if err := p.value(); err != nil {
		return nil, err
	}
	value := bytes.Clone(p.out.Bytes())
	switch value[0] {
	case '"':
		var inner string
		if err := p.end(); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(value, &inner); err != nil {
			return nil, err
		}
		return object(inner, encodings-1)
	case '[':
		var list []json.RawMessage
		if err := p.end(); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(value, &list); err != nil || len(list) != 1 {
			return nil, fmt.Errorf("it is a list of %d values, not an object", len(list))
		}
		return llm.Input(list[0])
	}
	value, err := p.repeated(value)
	if err != nil {
		return nil, err
	}
	return llm.Input(value)
}

// repeated reads what follows an object. Some servers send one twice, or an empty one before it; two different ones
// have no single reading. Superfluous ends of objects, lists and calls mean nothing.
func (p *parser) repeated(value []byte) ([]byte, error) {
	for p.skip(); p.peek() == '{'; p.skip() {
		p.out.Reset()
		p.mayClose = false
		if err := p.value(); err != nil {
			return nil, err
		}
		switch next := p.out.Bytes(); {
		case bytes.Equal(value, next), string(next) == "{}":
		case string(value) == "{}":
			value = bytes.Clone(next)
		default:
			return nil, errors.New("two different objects follow each other")
		}
	}
	rest := strings.TrimLeft(p.in[p.pos:], " \t\r\n}]")
	p.pos = len(p.in) - len(rest) + len(around().FindString(rest))
	return value, p.end()
}

// unfence returns what is inside a code fence if all of text is in one.
func unfence(text string) string {
	body, isOpen := strings.CutPrefix(text, "```")
	body, isClosed := strings.CutSuffix(body, "```")
	if !isOpen || !isClosed || strings.Contains(body, "\n```") {
		return text
	}
	return strings.TrimSpace(strings.TrimLeft(body, "JSONjson5")) // the name of the language
}

// parser reads one value of JSON with mistakes, and writes it as JSON.
type parser struct {
	in       string
	pos      int
	depth    int
	out      bytes.Buffer
	mayClose bool // the last brace of the outermost object may be missing
}

// errAt is an error that says where it is.
func (p *parser) errAt(f string, a ...any) error {
	return fmt.Errorf("%s at character %d", fmt.Sprintf(f, a...), p.pos+1)
}

// errCut is the error for text that ends within a value.
var errCut = errors.New("it ends in the middle")

// peek returns the next byte, or 0 at the end.
func (p *parser) peek() byte {
	if p.pos < len(p.in) {
		return p.in[p.pos]
	}
	return 0
}

// end returns an error unless nothing is left.
func (p *parser) end() error {
	if p.skip(); p.pos < len(p.in) {
		return p.errAt("something follows the value")
	}
	return nil
}

// skip moves over spaces and comments. A space may be escaped, as it is in a string.
func (p *parser) skip() {
	for {
		rest := p.in[p.pos:]
		trimmed := strings.TrimLeft(rest, " \t\r\n\u00a0")
		p.pos += len(rest) - len(trimmed)
		switch {
		case len(trimmed) > 1 && trimmed[0] == '\\' && strings.IndexByte("nrt", trimmed[1]) >= 0:
			p.pos += 2
		case strings.HasPrefix(trimmed, "//"):
			n := strings.IndexByte(trimmed+"\n", '\n')
			p.pos += min(n, len(trimmed))
		case strings.HasPrefix(trimmed, "/*") && strings.Contains(trimmed[2:], "*/"):
			p.pos += 2 + strings.Index(trimmed[2:], "*/") + 2
		default:
			return
		}
	}
}

// value reads one value.
func (p *parser) value() error {
	p.skip()
	if p.depth++; p.depth > maxDepth {
		return fmt.Errorf("it is nested deeper than %d levels", maxDepth)
	}
	defer func() { p.depth-- }()
	switch c := p.peek(); {
	case p.pos == len(p.in):
		return errCut
	case c == '{':
		return p.elements('}')
	case c == '[':
		return p.elements(']')
	case p.quote() != "":
		return p.text()
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	}
	word := p.word()
	literal, ok := literals[word]
	if !ok {
		return p.errAt("there is no value")
	}
	p.pos += len(word)
	p.out.WriteString(literal)
	return nil
}

// literals are the words of JSON, Python and JavaScript that stand for a value.
var literals = map[string]string{"true": "true", "false": "false", "null": "null", "True": "true", "False": "false",
	"None": "null", "undefined": "null"}

// word returns the name that begins here. It does not move.
func (p *parser) word() string {
	n := p.pos
	for n < len(p.in) && (p.in[n] == '_' || 'a' <= p.in[n]|0x20 && p.in[n]|0x20 <= 'z' ||
		n > p.pos && '0' <= p.in[n] && p.in[n] <= '9') {
		n++
	}
	return p.in[p.pos:n]
}

// number reads a number of JSON. One at the end of the text may have lost digits, so it is an error.
func (p *parser) number() error {
	n := p.pos
	for n < len(p.in) && strings.IndexByte("+-.0123456789eE", p.in[n]) >= 0 {
		n++
	}
	text := p.in[p.pos:n]
	switch {
	case n == len(p.in):
		return errCut
	case !json.Valid([]byte(text)):
		return p.errAt("%.20q is no number", text)
	}
	p.pos = n
	p.out.WriteString(text)
	return nil
}

// elements reads what is between two brackets: the fields of an object, or the values of a list.
func (p *parser) elements(end byte) error {
	p.out.WriteByte(p.in[p.pos])
	p.pos++
	values := map[string][2]int{} // of the fields: where they are in out
	for isFirst := true; ; isFirst = false {
		if p.skip(); p.peek() == end { // after a comma, too
			break
		}
		if !isFirst {
			p.out.WriteByte(',')
		}
		from := p.out.Len()
		if end == '}' {
			if err := p.name(); err != nil {
				return err
			}
		}
		at := p.out.Len()
		if err := p.value(); err != nil {
			return err
		}
		if out := p.out.Bytes(); end == '}' {
			name := string(out[from:at])
			if was, isTwice := values[name]; isTwice && !bytes.Equal(out[was[0]:was[1]], out[at:]) {
				return p.errAt("the field %s has two values", strings.TrimSuffix(name, ":"))
			}
			values[name] = [2]int{at, len(out)}
		}
		if p.skip(); p.peek() != ',' {
			break
		}
		p.pos++
	}
	// The last brace may be missing where the end of the text, or that of the call, says that nothing else is.
	isEnd := p.mayClose && p.pos == len(p.in) || strings.HasPrefix(p.in[p.pos:], "</tool_call>")
	if p.peek() == end {
		p.pos++
	} else if p.depth > 1 || !isEnd {
		return p.expected("a comma or " + string(end))
	}
	p.out.WriteByte(end)
	return nil
}

// name reads the name of a field, with or without quotes, and the colon behind it.
func (p *parser) name() error {
	if p.quote() != "" {
		if err := p.text(); err != nil {
			return err
		}
	} else if word := p.word(); word != "" {
		p.pos += len(word)
		p.out.WriteString(`"` + word + `"`)
	} else {
		return p.expected("the name of a field")
	}
	if p.skip(); p.peek() != ':' {
		return p.expected("a colon")
	}
	p.pos++
	p.out.WriteByte(':')
	return nil
}

// expected is the error for what is missing here.
func (p *parser) expected(what string) error {
	if p.pos == len(p.in) {
		return errCut
	}
	return p.errAt("%s is missing", what)
}
