// Package live carries what the members of one process say, while it streams in, to the faces of other processes.
//
// Each process that runs members writes a file of lines, and whoever shows the team follows all of them. Nothing here
// is durable, and nothing depends on it: a face that has missed some of it reads the whole reply in the transcript, as
// it would without this package. So a file is never synced, is begun anew when it is large, and may be removed at any
// time.
//
// The files are looked at ten times a second, and only while a face follows them: that costs less than a thousandth of
// a core, and works on every file system.
package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"muster"
	"muster/internal/durable"
)

// Kind says what a Piece is.
type Kind string

// The kinds of pieces.
const (
	Text     Kind = "text"     // more of the member's words
	Think    Kind = "think"    // more of its thinking, where the model shows it
	Again    Kind = "again"    // its words and thinking so far are void: the model is asked again
	End      Kind = "end"      // its reply is complete, and in the transcript
	Progress Kind = "progress" // a line of what a running tool does
	Test     Kind = "test"     // the test that a check runs now, or has run last
)

// Piece is a piece of what a member says or does.
type Piece struct {
	Member muster.Name `json:"member"`
	Kind   Kind        `json:"kind"`
	Part   int         `json:"part,omitempty"` // of the reply, which only rises
	Text   string      `json:"text,omitempty"`
	// Task is the one whose check runs a test; 0: the base.
	Task muster.TaskID `json:"task,omitempty"`
}

const (
	// maxFile is the size at which a file is begun anew. A face that is so far behind shows whole replies only.
	maxFile = 1 << 20
	// maxAge is how old the file of a dead process may become before another one removes it.
	maxAge = time.Hour
	// interval is the time between two looks for more while somebody speaks, and maxInterval while nobody does.
	interval    = 100 * time.Millisecond
	maxInterval = 400 * time.Millisecond
	ending      = ".jsonl"
)

// Writer writes the pieces of one process. It is for one goroutine.
type Writer struct {
	dir  string
	file *os.File // nil before the first piece
	size int64
}

// NewWriter returns a writer to a file of its own below dir. The file is made with the first piece.
func NewWriter(dir string) *Writer { return &Writer{dir: dir} }

// Write adds pieces. Each line is whole for a reader: what does not end with a newline yet, it does not take.
func (w *Writer) Write(pieces []Piece) error {
	if w.file == nil {
		if err := w.open(); err != nil {
			return err
		}
	}
	var lines []byte
	for _, p := range pieces {
		line, err := json.Marshal(p)
		if err != nil {
			return err
		}
		lines = append(append(lines, line...), '\n')
	}
	if w.size += int64(len(lines)); w.size > maxFile {
		// Readers see that the file is shorter than what they have read, and begin at its beginning.
		if err := w.file.Truncate(0); err != nil {
			return err
		}
		w.size = int64(len(lines))
	}
	_, err := w.file.Write(lines)
	return err
}

// open makes the file, and removes those that dead processes have left long ago.
func (w *Writer) open() (err error) {
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return err
	}
	for _, path := range files(w.dir) {
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > maxAge {
			_ = os.Remove(path) // it can stay
		}
	}
	if w.file, err = os.CreateTemp(w.dir, "*"+ending); err != nil {
		return err
	}
	// Each write is at the end, also after the file was begun anew.
	name := w.file.Name()
	_ = w.file.Close()
	w.file, err = os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0o600)
	return err
}

// Path returns the path of the file, "" before the first piece.
func (w *Writer) Path() string {
	if w.file == nil {
		return ""
	}
	return w.file.Name()
}

// Close removes the file.
func (w *Writer) Close() error {
	if w.file == nil {
		return nil
	}
	return errors.Join(w.file.Close(), os.Remove(w.file.Name()))
}

func files(dir string) (paths []string) {
	entries, _ := os.ReadDir(dir) // there may be none
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ending) && e.Type().IsRegular() {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

// Follow yields what the processes below dir write from now on, until ctx ends. The order of the pieces of one member
// is that in which it said them. The file for which isOwn is true is left out.
func Follow(ctx context.Context, dir string, isOwn func(path string) bool) iter.Seq[Piece] {
	read := map[string]int64{} // by path, how much of it was taken
	for _, path := range files(dir) {
		if info, err := os.Stat(path); err == nil {
			read[path] = info.Size()
		}
	}
	return func(yield func(Piece) bool) {
		// While nobody says anything the looks become rarer, so that a face that only waits costs next to nothing.
		pause := interval
		wait := time.NewTimer(pause)
		defer wait.Stop()
		for {
			pause = min(pause*2, maxInterval)
			for _, path := range files(dir) {
				text, end := readFrom(path, read[path])
				read[path] = end
				if isOwn(path) {
					continue
				}
				if len(text) > 0 {
					pause = interval
				}
				for line := range bytes.Lines(text) {
					var p Piece
					if json.Unmarshal(line, &p) == nil && !yield(p) {
						return
					}
				}
			}
			wait.Reset(pause)
			select {
			case <-ctx.Done():
				return
			case <-wait.C:
			}
		}
	}
}

// readFrom returns the whole lines of a file after a position, and the position after them. A file that is shorter was
// begun anew.
func readFrom(path string, from int64) (lines []byte, end int64) {
	f, err := durable.OpenBelow(filepath.Dir(path), path, os.O_RDONLY, 0)
	if err != nil {
		return nil, from
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() == from {
		return nil, from
	}
	if info.Size() < from {
		from = 0
	}
	if info.Size()-from > durable.MaxFile { // nobody says so much; a file of holes may be as long as any
		return nil, info.Size()
	}
	text := make([]byte, info.Size()-from)
	n, err := f.ReadAt(text, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, from
	}
	text = text[:n]
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	return text, from + int64(len(text))
}
