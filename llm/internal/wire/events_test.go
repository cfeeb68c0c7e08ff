package wire

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestEvents(t *testing.T) {
	broken := errors.New("connection reset")
	for name, c := range map[string]struct {
		stream io.Reader
		want   []string
		fails  bool
	}{
		"ordinary":                 {strings.NewReader("event: a\ndata: 1\n\ndata: 2\n\n"), []string{"a1", "2"}, false},
		"without blanks":           {strings.NewReader("data:1\n\ndata:  2\n\n"), []string{"1", "2"}, false},
		"carriage returns":         {strings.NewReader("data: 1\r\n\r\ndata: 2\r\n\r\n"), []string{"1", "2"}, false},
		"several lines of data":    {strings.NewReader("data: [1,\nid: 7\ndata: 2]\n\n"), []string{"[1,\n2]"}, false},
		"comments and no data":     {strings.NewReader(": ping\n\nevent: ping\n\ndata:\n\ndatax: 3\n\ndata: 1\n\n"), []string{"1"}, false},
		"cut off":                  {strings.NewReader("data: 1\n\ndata: 2\n"), []string{"1"}, false},
		"broken":                   {io.MultiReader(strings.NewReader("data: 1\n\ndata: 2"), iotest.ErrReader(broken)), []string{"1"}, true},
		"one byte at a time":       {iotest.OneByteReader(strings.NewReader("data: 1\n\ndata: 2\n\n")), []string{"1", "2"}, false},
		"an event that never ends": {endlessEvent(), nil, true},
		"a line that never ends":   {io.LimitReader(endless{}, 2*MaxEvent), nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			var failed error
			for e, err := range events(c.stream) {
				if failed = err; err == nil {
					got = append(got, e.name+string(e.data))
				}
			}
			if !slices.Equal(got, c.want) || (failed != nil) != c.fails {
				t.Errorf("%q, %v, want %q, an error: %v", got, failed, c.want, c.fails)
			}
		})
	}
}

// endlessEvent is a stream of data without a blank line.
func endlessEvent() io.Reader {
	line := "data: " + strings.Repeat("a", 1<<20) + "\n"
	return strings.NewReader(strings.Repeat(line, 2*MaxEvent>>20))
}

// endless is a stream without a newline.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}
