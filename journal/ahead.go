package journal

import (
	"errors"
	"iter"
	"sync"

	"muster"
)

// many is how many entries a reader gets one by one. What is longer is decoded ahead of it, in pieces of that many, side
// by side: half of the time of a long log is to decode it.
const many = 256

// read is an entry, or what is wrong with it.
type read struct {
	Entry
	err error
}

// of reports whether it is to be told to who asks for a task; 0: for everything.
func (r read) of(task muster.TaskID) bool { return r.err != nil || task == 0 || r.Task == task }

// ends reports whether nothing can follow.
func (r read) ends() bool { return r.err != nil && !errors.Is(r.err, muster.ErrCorrupt) }

// read decodes a record that was read, or not.
func (d *decoder) read(r muster.Record, err error) read {
	e := read{Entry{Pos: r.Pos}, err}
	if err == nil {
		e.Event, e.err = d.decode(r.Data)
	}
	return e
}

// piece is some records in a row.
type piece struct {
	lines   [][]byte
	entries []read // decoded when done is closed; until then what is known without that
	done    chan struct{}
}

func newPiece() *piece {
	return &piece{lines: make([][]byte, 0, many), entries: make([]read, 0, many), done: make(chan struct{})}
}

func (p *piece) add(r muster.Record, err error) {
	p.lines, p.entries = append(p.lines, r.Data), append(p.entries, read{Entry{Pos: r.Pos}, err})
}

func (p *piece) decode() {
	defer close(p.done)
	d := new(decoder)
	for i, e := range p.entries {
		p.entries[i] = d.read(muster.Record{Pos: e.Pos, Data: p.lines[i]}, e.err)
	}
}

// ahead decodes the wanted ones of some records a few pieces ahead of who takes them. Its goroutines end before the
// sequence that it returns does.
func ahead(records iter.Seq2[muster.Record, error], wanted func(line []byte) bool) iter.Seq[read] {
	return func(yield func(read) bool) {
		pieces, left := make(chan *piece, 2), make(chan struct{})
		var all sync.WaitGroup
		defer all.Wait()
		defer close(left)
		all.Go(func() {
			defer close(pieces)
			next := newPiece()
			send := func() bool {
				p := next
				next = newPiece()
				select {
				case pieces <- p:
					all.Go(p.decode)
					return true
				case <-left:
					return false
				}
			}
			for r, err := range records {
				if err == nil && !wanted(r.Data) {
					continue
				}
				if next.add(r, err); len(next.lines) == many && !send() {
					return
				}
			}
			send()
		})
		for p := range pieces {
			<-p.done
			for _, e := range p.entries {
				if !yield(e) {
					return
				}
			}
		}
	}
}
