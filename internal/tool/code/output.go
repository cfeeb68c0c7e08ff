package code

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"muster/tool"
)

// fileMost is how much of an output goes to a file, in bytes. What comes after it is only seen in the last lines.
const fileMost = 100 << 20

// Output collects what a command prints, made harmless, in bounded memory. Up to tool.MaxOutput characters it keeps
// everything; of more it keeps the beginning and the end, and the whole goes to a file, which is made only then.
// It is safe for concurrent use.
type Output struct {
	dir  string // where the file is made
	name string // how its name begins
	most int64  // bytes of the file

	mu     sync.Mutex
	clean  cleaner
	size   int // characters in all
	head   []byte
	tail   []byte // what follows head; of a long output only its end
	file   *os.File
	path   string
	filed  int64
	failed error // why there is no file, or no whole one
}

const (
	outputMost = tool.MaxOutput - 500 // characters; the rest is for what is said about them
	headMost   = outputMost / 2       // characters
	tailMost   = outputMost / 2       // characters
	tailBytes  = tailMost * utf8.UTFMax
)

// NewOutput returns an empty output. A file that it needs is made in dir (the system's temporary directory if it is
// empty), with a name that begins with name and is nobody else's.
func NewOutput(dir, name string) *Output { return &Output{dir: dir, name: name, most: fileMost} }

// Write never fails: a command does not end because its output cannot be kept.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.add(o.clean.clean(nil, p))
	return len(p), nil
}

// Done ends the output: nothing is written any more.
func (o *Output) Done() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.add(o.clean.finish(nil))
	if o.file != nil {
		if err := o.file.Close(); err != nil && o.failed == nil {
			o.failed = err
		}
		o.file = nil
	}
}

func (o *Output) add(text []byte) {
	if len(text) == 0 {
		return
	}
	before := o.size
	o.size += utf8.RuneCount(text)
	if before <= outputMost && o.size > outputMost {
		o.open()
		o.keep(o.head)
		o.keep(o.tail)
	}
	if o.size > outputMost {
		o.keep(text)
	}
	if room := headMost - before; room > 0 {
		n := prefix(text, room)
		o.head = append(o.head, text[:n]...)
		text = text[n:]
	}
	o.tail = append(o.tail, text...)
	if len(o.tail) > 2*tailBytes { // not at every write
		rest := o.tail[len(o.tail)-tailBytes:]
		for !utf8.RuneStart(rest[0]) {
			rest = rest[1:]
		}
		o.tail = append(o.tail[:0], rest...)
	}
}

// open makes the file that takes the whole.
func (o *Output) open() {
	if o.dir != "" {
		if o.failed = os.MkdirAll(o.dir, 0o700); o.failed != nil {
			return
		}
	}
	if o.file, o.failed = os.CreateTemp(o.dir, o.name+"-*.txt"); o.failed == nil {
		o.path = o.file.Name()
	}
}

func (o *Output) keep(text []byte) {
	if o.file == nil || o.failed != nil {
		return
	}
	n, err := o.file.Write(text[:min(int64(len(text)), o.most-o.filed)])
	o.filed += int64(n)
	o.failed = err
}

// Path is the file with the whole, or "" if the output fits a result.
func (o *Output) Path() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.path
}

// Text is the output: all of it, or its beginning and its end with a line between them that says what is missing and
// where it is. Never more than tool.MaxOutput characters.
func (o *Output) Text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.size <= outputMost {
		return string(o.head) + string(o.tail)
	}
	head, tail := o.head, o.tail[suffix(o.tail, tailMost):]
	if i := bytes.LastIndexByte(head, '\n'); i > len(head)*9/10 {
		head = head[:i]
	}
	if i := bytes.IndexByte(tail, '\n'); i >= 0 && i < len(tail)/10 {
		tail = tail[i+1:]
	}
	cut := o.size - utf8.RuneCount(head) - utf8.RuneCount(tail)
	return fmt.Sprintf("%s\n... %d of %d characters cut here; %s ...\n%s", head, cut, o.size, o.where(), tail)
}

func (o *Output) where() string {
	switch {
	case o.path == "":
		return fmt.Sprintf("the whole could not be kept: %v", o.failed)
	case o.failed != nil:
		return fmt.Sprintf("only the first %s are in %s: %v", size(o.filed), o.path, o.failed)
	case o.filed >= o.most:
		return fmt.Sprintf("the first %s are in %s", size(o.filed), o.path)
	}
	return "the whole is in " + o.path
}

// Last returns the last n lines, of each no more than its end.
func (o *Output) Last(n int) string {
	const lineMost, most = 500, 16 << 10
	o.mu.Lock()
	defer o.mu.Unlock()
	text := o.tail
	if len(text) < most {
		text = append(bytes.Clone(o.head), text...) // the end may be in it
	}
	text = bytes.TrimRight(text[max(0, len(text)-2*most):], "\n")
	lines := strings.Split(strings.ToValidUTF8(string(text), ""), "\n")
	lines = lines[max(0, len(lines)-n):]
	for i, line := range lines {
		if len(line) > lineMost {
			lines[i] = "..." + line[suffix([]byte(line), lineMost):]
		}
	}
	out := strings.Join(lines, "\n")
	if len(out) > most {
		out = "..." + out[suffix([]byte(out), most/utf8.UTFMax):]
	}
	return out
}

// prefix is how many bytes the first n characters of text are.
func prefix(text []byte, n int) (bytes int) {
	for ; n > 0 && bytes < len(text); n-- {
		_, size := utf8.DecodeRune(text[bytes:])
		bytes += size
	}
	return bytes
}

// suffix is where the last n characters of text begin.
func suffix(text []byte, n int) (at int) {
	for at = len(text); n > 0 && at > 0; n-- {
		_, size := utf8.DecodeLastRune(text[:at])
		at -= size
	}
	return at
}
