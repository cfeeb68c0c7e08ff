package journal

import (
	"errors"
	"iter"
	"sync"

	"muster"
)

// batchSize is how many entries a reader gets one by one. A longer log is decoded ahead of its reader, in batches of
// that many, several at a time: half of the time of a long log is spent in decoding.
const batchSize = 256

// result is an entry, or what is wrong with it.
type result struct {
	Entry
	err error
}

// matches reports whether a reader of the task gets the result; 0 is a reader of everything. Errors are for everybody.
func (r result) matches(task muster.TaskID) bool { return r.err != nil || task == 0 || r.Task == task }

// isLast reports whether nothing can follow.
func (r result) isLast() bool { return r.err != nil && !errors.Is(r.err, muster.ErrCorrupt) }

// decodeRecord decodes a record, unless reading it has failed with err.
func (d *decoder) decodeRecord(r muster.Record, err error) result {
	e := result{Entry{Pos: r.Pos}, err}
	if err == nil {
		e.Event, e.err = d.decode(r.Data)
	}
	return e
}

// batch is some records in a row.
type batch struct {
	lines   [][]byte
	results []result // decoded when done is closed; before that they have only positions and errors
	done    chan struct{}
}

func newBatch() *batch {
	return &batch{lines: make([][]byte, 0, batchSize), results: make([]result, 0, batchSize), done: make(chan struct{})}
}

func (b *batch) add(r muster.Record, err error) {
	b.lines, b.results = append(b.lines, r.Data), append(b.results, result{Entry{Pos: r.Pos}, err})
}

func (b *batch) decode() {
	defer close(b.done)
	d := new(decoder)
	for i, e := range b.results {
		b.results[i] = d.decodeRecord(muster.Record{Pos: e.Pos, Data: b.lines[i]}, e.err)
	}
}

// prefetch decodes the wanted ones of some records, a few batches ahead of the reader. All its goroutines have ended
// when the sequence that it returns ends.
func prefetch(records iter.Seq2[muster.Record, error], wanted func(line []byte) bool) iter.Seq[result] {
	return func(yield func(result) bool) {
		batches, left := make(chan *batch, 2), make(chan struct{})
		var all sync.WaitGroup
		defer all.Wait()
		defer close(left)
		all.Go(func() {
			defer close(batches)
			next := newBatch()
			send := func() bool {
				b := next
				next = newBatch()
				select {
				case batches <- b:
					all.Go(b.decode)
					return true
				case <-left:
					return false
				}
			}
			for r, err := range records {
				if err == nil && !wanted(r.Data) {
					continue
				}
				if next.add(r, err); len(next.lines) == batchSize && !send() {
					return
				}
			}
			send()
		})
		for b := range batches {
			<-b.done
			for _, e := range b.results {
				if !yield(e) {
					return
				}
			}
		}
	}
}
