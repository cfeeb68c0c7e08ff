package durable

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// MaxLine is how long a line of a state file may be that is read, in bytes with its newline. The longest that muster
// writes is a tool's result with an image, of about 6 MiB.
const MaxLine = 32 << 20

// maxSkipped is how much of a longer line is read over to find its end. A file with holes can have a line of any
// length, and nobody can wait for its end.
const maxSkipped = 4 * MaxLine

// block is how much of a file is read at a time.
const block = 64 << 10

// NewLineReader returns a reader for ReadLine of what a file has from one offset to another. Its buffer is no larger
// than that: most files of the state are small and are read often.
func NewLineReader(file io.ReaderAt, from, to int64) *bufio.Reader {
	return bufio.NewReaderSize(io.NewSectionReader(file, from, to-from), int(min(block, max(to-from, 0))))
}

// ReadLine returns the next line with its newline, and its length. The line is nil when it is longer than MaxLine; what
// follows it can be read then. Errors: io.EOF with what follows the last newline, ErrTooLarge when the end of the line
// was not found, and those of reading.
func ReadLine(r *bufio.Reader) (line []byte, size int64, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if size += int64(len(part)); size <= MaxLine {
			line = append(line, part...)
		} else {
			line = nil
		}
		switch {
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, size, err
		case size > maxSkipped:
			return nil, size, tooLarge(MaxLine)
		}
	}
}

// LineStart returns the offset after the last newline before end, or 0 if there is none. It reads backwards in blocks,
// so the size of the file does not matter. The error is ErrTooLarge when the line is so long that its beginning was not
// looked for.
func LineStart(r io.ReaderAt, end int64) (int64, error) {
	size := int64(1) // mostly the last byte is that newline
	for at := end; at > 0; {
		b := make([]byte, min(size, at))
		n, err := r.ReadAt(b, at-int64(len(b)))
		if n < len(b) && err != nil && err != io.EOF {
			return 0, err
		}
		if i := bytes.LastIndexByte(b[:n], '\n'); i >= 0 {
			return at - int64(len(b)) + int64(i) + 1, nil
		}
		at -= int64(len(b))
		if size = block; end-at > maxSkipped {
			return 0, tooLarge(MaxLine)
		}
	}
	return 0, nil
}
