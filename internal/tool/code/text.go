package code

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

const (
	// sniffedBytes is how much of the beginning of a file tells what kind of file it is.
	sniffedBytes = 8000
	// maxShownBytes is how much of one line read_file and edit_file show.
	maxShownBytes = 2000
)

// isBinary reports whether a file that begins with head is not text.
func isBinary(head []byte) bool { return bytes.IndexByte(head, 0) >= 0 }

// nextLine reads a line without its newline. Of a long line it keeps only the first limit bytes, without
// half a character at their end, so memory stays bounded whatever the file holds. length is the length of
// the whole line.
func nextLine(r *bufio.Reader, limit int) (line []byte, length int, err error) {
	for {
		piece, err := r.ReadSlice('\n')
		if err == nil {
			piece = piece[:len(piece)-1]
		}
		// Bytes beyond the limit are read, to find the end of the line, but not kept.
		length += len(piece)
		line = append(line, piece[:min(limit-len(line), len(piece))]...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && length > 0: // the last line has no newline
		case err != nil:
			return nil, 0, err
		}
		if length > len(line) {
			line = trimPartialRune(line)
		}
		return line, length, nil
	}
}

// trimPartialRune drops a character from the end of text that is not complete. Other invalid bytes stay.
func trimPartialRune(text []byte) []byte {
	for i := len(text) - 1; i >= max(0, len(text)-utf8.UTFMax+1); i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				return text[:i]
			}
			break
		}
	}
	return text
}

// decode returns line as a string with U+FFFD for each byte that is not UTF-8, and how many such bytes
// there are.
func decode(line []byte) (text string, invalid int) {
	if utf8.Valid(line) {
		return string(line), 0
	}
	text = string([]rune(string(line))) // the conversion replaces each invalid byte
	return text, strings.Count(text, "\uFFFD") - bytes.Count(line, []byte("\uFFFD"))
}

// numberLines shows lines[from:to], with or without their line ends, as read_file does.
func numberLines(lines []string, from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		line := strings.ToValidUTF8(strings.TrimRight(lines[i], "\r\n"), "\uFFFD")
		if len(line) > maxShownBytes {
			line = string(trimPartialRune([]byte(line[:maxShownBytes]))) + " ..."
		}
		fmt.Fprintf(&b, "%d\t%s\n", i+1, line)
	}
	return b.String()
}

// plural returns a number with the noun that it counts.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// formatSize returns a number of bytes in a readable unit.
func formatSize(n int64) string {
	switch {
	case n < 10_000:
		return fmt.Sprintf("%d bytes", n)
	case n < 10_000_000:
		return fmt.Sprintf("%d KB", n/1000)
	}
	return fmt.Sprintf("%d MB", n/1_000_000)
}
