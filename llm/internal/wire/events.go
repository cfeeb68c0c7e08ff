package wire

import (
	"bufio"
	"bytes"
	"io"
	"iter"
)

// maxLine is the size of the longest line of a stream in bytes. The vendors send whole replies in one line.
const maxLine = 32 << 20

// events yields the data of each event of a stream in the format of server-sent events, without those that have no
// data. An event ends at a blank line; one that the end of the stream cuts off is not yielded. The last pair may have
// the error of reading. The data is valid until the next event.
//
// https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
func events(r io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, maxLine)
		var data []byte
		for lines.Scan() {
			line := lines.Bytes()
			if name, value, _ := bytes.Cut(line, []byte(":")); string(name) == "data" {
				data = append(append(data, bytes.TrimPrefix(value, []byte(" "))...), '\n')
			}
			if len(line) > 0 {
				continue
			}
			if event := bytes.TrimSpace(data); len(event) > 0 && !yield(event, nil) {
				return
			}
			data = data[:0]
		}
		if err := lines.Err(); err != nil {
			yield(nil, err)
		}
	}
}
