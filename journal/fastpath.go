package journal

import (
	"bytes"
	"strconv"

	"muster"
)

// field is a field of events, as the last line had it. Most values are those of the line before and need not be decoded
// again.
type field struct {
	name  string
	head  string // as it begins in a line: "name":
	raw   []byte // its value as it stood there; empty: there is none worth keeping
	value any    // and decoded
	next  *field // what came behind it
}

// maxKept is how long a value may be that is kept, in bytes.
const maxKept = 256

// decodeFast decodes a line in the form that Emit writes: no blanks, texts without escapes, no lists and no objects.
// It returns false for a line that must be decoded another way. The line must be valid UTF-8. It is the fast path
// for muster log of a long journal, whose time bench/ limits.
func (d *decoder) decodeFast(line []byte) (e muster.Event, ok bool) {
	e.Fields = make(map[string]any, 8)
	last := &d.first
	for before := byte('{'); ; before = ',' {
		if len(line) < 2 || line[0] != before {
			return e, before == ',' && string(line) == "}"
		}
		line = line[1:]
		f := last.next
		if f == nil || !bytes.HasPrefix(line, []byte(f.head)) {
			size := text(line)
			if size == 0 || size == len(line) || line[size] != ':' {
				return e, false
			}
			if f = d.field(line[1 : size-1]); f == nil {
				return e, false
			}
			last.next = f
		}
		last, line = f, line[len(f.head):]
		size := 0
		switch f.name {
		case "event":
			if size = text(line); size > 0 {
				e.Kind = d.word(line[1 : size-1])
			}
		case "member":
			if size = text(line); size > 0 {
				e.Member = muster.Name(d.word(line[1 : size-1]))
			}
		case "ts":
			e.At, size = number(line)
		case "task_id":
			if size = digits(line); size > 0 {
				n, err := strconv.Atoi(string(line[:size]))
				if err != nil {
					return e, false
				}
				e.Task = muster.TaskID(n)
			}
		default:
			size = f.take(line)
			e.Fields[f.name] = f.value
		}
		if size == 0 {
			return e, false
		}
		line = line[size:]
	}
}

// take makes the value at the beginning of line the field's and returns its size, or 0 for a value of another form.
func (f *field) take(line []byte) (size int) {
	if len(f.raw) > 0 && bytes.HasPrefix(line, f.raw) {
		// If the value goes on, what follows is no comma, and the line is refused.
		return len(f.raw)
	}
	switch {
	case bytes.HasPrefix(line, []byte(`"`)):
		if size = text(line); size > 0 {
			f.value = string(line[1 : size-1])
		}
	case bytes.HasPrefix(line, []byte("true")):
		f.value, size = true, len("true")
	case bytes.HasPrefix(line, []byte("false")):
		f.value, size = false, len("false")
	default:
		var n float64
		if n, size = number(line); size > 0 {
			f.value = n
		}
	}
	if f.raw = f.raw[:0]; size <= maxKept {
		f.raw = append(f.raw, line[:size]...)
	}
	return size
}

// text returns the size of the text at the beginning of line, with its quotes. It is 0 when there is none, or one
// with an escape.
func text(line []byte) (size int) {
	if len(line) == 0 || line[0] != '"' {
		return 0
	}
	for i, c := range line[1:] {
		switch {
		case c == '"':
			return i + 2
		case c == '\\' || c < ' ':
			return 0
		}
	}
	return 0
}

// number returns the number at the beginning of line and its size, which is 0 when there is none. It does not read an
// exponent: its e is left, and the line is refused.
func number(line []byte) (n float64, size int) {
	if len(line) > 0 && line[0] == '-' {
		size = 1
	}
	whole := digits(line[size:])
	if whole == 0 {
		return 0, 0
	}
	if size += whole; size < len(line) && line[size] == '.' {
		start := size + 1
		for size = start; size < len(line) && line[size]-'0' <= 9; {
			size++
		}
		if size == start {
			return 0, 0
		}
	}
	n, err := strconv.ParseFloat(string(line[:size]), 64)
	if err != nil {
		return 0, 0
	}
	return n, size
}

// digits returns the size of the whole number at the beginning of line, or 0 when there is none.
func digits(line []byte) (size int) {
	for size < len(line) && line[size]-'0' <= 9 {
		size++
	}
	if size > 1 && line[0] == '0' {
		return 0
	}
	return size
}
