package wire

import (
	"bufio"
	"bytes"
	"io"
	"iter"
)

// maxEvent is the size of the largest event of a stream in bytes. The vendors send whole replies in one.
const maxEvent = 32 << 20

// event is an event of a stream. Its data is valid until the next one.
type event struct {
	name string // often empty
	data []byte
}

// events yields the events of a stream in the format of server-sent events, without those that have no data. An event
// ends at a blank line; one that the end of the stream cuts off is not yielded. The last pair may have the error of
// reading, which is bufio.ErrTooLong for an event that is too large.
//
// https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
func events(r io.Reader) iter.Seq2[event, error] {
	return func(yield func(event, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, maxEvent)
		var e event
		for lines.Scan() {
			name, value, _ := bytes.Cut(lines.Bytes(), []byte(":"))
			value = bytes.TrimPrefix(value, []byte(" "))
			switch {
			case string(name) == "event":
				e.name = string(value)
			case string(name) == "data" && len(e.data)+len(value) > maxEvent:
				yield(event{}, bufio.ErrTooLong)
				return
			case string(name) == "data":
				e.data = append(append(e.data, value...), '\n')
			case len(lines.Bytes()) == 0: // the end of the event
				data := bytes.TrimSpace(e.data)
				if len(data) > 0 && !yield(event{e.name, data}, nil) {
					return
				}
				e = event{data: e.data[:0]}
			}
		}
		if err := lines.Err(); err != nil {
			yield(event{}, err)
		}
	}
}
