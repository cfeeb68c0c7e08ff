package journal

import (
	"context"
	"iter"
	"strconv"
	"sync"

	"muster"
)

// Scan is ReadTask for a reader of a long journal that keeps no entry: the Fields of an entry are valid only until the
// next one. It decodes ahead of its reader on the other processors, which takes a third off the time of `muster log`.
func (j *Journal) Scan(ctx context.Context, task muster.TaskID, after muster.Pos) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var reading sync.WaitGroup
		defer reading.Wait() // nothing reads the log after the sequence has ended
		defer cancel()
		free, read := make(chan *batch, maxBatches), make(chan *batch, maxBatches)
		for range maxBatches {
			free <- &batch{decoded: make(chan struct{}, 1)}
		}
		reading.Go(func() {
			defer close(read)
			j.readBatches(ctx, task, after, free, read)
		})
		for b := range read {
			<-b.decoded
			for i, e := range b.entries[:b.size] {
				if !yield(e, b.errs[i]) || isFatal(b.errs[i]) {
					return
				}
			}
			free <- b
		}
	}
}

// A batch is large enough that handing it over costs little beside decoding it, and few are kept in memory.
const (
	maxBatches = 4
	batchSize  = 128
)

// batch is some entries of the journal in their order. Its memory is used for one part of the journal after another.
type batch struct {
	decoder decoder
	lines   [batchSize][]byte
	entries [batchSize]Entry
	errs    [batchSize]error
	size    int
	decoded chan struct{} // receives when the entries are complete
}

// readBatches fills batches from free with the journal, starts to decode each, and sends it to read. It never waits to
// send, because read has room for all batches.
func (j *Journal) readBatches(ctx context.Context, task muster.TaskID, after muster.Pos, free, read chan *batch) {
	digits, b := strconv.AppendInt(nil, int64(task), 10), <-free
	send := func() {
		go b.decode(task)
		read <- b
	}
	for r, err := range j.log.Read(ctx, muster.StreamEvents, after) {
		if err == nil && task != 0 && !mayConcern(r.Data, digits) {
			continue
		}
		b.lines[b.size], b.entries[b.size].Pos, b.errs[b.size] = r.Data, r.Pos, err
		if b.size++; b.size < batchSize {
			continue
		}
		send()
		select {
		case b = <-free:
			b.size = 0
		case <-ctx.Done():
			return
		}
	}
	send()
}

// decode decodes the lines of b. It drops the entries of other tasks than task; 0 means that it drops none.
func (b *batch) decode(task muster.TaskID) {
	kept := 0
	for i := range b.size {
		e, err := Entry{Pos: b.entries[i].Pos}, b.errs[i]
		if err == nil {
			e.Event, err = b.decoder.decode(b.lines[i], b.entries[kept].Fields)
			if err == nil && task != 0 && e.Task != task {
				continue
			}
		}
		b.entries[kept], b.errs[kept] = e, err
		kept++
	}
	b.size = kept
	b.decoded <- struct{}{}
}
