package code

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"muster/internal/durable"
	"muster/internal/text"
	"muster/tool"
)

// The limits of an output. A command may print without end, and neither memory nor the disk may fill up
// with it.
const (
	maxPrinted     = 100 << 20            // bytes that one command may print
	maxFileBytes   = maxPrinted           // of an output go to its file; of the rest only the last lines are kept
	maxFilesBytes  = 1 << 30              // of all outputs in one directory; the oldest files make room for a new one
	maxOutputChars = tool.MaxOutput - 500 // are shown; the rest of the limit is for what is said about them
	maxEndChars    = maxOutputChars / 2   // are shown of the beginning and of the end of a longer output
	maxEndBytes    = maxEndChars * utf8.UTFMax
)

// ErrTooMuchOutput is the error of Output.Write, and so of a command that has printed too much. It was killed.
var ErrTooMuchOutput = fmt.Errorf("it printed more than %d MB, which is the most a command may print: "+
	"send what is long to a file, or print only what is needed of it", maxPrinted>>20)

// Output collects what a command prints, without control characters, in bounded memory. It keeps everything
// up to the number of characters that a result may have. Of more it keeps the beginning and the end, and
// the whole goes to a file, which is made only then. It is safe for concurrent use.
type Output struct {
	dir          string // the directory of the file, "" for the system's temporary directory
	root         string // of the repository that dir lies in, or ""
	name         string // the beginning of the file's name
	maxFileBytes int64

	mu      sync.Mutex
	cleaner cleaner
	printed int64    // all bytes so far
	chars   int      // all characters so far
	head    []byte   // the first maxEndBytes bytes
	tail    []byte   // what follows head; of a long output only its end, but at least maxEndBytes
	file    *os.File // nil before the output is long, and after Done
	path    string
	filed   int64 // bytes in the file
	fileErr error // why there is no file, or not the whole output in it
}

// NewOutput returns an empty output. If it needs a file, it makes a new one in dir, with a name that begins
// with name. An empty dir means the system's temporary directory.
func NewOutput(dir, name string) *Output {
	return &Output{dir: dir, name: name, maxFileBytes: maxFileBytes}
}

// Below sets the root of the repository in which the directory lies: no link below it is followed. It returns o.
func (o *Output) Below(root string) *Output {
	o.root = root
	return o
}

// Write fails only with ErrTooMuchOutput, which ends the command. It does not fail because the output cannot be kept.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	fits := p[:min(int64(len(p)), maxPrinted-o.printed)]
	o.printed += int64(len(fits))
	o.add(o.cleaner.clean(nil, fits))
	if len(fits) < len(p) {
		return len(fits), ErrTooMuchOutput
	}
	return len(p), nil
}

// Done ends the output: an incomplete character at its end becomes U+FFFD, and the file is closed. Nothing
// may be written afterwards.
func (o *Output) Done() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.add(o.cleaner.finish(nil))
	if o.file != nil {
		o.fileErr = cmp.Or(o.fileErr, o.file.Close())
		o.file = nil
	}
}

// add appends cleaned text. The caller holds mu.
func (o *Output) add(text []byte) {
	before := o.chars
	o.chars += utf8.RuneCount(text)
	if o.chars > maxOutputChars {
		if before <= maxOutputChars { // until now head and tail have held the whole output
			o.openFile()
			o.writeFile(o.head)
			o.writeFile(o.tail)
		}
		o.writeFile(text)
	}
	// Either end has bytes for as many characters of any length as are shown of it. A character that is cut
	// in two here is whole again in Text, or lies in the middle that is not shown.
	n := min(len(text), maxEndBytes-len(o.head))
	o.head = append(o.head, text[:n]...)
	o.tail = append(o.tail, text[n:]...)
	if len(o.tail) > 2*maxEndBytes { // not at every write: each time costs a copy
		end := bytes.ToValidUTF8(o.tail[len(o.tail)-maxEndBytes:], nil) // drops half a character at its beginning
		o.tail = append(o.tail[:0], end...)
	}
}

// openFile makes the file that takes the whole output. A failure is remembered for Text, which tells the
// model why there is no file.
func (o *Output) openFile() {
	if o.dir == "" { // what lies in the system's directory is not ours alone
		o.file, o.fileErr = os.CreateTemp("", o.name+"-*.txt")
	} else if o.fileErr = durable.MakeDirBelow(o.root, o.dir); o.fileErr == nil {
		makeRoom(o.dir, maxFilesBytes-o.maxFileBytes)
		o.file, o.fileErr = durable.CreateBelow(o.root, filepath.Join(o.dir, o.name+"-"+rand.Text()+".txt"))
	}
	if o.fileErr == nil {
		o.path = o.file.Name()
	}
}

// makeRoom removes the oldest files of dir until the others have at most so many bytes. An output is no state: a
// command can be run again.
func makeRoom(dir string, most int64) {
	entries, _ := os.ReadDir(dir) // what cannot be read cannot be removed either
	var files []fs.FileInfo
	for _, e := range entries {
		if fi, err := e.Info(); err == nil && fi.Mode().IsRegular() {
			files = append(files, fi)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, fi := range files {
		if most -= fi.Size(); most < 0 {
			_ = os.Remove(filepath.Join(dir, fi.Name()))
		}
	}
}

// writeFile appends text to the file, as far as there is one and it has room. After an error nothing more
// is written: a file with a gap would be taken for the whole output.
func (o *Output) writeFile(text []byte) {
	if o.file == nil || o.fileErr != nil {
		return
	}
	n, err := o.file.Write(text[:min(int64(len(text)), o.maxFileBytes-o.filed)])
	o.filed += int64(n)
	o.fileErr = err
}

// Path returns the file with the whole output, or "" if the output fits a result.
func (o *Output) Path() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.path
}

// Text returns the output: all of it, or its beginning and its end, with a line between them that says how
// much is missing and where it is. It is never longer than tool.MaxOutput characters.
func (o *Output) Text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := string(o.head) + string(o.tail)
	if o.chars <= maxOutputChars {
		return text
	}
	return tool.CutMiddle(text, maxEndChars, o.chars, o.whereabouts())
}

// whereabouts says where the whole output is.
func (o *Output) whereabouts() string {
	switch {
	case o.path == "":
		return fmt.Sprintf("the whole could not be kept: %v", o.fileErr)
	case o.fileErr != nil:
		return fmt.Sprintf("only the first %s are in %s: %v", formatSize(o.filed), o.path, o.fileErr)
	case o.filed >= o.maxFileBytes:
		return fmt.Sprintf("the first %s are in %s", formatSize(o.filed), o.path)
	}
	return "the whole is in " + o.path
}

// Last returns the last n lines. Of a long line it keeps only the end.
func (o *Output) Last(n int) string {
	const maxLineBytes, maxBytes = 500, 16 << 10
	o.mu.Lock()
	defer o.mu.Unlock()
	// Only as much is looked at as can be shown: check_background may ask again and again.
	text := o.tail
	if len(text) < 2*maxBytes {
		text = append(bytes.Clone(o.head), text...) // some of the last lines may be in head
	}
	text = bytes.TrimRight(text[max(0, len(text)-2*maxBytes):], "\n")
	lines := strings.Split(strings.ToValidUTF8(string(text), ""), "\n")
	lines = lines[max(0, len(lines)-n):]
	for i, line := range lines {
		lines[i] = lastBytes(line, maxLineBytes)
	}
	return lastBytes(strings.Join(lines, "\n"), maxBytes)
}

// lastBytes returns the last n bytes of a longer text, without half a character at their beginning.
func lastBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return "..." + text.LastBytes(s, n)
}

// cleaner turns what programs print into text without side effects, as it comes, in pieces of any size. It
// removes terminal sequences and control characters, ends a line at a carriage return, and writes one
// U+FFFD for each run of bytes that are not UTF-8. Where a piece ends makes no difference.
type cleaner struct {
	pending    []byte // the beginning of a character or a sequence whose rest has not come yet
	isInvalid  bool   // the last thing written was U+FFFD for bytes that are not UTF-8
	isCarriage bool   // the last byte was a carriage return
}

const (
	escape = 0x1b
	// maxSequence is the longest sequence. Of one that does not end before it, the rest is text: otherwise
	// one broken sequence would hide everything that follows.
	maxSequence = 4096
)

// sequences returns the expression for a whole terminal sequence, and the one for its longest beginning. A
// sequence is ESC [ with parameters and a letter, ESC ] and its like with anything up to BEL or ESC \
// (titles, links), or ESC with a few characters. No sequence goes on over the end of a line. They are
// compiled at the first use, because every command of the program would pay for what is compiled at its
// start.
var sequences = sync.OnceValues(func() (whole, begun *regexp.Regexp) {
	const csi, str, charset = `\[[ -?]*`, `[\]PX^_](?:[^\x07\x1b\n]|\x1b[^\\\n])*`, `[ -/]+`
	return regexp.MustCompile(`^\x1b(?:` + csi + `[@-~]|` + str + `(?:\x07|\x1b\\)|` + charset +
			`[0-~]|[0-OQ-WYZ\\` + "`-~])"),
		regexp.MustCompile(`^\x1b(?:` + csi + `|` + str + `\x1b?|` + charset + `)?`)
})

// sequenceLen returns how many bytes at the beginning of p, which begins with ESC, belong to a sequence. ok
// is false if what follows p may belong to it too.
func sequenceLen(p []byte) (n int, ok bool) {
	whole, begun := sequences()
	limited := p[:min(len(p), maxSequence+1)]
	if n = len(whole.Find(limited)); n > 0 {
		return n, true
	}
	n = len(begun.Find(limited))
	return n, n < len(p)
}

// clean appends the visible part of p to dst.
func (c *cleaner) clean(dst, p []byte) []byte {
	if len(c.pending) > 0 {
		p = append(c.pending, p...)
		c.pending = nil
	}
	for len(p) > 0 {
		r, n := utf8.DecodeRune(p)
		isWhole := true
		switch {
		case r == escape:
			n, isWhole = sequenceLen(p)
			c.isCarriage = false
		case !utf8.FullRune(p):
			isWhole = false
		case r == 0 || r == utf8.RuneError && n == 1:
			dst = c.invalid(dst)
		case r == '\r':
			dst = append(dst, '\n') // a newline that follows is dropped: one line end, not two
			c.isInvalid, c.isCarriage = false, true
		case unicode.IsControl(r) && r != '\t' && (r != '\n' || c.isCarriage):
			c.isCarriage = false
		default:
			n = max(n, plainLen(p))
			dst = append(dst, p[:n]...)
			c.isInvalid, c.isCarriage = false, false
		}
		if !isWhole { // the rest may come with the next write
			c.pending = bytes.Clone(p)
			return dst
		}
		p = p[n:]
	}
	return dst
}

// finish appends what is left of a character that never became complete.
func (c *cleaner) finish(dst []byte) []byte {
	if len(c.pending) > 0 && c.pending[0] != escape {
		dst = c.invalid(dst)
	}
	c.pending = nil
	return dst
}

// plainLen returns how many bytes at the beginning of p are text in any case. That is nearly all of most
// outputs, so they are copied at once.
func plainLen(p []byte) int {
	for i, b := range p {
		if (b < ' ' || b > '~') && b != '\n' && b != '\t' {
			return i
		}
	}
	return len(p)
}

// invalid appends U+FFFD, unless it stands at the end already for the bytes before. Binary output would
// otherwise become a long row of them.
func (c *cleaner) invalid(dst []byte) []byte {
	if !c.isInvalid {
		dst = append(dst, "\uFFFD"...)
	}
	c.isInvalid, c.isCarriage = true, false
	return dst
}
