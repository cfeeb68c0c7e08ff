package code

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"muster/internal/prompt"
	"muster/internal/text"
	"muster/llm"
	"muster/tool"
)

// The limits of one call. They keep a conversation short, and let the model page through a long file.
const (
	maxReadLines    = 2000            // of one call, also if it asks for more
	maxReadBytes    = 45_000          // of one call; less than tool.MaxOutput, so that nothing cuts into numbered lines
	maxCountedBytes = 64 << 20        // the lines of a larger file are not counted to its end
	maxImageBytes   = 5 << 20 / 4 * 3 // 5 MB as base64, which is what servers take
)

// readInput is the input of read_file. Zero means the default for Offset and Limit.
type readInput struct {
	Path   string `json:"path"`
	Offset int    `json:"offset,omitempty" jsonschema:"first line, from 1"`
	Limit  int    `json:"limit,omitempty" jsonschema:"lines, 2000 at most"`
}

// readTool returns the tool read_file.
func (t toolset) readTool() llm.Tool {
	return tool.New("read_file", prompt.Tool("read_file"),
		t.read, tool.ReadOnly())
}

// read finds out from its first bytes what kind of file it is, and shows it. The name does not count:
// programs write anything into files of any name.
func (t toolset) read(ctx context.Context, in readInput) (llm.Result, error) {
	at, err := t.open(ctx, in.Path, false)
	if err != nil {
		return tool.FromError(err)
	}
	defer at.root.Close()
	if fi, err := at.root.Stat(at.rel); err == nil && fi.IsDir() {
		return tool.Text(at.listing()), nil
	}
	fi, err := at.stat()
	if err != nil {
		return tool.FromError(err)
	}
	f, err := at.openRegular(at.rel)
	if err != nil {
		return tool.FromError(at.explain(err))
	}
	defer f.Close()
	// Peek does not consume what it returns, so the same reader goes on with the lines or the image.
	scan := &scanner{ctx: ctx, file: f, left: maxScannedBytes}
	r := bufio.NewReaderSize(scan, 64<<10)
	head, err := r.Peek(sniffedBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return tool.FromError(at.explain(err))
	}
	media := http.DetectContentType(head)
	kind := binaryKind(head, media)
	if slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, media) {
		return at.readImage(r, fi, media)
	}
	// A larger file is read in pieces, as UTF-8.
	form, size := charset{}, fi.Size()
	if size <= maxEditBytes && (kind == "" || strings.HasPrefix(media, "text/") || media == unknownMedia) {
		data, err := io.ReadAll(r)
		if err != nil {
			return tool.FromError(at.explain(err))
		}
		content, as, err := decodeFile(data, t.givenCharset(ctx, at))
		if err == nil {
			form, kind, size = as, "", int64(len(content))
			t.seen.noteText(at, content)
			r = bufio.NewReaderSize(strings.NewReader(content), 64<<10)
		}
	}
	switch {
	case kind != "":
		return llm.ErrorResult("%s is not text but %s, %s. Use bash if you need its content.",
			at.show, kind, formatSize(fi.Size())), nil
	case in.Offset < 0 || in.Limit < 0:
		return llm.ErrorResult("offset and limit count lines from 1: they cannot be negative."), nil
	}
	return at.readLines(scan, r, size, form, in)
}

// unknownMedia is the type of content that the standard library does not know.
const unknownMedia = "application/octet-stream"

// readImage returns an image in a form that the model can see. Providers refuse images above a size.
func (s confinedPath) readImage(r io.Reader, fi os.FileInfo, media string) (llm.Result, error) {
	if s.noImages {
		return llm.ErrorResult("%s is an image (%s, %s), and your model takes no images. "+
			"Use a program with bash if you need its content.", s.show, media, formatSize(fi.Size())), nil
	}
	if fi.Size() >= maxImageBytes {
		return llm.ErrorResult("%s is too large to be shown: %s, %s, and the limit is 3.9 MB. Make it smaller first.",
			s.show, media, formatSize(fi.Size())), nil
	}
	data, err := io.ReadAll(io.LimitReader(r, maxImageBytes)) // the file may have grown since it was measured
	if err != nil {
		return tool.FromError(s.explain(err))
	}
	return llm.Result{Parts: []llm.Part{
		llm.Text{Text: fmt.Sprintf("%s: %s, %s", s.show, media, formatSize(fi.Size()))},
		llm.Image{Media: media, Data: data},
	}}, nil
}

// readLines shows the lines that a call asks for. It reads the file in pieces, so that a file of any size
// is fine, and goes on to its end to count the lines, unless it is very large. scan is what r reads, and form how the
// file is encoded.
func (s confinedPath) readLines(
	scan *scanner, r *bufio.Reader, fileSize int64, form charset, in readInput,
) (shown llm.Result, err error) {
	p := page{first: max(in.Offset, 1), limit: min(cmp.Or(in.Limit, maxReadLines), maxReadLines)}
	n := 0
	isWhole := true
	for {
		line, length, err := nextLine(r, maxShownBytes)
		if errors.Is(err, io.EOF) {
			break
		}
		if scan.ctx.Err() != nil {
			return llm.Result{}, context.Cause(scan.ctx)
		}
		if err != nil {
			return tool.FromError(s.explain(err))
		}
		n++
		p.add(n, line, length)
		// The page is complete, and counting the lines of a very large file would take too long.
		if p.last > 0 && n > p.last && fileSize > maxCountedBytes {
			isWhole = false
			break
		}
	}
	isWhole = isWhole && !scan.isCut
	switch {
	case n == 0:
		return tool.Text(s.show + " is empty."), nil
	case p.last == 0 && scan.isCut:
		return llm.ErrorResult("the first %s of %s have %d lines, and read_file reads no more: use bash for line %d.",
			formatSize(maxScannedBytes), s.show, n, p.first), nil
	case p.last == 0:
		return llm.ErrorResult("%s has %d lines: there is no line %d.", s.show, n, p.first), nil
	case !isWhole:
		p.note("lines %d-%d of a file of %s; go on with offset %d", p.first, p.last, formatSize(fileSize), p.last+1)
	case p.last < n:
		p.note("lines %d-%d of %d; go on with offset %d", p.first, p.last, n, p.last+1)
	}
	if p.invalid > 0 {
		p.note("%d bytes are not UTF-8 and shown as \uFFFD", p.invalid)
	}
	if p.hasCRLF {
		p.note("lines end with CRLF")
	}
	if note := form.note(); note != "" {
		p.note("%s", note)
	}
	return tool.Text(p.text.String()), nil
}

// page collects the lines that one call shows.
type page struct {
	first, limit int
	text         strings.Builder
	last         int // the number of the last line in text, 0 if there is none
	invalid      int // bytes that are not UTF-8
	hasCRLF      bool
}

// add adds line n if it belongs to the page and fits. A line that does not fit ends the page, and so does
// not leave a gap; but the first line is always shown. line is the beginning of a line of length bytes.
func (p *page) add(n int, line []byte, length int) {
	if n < p.first || n >= p.first+p.limit || p.last != 0 && p.last != n-1 {
		return
	}
	if bare, ok := bytes.CutSuffix(line, []byte("\r")); ok {
		p.hasCRLF = true
		line, length = bare, length-1
	}
	text, invalid := decode(line)
	p.invalid += invalid
	if length > len(line) {
		text += fmt.Sprintf(" ... (%d bytes more in this line)", length-len(line))
	}
	if p.last == 0 || p.text.Len()+len(text) <= maxReadBytes {
		fmt.Fprintf(&p.text, "%d\t%s\n", n, text)
		p.last = n
	}
}

// note adds a remark about the lines, in brackets so that it is not taken for a line of the file.
func (p *page) note(format string, args ...any) {
	fmt.Fprintf(&p.text, "["+format+"]\n", args...)
}

const (
	// sniffedBytes is how much of the beginning of a file tells what kind of file it is.
	sniffedBytes = 8000
	// maxShownBytes is how much of one line read_file and edit_file show.
	maxShownBytes = 2000
)

// isBinary reports whether a file that begins with head is not text.
func isBinary(head []byte) bool { return bytes.IndexByte(head, 0) >= 0 }

// binaryKind says what a file that begins with head is if it is not text, and returns "" if it is. media is its type as
// far as the standard library knows it.
func binaryKind(head []byte, media string) string {
	if isBinary(head) {
		const utf16 = "text in UTF-16 or UTF-32 (iconv turns it into UTF-8)"
		for _, k := range []struct{ begin, kind string }{
			{"\x7fELF", "an ELF program or library"}, {"MZ", "a program or library of Windows"},
			{"\xcf\xfa\xed\xfe", "a program or library of macOS"}, {"\xca\xfe\xba\xbe", "a class file"},
			{"!<arch>\n", "an archive of object files"}, {"SQLite format 3\x00", "an SQLite database"},
			{"BZh", "data packed by bzip2"}, {"\xfd7zXZ\x00", "data packed by xz"},
			{"\x28\xb5\x2f\xfd", "data packed by zstd"}, {"\xff\xfe", utf16}, {"\xfe\xff", utf16},
		} {
			if bytes.HasPrefix(head, []byte(k.begin)) {
				return k.kind
			}
		}
		if len(head) > 262 && string(head[257:262]) == "ustar" {
			return "a tar archive"
		}
	}
	switch {
	case media == "application/pdf":
		return "a PDF document"
	case !isBinary(head):
		return ""
	case media == unknownMedia || strings.HasPrefix(media, "text/"):
		return "binary data"
	}
	return media
}

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
			line = text.WholeRunes(line)
		}
		return line, length, nil
	}
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
		writeNumbered(&b, i+1, lines[i])
	}
	return b.String()
}

// writeNumbered writes line n as read_file shows it, with or without its line end.
func writeNumbered(b *strings.Builder, n int, line string) {
	line = strings.ToValidUTF8(strings.TrimRight(line, "\r\n"), "\uFFFD")
	fmt.Fprintf(b, "%d\t%s\n", n, text.CutBytes(line, maxShownBytes))
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
