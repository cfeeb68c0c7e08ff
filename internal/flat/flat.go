// Package flat reads JSON objects that are mostly flat in one pass, without reflection: tasks and events, of which a board
// has 100,000 and a journal a million. What it does not know it leaves to encoding/json: a caller that sees Bad decodes the
// object again, the slow way.
package flat

import (
	"encoding/json"
)

// Reader is at one field after the other of an object. The zero value is none: see Read.
type Reader struct {
	data []byte
	at   int
	name []byte
	open bool // the object's brace is read
	end  bool // and its last one
	bad  bool
}

// Read returns a Reader of one object, which must be valid UTF-8.
func Read(data []byte) Reader { return Reader{data: data} }

// Next goes to the next field. Its value must then be taken, by one of the methods that follow. False: there is none, or
// the object is none for this reader.
func (r *Reader) Next() bool {
	if r.bad || r.end {
		return false
	}
	r.blanks()
	switch {
	case !r.open:
		r.open = true
		if !r.byte('{') {
			return r.fail()
		}
		r.blanks()
		if r.byte('}') {
			return r.last()
		}
	case r.byte('}'):
		return r.last()
	case !r.byte(','):
		return r.fail()
	}
	r.blanks()
	start, stop, escaped := r.quoted()
	if r.bad || escaped {
		return r.fail()
	}
	r.name = r.data[start:stop]
	r.blanks()
	if !r.byte(':') {
		return r.fail()
	}
	r.blanks()
	return true
}

// Name is the field's name, as long as the object's bytes stay.
func (r *Reader) Name() []byte { return r.name }

// Fail says that the value cannot be taken.
func (r *Reader) Fail() { r.bad = true }

// Bad reports whether anything was not as it can be read here, or was not read to its end.
func (r *Reader) Bad() bool { return r.bad || !r.end }

// Null takes the value if it is null.
func (r *Reader) Null() bool { return r.word("null") }

// Bool takes true or false.
func (r *Reader) Bool() bool {
	if r.word("true") {
		return true
	}
	if !r.word("false") {
		r.bad = true
	}
	return false
}

// Text takes a string.
func (r *Reader) Text() string {
	start, stop, escaped := r.quoted()
	switch {
	case r.bad:
		return ""
	case !escaped:
		return string(r.data[start:stop])
	}
	b := make([]byte, 0, stop-start)
	for i := start; i < stop; i++ {
		c := r.data[i]
		if c == '\\' {
			i++
			switch c = r.data[i]; c {
			case '"', '\\', '/':
			case 'b':
				c = '\b'
			case 'f':
				c = '\f'
			case 'n':
				c = '\n'
			case 'r':
				c = '\r'
			case 't':
				c = '\t'
			default: // \u: seldom, and not worth doing twice
				var s string
				r.bad = json.Unmarshal(r.data[start-1:stop+1], &s) != nil
				return s
			}
		}
		b = append(b, c)
	}
	return string(b)
}

// Int takes a whole number.
func (r *Reader) Int() int {
	n, start, minus := 0, r.at, r.byte('-')
	digits := r.at
	for r.at < len(r.data) && r.data[r.at]-'0' <= 9 {
		n = n*10 + int(r.data[r.at]-'0')
		r.at++
	}
	size := r.at - digits
	if size == 0 || size > 18 || size > 1 && r.data[digits] == '0' || r.at < len(r.data) && (r.data[r.at] == '.' || r.data[r.at]|32 == 'e') {
		r.at, r.bad = start, true
		return 0
	}
	if minus {
		return -n
	}
	return n
}

// Number takes a number.
func (r *Reader) Number() float64 {
	start := r.at
	for r.at < len(r.data) && numeric(r.data[r.at]) {
		r.at++
	}
	text := r.data[start:r.at]
	// What fits a float's own digits, and a power of ten that it has exactly, is one division.
	whole, digits, after := uint64(0), 0, -1
	for _, c := range text {
		switch {
		case c-'0' <= 9:
			whole = whole*10 + uint64(c-'0')
			digits++
			if after >= 0 {
				after++
			}
		case c == '.' && after < 0 && digits > 0:
			after = 0
		default:
			digits = 99
		}
	}
	plain := digits > 0 && digits <= 18 && whole < 1<<53 && after != 0 && after < len(tens)
	if plain && !(digits > 1 && text[0] == '0' && text[1] != '.') {
		return float64(whole) / tens[max(after, 0)]
	}
	var v float64
	if json.Unmarshal(text, &v) != nil { // it knows what JSON takes for a number
		r.bad = true
	}
	return v
}

var tens = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9}

// Ints takes a list of whole numbers; it is never nil.
func (r *Reader) Ints() []int {
	list := []int{}
	if !r.byte('[') {
		r.bad = true
		return list
	}
	if r.blanks(); r.byte(']') {
		return list
	}
	for !r.bad {
		r.blanks()
		list = append(list, r.Int())
		if r.blanks(); r.byte(']') {
			return list
		}
		r.bad = r.bad || !r.byte(',')
	}
	return list
}

// Any takes a value of any kind, as encoding/json decodes it into an any.
func (r *Reader) Any() any {
	if r.at >= len(r.data) {
		r.bad = true
		return nil
	}
	switch c := r.data[r.at]; {
	case c == '"':
		return r.Text()
	case c == '-' || c-'0' <= 9:
		return r.Number()
	case c == 't' || c == 'f':
		return r.Bool()
	case c == 'n':
		r.bad = r.bad || !r.Null()
		return nil
	case c == '{' || c == '[':
		var v any
		if raw := r.Raw(); r.bad || json.Unmarshal(raw, &v) != nil {
			r.bad = true
		}
		return v
	}
	r.bad = true
	return nil
}

// Raw takes an object or a list as it stands, unchecked.
func (r *Reader) Raw() []byte {
	start := r.at
	if r.at >= len(r.data) || r.data[r.at] != '{' && r.data[r.at] != '[' {
		r.bad = true
		return nil
	}
	r.skip()
	return r.data[start:r.at]
}

// skip goes over an object or a list, whose inside others check.
func (r *Reader) skip() {
	for depth := 0; r.at < len(r.data) && !r.bad; {
		switch r.data[r.at] {
		case '"':
			r.quoted()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if r.at++; depth == 0 {
			return
		}
	}
	r.bad = true
}

// quoted goes over a string, whose inside lies between start and stop.
func (r *Reader) quoted() (start, stop int, escaped bool) {
	if !r.byte('"') {
		r.bad = true
		return 0, 0, false
	}
	for start = r.at; r.at < len(r.data); r.at++ {
		switch c := r.data[r.at]; {
		case c == '"':
			r.at++
			return start, r.at - 1, escaped
		case c == '\\':
			escaped = true
			r.at++
		case c < ' ':
			r.bad = true
			return 0, 0, false
		}
	}
	r.bad = true
	return 0, 0, false
}

func (r *Reader) blanks() {
	for r.at < len(r.data) {
		switch r.data[r.at] {
		case ' ', '\t', '\r', '\n':
			r.at++
		default:
			return
		}
	}
}

func (r *Reader) byte(c byte) bool {
	if r.at < len(r.data) && r.data[r.at] == c {
		r.at++
		return true
	}
	return false
}

func (r *Reader) word(w string) bool {
	if end := r.at + len(w); end <= len(r.data) && string(r.data[r.at:end]) == w {
		r.at = end
		return true
	}
	return false
}

func (r *Reader) last() bool {
	r.blanks()
	r.end = r.at == len(r.data)
	return false
}

func (r *Reader) fail() bool {
	r.bad = true
	return false
}

func numeric(c byte) bool { return c-'0' <= 9 || c == '-' || c == '+' || c == '.' || c|32 == 'e' }
