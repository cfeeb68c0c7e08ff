package torture

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
)

// A ledger is what one worker was promised: a file that it alone appends to, a line for each promise, in one write
// after the promise was made. A killed process has noted no more than it was promised, and perhaps one less.

// note appends a line to the worker's ledger.
func (j Job) note(words ...string) {
	f, err := os.OpenFile(filepath.Join(filepath.Dir(j.Dir), "ledgers", j.Name), os.O_APPEND|os.O_CREATE|os.O_WRONLY,
		0o600)
	if err != nil {
		panic(err) // a promise that cannot be noted would make the whole session worthless
	}
	defer f.Close()
	if _, err := f.WriteString(strings.Join(words, " ") + "\n"); err != nil {
		panic(err)
	}
}

// entry is one line of a ledger.
type entry struct {
	who   string
	words []string
}

// ledgers reads all ledgers as they grow.
type ledgers struct {
	dir   string
	files map[string]*growing
	all   []entry
}

type growing struct {
	f    *os.File
	part []byte // of a line that has no end yet
}

func newLedgers(dir string) *ledgers {
	return &ledgers{dir: filepath.Join(dir, "ledgers"), files: map[string]*growing{}}
}

// read takes in what is new, and calls f with it.
func (l *ledgers) read(f func(entry)) error {
	names, err := os.ReadDir(l.dir)
	if err != nil {
		return err
	}
	for _, n := range names {
		g := l.files[n.Name()]
		if g == nil {
			file, err := os.Open(filepath.Join(l.dir, n.Name()))
			if err != nil {
				return err
			}
			g = &growing{f: file}
			l.files[n.Name()] = g
		}
		var b bytes.Buffer
		if _, err := b.ReadFrom(g.f); err != nil {
			return err
		}
		g.part = append(g.part, b.Bytes()...)
		for {
			line, rest, ok := bytes.Cut(g.part, []byte("\n"))
			if !ok {
				break
			}
			e := entry{n.Name(), strings.Fields(string(line))}
			g.part = rest
			if len(e.words) > 0 {
				l.all = append(l.all, e)
				f(e)
			}
		}
	}
	return nil
}

func (l *ledgers) close() {
	for _, g := range l.files {
		g.f.Close()
	}
}
