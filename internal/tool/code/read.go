package code

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"muster/llm"
	"muster/tool"
)

const (
	readLines   = 2000     // of one read_file, unless it asks for less
	readLine    = 2000     // bytes of one line
	readMost    = 45_000   // bytes in all, so that the output limit never cuts into lines with numbers
	countMost   = 64 << 20 // the lines of a larger file are not counted to its end
	sniffed     = 8000     // bytes that are looked at to tell what a file is
	imageMost   = 4 << 20
	listEntries = 100
)

type readInput struct {
	Path   string `json:"path"`
	Offset int    `json:"offset,omitempty" jsonschema:"first line, from 1"`
	Limit  int    `json:"limit,omitempty" jsonschema:"lines, 2000 at most"`
}

func (t toolset) readFile() llm.Tool {
	return tool.New("read_file", "Read a file or an image; read before you edit. Lines come as number, tab, text.",
		func(ctx context.Context, in readInput) (llm.Result, error) {
			s, err := t.stand(ctx)
			if err != nil {
				return tool.FromError(err)
			}
			at, err := s.at(in.Path, false)
			if err != nil {
				return tool.FromError(err)
			}
			defer at.close()
			return read(ctx, at, in)
		}, tool.ReadOnly())
}

func read(ctx context.Context, at confinedPath, in readInput) (llm.Result, error) {
	fi, err := at.root.Stat(at.rel) // before it is opened: a pipe would wait for its other end
	switch {
	case err != nil:
		return tool.FromError(at.why(err))
	case fi.IsDir():
		return tool.FromError(at.isDir())
	case !fi.Mode().IsRegular():
		return llm.ErrorResult("%s is not a file but a %s.", at.show, special(fi.Mode())), nil
	}
	f, err := at.root.Open(at.rel)
	if err != nil {
		return tool.FromError(at.why(err))
	}
	defer f.Close()
	head := make([]byte, sniffed)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return tool.FromError(at.why(err))
	}
	head = head[:n]
	media := http.DetectContentType(head)
	if slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, media) {
		return picture(at, f, fi, media, head)
	}
	if binary(head) {
		return llm.ErrorResult("%s is not text: %s, %s. Look into it with bash if you must.", at.show, media, size(fi.Size())), nil
	}
	return lines(ctx, at, bufio.NewReaderSize(io.MultiReader(bytes.NewReader(head), f), 64<<10), fi.Size(), in)
}

func binary(head []byte) bool { return bytes.IndexByte(head, 0) >= 0 }

func special(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	}
	return "device"
}

func size(n int64) string {
	switch {
	case n < 10_000:
		return fmt.Sprintf("%d bytes", n)
	case n < 10_000_000:
		return fmt.Sprintf("%d KB", n/1000)
	}
	return fmt.Sprintf("%d MB", n/1_000_000)
}

// isDir says that a directory is no file, and what is in it.
func (s confinedPath) isDir() error {
	var names []string
	if f, err := s.root.Open(s.rel); err == nil {
		defer f.Close()
		entries, _ := f.ReadDir(-1)
		for _, e := range entries {
			name := e.Name()
			if e.IsDir() {
				name += "/"
			}
			names = append(names, name)
		}
	}
	slices.Sort(names)
	text := fmt.Sprintf("%s is a directory", s.show)
	switch {
	case len(names) == 0:
		return errors.New(text + ", and it is empty")
	case len(names) > listEntries:
		return fmt.Errorf("%s of %d entries: %s, and more (glob finds them)", text, len(names), strings.Join(names[:listEntries], " "))
	}
	return fmt.Errorf("%s: %s", text, strings.Join(names, " "))
}

func picture(at confinedPath, f *os.File, fi fs.FileInfo, media string, head []byte) (llm.Result, error) {
	if fi.Size() >= imageMost {
		return llm.ErrorResult("%s is too large to be shown: %s, %s, and the limit is 4 MB. Make it smaller first.", at.show, media, size(fi.Size())), nil
	}
	rest, err := io.ReadAll(io.LimitReader(f, imageMost))
	if err != nil {
		return tool.FromError(at.why(err))
	}
	return llm.Result{Parts: []llm.Part{
		llm.Text{Text: fmt.Sprintf("%s: %s, %s", at.show, media, size(fi.Size()))},
		llm.Image{Media: media, Data: append(head, rest...)},
	}}, nil
}

// lines shows the lines that were asked for. The file goes by in pieces: its size does not matter.
func lines(ctx context.Context, at confinedPath, r *bufio.Reader, fileSize int64, in readInput) (llm.Result, error) {
	if in.Offset < 0 || in.Limit < 0 {
		return llm.ErrorResult("offset and limit count lines from 1: they cannot be negative."), nil
	}
	first, limit := max(in.Offset, 1), in.Limit
	if limit == 0 || limit > readLines {
		limit = readLines
	}
	var out strings.Builder
	var notes []string
	n, last, bad, crlf, seen := 0, 0, 0, 0, int64(0)
	for {
		line, length, err := nextLine(r, readLine)
		if err == io.EOF {
			break
		}
		if err != nil {
			return tool.FromError(at.why(err))
		}
		n++
		seen += int64(length) + 1
		if n%1000 == 0 && ctx.Err() != nil {
			return llm.Result{}, context.Cause(ctx)
		}
		if n >= first && n < first+limit && (last == 0 || last == n-1) {
			if bytes.HasSuffix(line, []byte("\r")) {
				crlf++
				line, length = line[:len(line)-1], length-1
			}
			text, invalid := valid(line)
			bad += invalid
			if length > len(line) {
				text += fmt.Sprintf(" ... (%d bytes more in this line)", length-len(line))
			}
			if out.Len()+len(text) <= readMost || last == 0 {
				fmt.Fprintf(&out, "%d\t%s\n", n, text)
				last = n
			}
		}
		if last > 0 && n > last && fileSize > countMost {
			n = 0 // not counted to its end
			break
		}
	}
	switch {
	case fileSize == 0:
		return tool.Text(at.show + " is empty."), nil
	case last == 0:
		return llm.ErrorResult("%s has %d lines: there is no line %d.", at.show, n, first), nil
	case n == 0:
		notes = append(notes, fmt.Sprintf("lines %d-%d of a file of %s; go on with offset %d", first, last, size(fileSize), last+1))
	case last < n:
		notes = append(notes, fmt.Sprintf("lines %d-%d of %d; go on with offset %d", first, last, n, last+1))
	}
	if bad > 0 {
		notes = append(notes, fmt.Sprintf("%d bytes are not UTF-8 and shown as \uFFFD", bad))
	}
	if crlf > 0 {
		notes = append(notes, "lines end with CRLF")
	}
	for _, note := range notes {
		fmt.Fprintf(&out, "[%s]\n", note)
	}
	return tool.Text(out.String()), nil
}

// nextLine reads a line without its newline. Of a longer one it keeps only the first most bytes, and no half character;
// length is that of the whole. line is valid until the next call.
func nextLine(r *bufio.Reader, most int) (line []byte, length int, err error) {
	for {
		piece, err := r.ReadSlice('\n')
		end := err == nil
		if end {
			piece = piece[:len(piece)-1]
		}
		length += len(piece)
		if room := most - len(line); room > 0 {
			line = append(line, piece[:min(room, len(piece))]...)
		}
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF && length == 0:
			return nil, 0, io.EOF
		case err != nil && err != io.EOF:
			return nil, 0, err
		}
		if length > len(line) {
			for i := 1; i < utf8.UTFMax && i <= len(line); i++ {
				if tail := line[len(line)-i:]; utf8.RuneStart(tail[0]) {
					if !utf8.FullRune(tail) {
						line = line[:len(line)-i]
					}
					break
				}
			}
		}
		return line, length, nil
	}
}

// valid makes text of bytes, and counts those that are none.
func valid(line []byte) (text string, invalid int) {
	if utf8.Valid(line) {
		return string(line), 0
	}
	var b strings.Builder
	for len(line) > 0 {
		r, n := utf8.DecodeRune(line)
		if r == utf8.RuneError && n == 1 {
			invalid++
		}
		b.WriteRune(r)
		line = line[n:]
	}
	return b.String(), invalid
}
