package check

import (
	"io"
	"os"
	"strings"
)

// WriteLog writes the chunks to a log of its own limits, as a check does, and returns its last lines.
func WriteLog(f *os.File, head, tail int, chunks ...[]byte) ([]string, error) {
	l := &checkLog{file: f, headSize: head, tailSize: tail}
	for _, c := range chunks {
		if _, err := io.Writer(l).Write(c); err != nil {
			return nil, err
		}
	}
	return strings.Split(l.lines(maxTail), "\n"), l.close()
}

// SpoilLog makes the log of a check unwritable, as a full disk does. out is what the check writes to.
func SpoilLog(out io.Writer) { _ = out.(*checkLog).file.Close() }
