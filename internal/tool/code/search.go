package code

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"muster/internal/text"
	"muster/llm"
	"muster/tool"
)

const (
	maxGrepWorkers = 8
	batch          = 16      // files that a worker takes at once; those of a directory stay together
	smallFile      = 4 << 20 // a worker keeps room for a file of this size
)

// search is one call of grep: where it searches, for what, and what of it is shown.
type search struct {
	at            confinedPath
	filter        nameFilter
	query         *query
	mode          string
	before, after int          // lines around a match
	offset, limit int          // of the matches, or of the files
	files         int          // that are searched
	searched      atomic.Int64 // bytes
}

// fileMatches are the matches of one file: those to show, and how many there are. There may be more matches
// than hits, because only as many are collected as can be shown.
type fileMatches struct {
	name  string
	hits  []hit
	n     int
	isCut bool // only a part of the file was searched
}

// run searches the files for as long as a command may run, and shows the matches in the order of names.
func (s *search) run(ctx context.Context, limit time.Duration) (llm.Result, error) {
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	list, rest, err := s.at.files(ctx)
	all := s.list(timed, list)
	all = append(all, s.list(timed, rest())...)
	switch {
	case ctx.Err() != nil:
		return llm.Result{}, context.Cause(ctx)
	case err != nil:
		return tool.FromError(err)
	}
	slices.SortFunc(all, func(a, b fileMatches) int { return strings.Compare(a.name, b.name) })
	result := s.show(all)
	if timed.Err() != nil {
		result = strings.TrimSuffix(result, "\n") + fmt.Sprintf("\n[stopped after %v, before all was searched: "+
			"narrow the search, or repeat less in the pattern]\n", limit)
	}
	return tool.Text(result), nil
}

// list searches the files of a list, several at once, and returns those with matches, in the order of the list.
func (s *search) list(ctx context.Context, names []string) []fileMatches {
	names = slices.DeleteFunc(names, func(name string) bool { return !s.filter.accepts(name, s.at.shown(name)) })
	s.files += len(names)
	all := make([]fileMatches, len(names))
	var next, collected atomic.Int64
	var workers sync.WaitGroup
	for range min(maxGrepWorkers, runtime.GOMAXPROCS(0), (len(names)+batch-1)/batch) {
		workers.Go(func() {
			w := worker{search: s, automaton: newAutomaton(ctx, s.query), opener: opener{at: s.at}}
			defer w.opener.close()
			for ctx.Err() == nil {
				// This is asked before files are taken, so that only files before these can have been counted: the
				// first matches in order are never lost to a file that another worker has finished earlier.
				w.most = max(0, s.offset+s.limit-int(collected.Load()))
				begin := int(next.Add(batch)) - batch
				if begin >= len(names) {
					return
				}
				for i := begin; i < min(begin+batch, len(names)) && ctx.Err() == nil; i++ {
					all[i] = w.file(ctx, names[i])
					collected.Add(int64(len(all[i].hits)))
				}
			}
		})
	}
	// Each worker writes only its own elements of all, which nobody reads before Wait has returned.
	workers.Wait()
	return slices.DeleteFunc(all, func(m fileMatches) bool { return m.n == 0 && !m.isCut })
}

// worker searches files one after the other.
type worker struct {
	*search
	automaton *automaton
	opener    opener
	most      int    // hits to collect of a file
	buffer    []byte // for the content of a file
}

// file searches one file. A file that is not text, or that cannot be read, has no match. Links are skipped: what
// they point to is searched under its own name, if it is in the directory at all.
func (w *worker) file(ctx context.Context, name string) (m fileMatches) {
	m.name = name
	f, size, err := w.opener.open(name)
	if err != nil {
		return m
	}
	defer f.Close()
	// What is left of the total is shared by files that are searched at the same time.
	wanted := min(size, maxGrepBytes, max(0, maxGrepTotal-w.searched.Load()))
	data, release := w.read(ctx, f, int(wanted))
	defer release()
	if len(data) == 0 && wanted > 0 {
		return m
	}
	w.searched.Add(int64(len(data)))
	m.isCut = wanted < size
	p := printer{name: w.at.shown(name), data: data, before: w.before, after: w.after}
	err = w.query.each(w.automaton, data, func(from, to int) bool {
		switch {
		case p.extends(from): // what matches is a part of the match before, as people see it
			if p.text.Len() > 0 {
				p.add(from, to)
			}
			p.last = max(p.last, p.lineAfter(from, to))
			return true
		case w.mode == showContent && m.n < w.most:
			p.add(from, to)
		default:
			p.skip(from, to)
		}
		m.n++
		return w.mode != showFiles
	})
	m.isCut = m.isCut || errors.Is(err, errTooLong)
	p.finish()
	m.hits = p.hits
	return m
}

// largeFiles lets one search at a time hold a large file in memory, whatever the number of agents.
var largeFiles = make(chan struct{}, 1)

// read reads as much of a file, and nothing of one that is not text. The data is valid until the next call, or until
// release if that comes first. The size is known, so the end of the file need not be met: that would be one more read.
func (w *worker) read(ctx context.Context, f io.Reader, size int) (data []byte, release func()) {
	release = func() {}
	if w.buffer == nil {
		w.buffer = make([]byte, 64<<10)
	}
	n, err := io.ReadFull(f, w.buffer[:min(size, len(w.buffer))])
	if isBinary(w.buffer[:min(n, sniffedBytes)]) {
		return nil, release
	}
	if n == size || err != nil {
		return w.buffer[:n], release
	}
	if size > smallFile {
		select {
		case largeFiles <- struct{}{}:
			release = func() { w.buffer = nil; <-largeFiles }
		case <-ctx.Done():
			return nil, release
		}
	}
	w.buffer = append(make([]byte, 0, size), w.buffer[:n]...)[:size]
	rest, _ := io.ReadFull(f, w.buffer[n:])
	return w.buffer[:n+rest], release
}

// hit is a match as it is shown: its lines, and those around it that no other hit shows.
type hit struct {
	text    string
	isApart bool // lines are left out between the hit before and this one
}

// printer makes hits of the matches of one file, which come in their order.
type printer struct {
	name          string
	data          []byte
	before, after int

	hits []hit
	last int // where the lines of the last match end
	// shown is where the lines that are shown end, and number is the number of the line that begins at counted.
	shown, number, counted int
	text                   strings.Builder
	isApart                bool
}

// extends reports whether a match begins on the last line of the one before, perhaps at the end of the file.
func (p *printer) extends(from int) bool {
	return p.last > 0 && (from < p.last || p.last == len(p.data))
}

// skip notes a match that is not shown.
func (p *printer) skip(from, to int) {
	p.finishHit(from)
	p.last = p.lineAfter(from, to)
}

// lineAfter returns where the line after the one that a match ends on begins.
func (p *printer) lineAfter(from, to int) int {
	if to > from && p.data[to-1] == '\n' {
		return to // a match that ends with a line end takes nothing of the next line
	}
	_, next := lineEnd(p.data, to)
	return min(next, len(p.data))
}

// add shows a match.
func (p *printer) add(from, to int) {
	start := bytes.LastIndexByte(p.data[:from], '\n') + 1
	if p.extends(from) {
		start = p.last
	} else {
		p.finishHit(start)
		begin := start
		for n := 0; n < p.before && begin > p.shown; n++ {
			begin = bytes.LastIndexByte(p.data[:begin-1], '\n') + 1
		}
		p.isApart = begin > p.shown
		p.lines(begin, start, '-', 0)
	}
	end := p.lineAfter(from, to)
	p.lines(start, end, ':', from-start)
	p.last = max(p.last, end)
}

// finishHit adds the lines after the last match, up to end, and completes its hit.
func (p *printer) finishHit(end int) {
	if p.text.Len() == 0 {
		return
	}
	until := p.last
	for n := 0; n < p.after && until < end; n++ {
		_, until = lineEnd(p.data, until)
	}
	p.lines(p.last, min(until, end), '-', 0)
	p.hits = append(p.hits, hit{p.text.String(), p.isApart})
	p.text.Reset()
}

// finish completes the last hit.
func (p *printer) finish() { p.finishHit(len(p.data)) }

// lines writes the lines from one position to another. The first of them shows the part around its byte at.
func (p *printer) lines(from, to int, mark byte, at int) {
	for from < to {
		p.number += bytes.Count(p.data[p.counted:from], []byte("\n"))
		p.counted = from
		end, next := lineEnd(p.data, from)
		fmt.Fprintf(&p.text, "%s%c%d%c%s\n", p.name, mark, p.number+1, mark, excerpt(p.data[from:end], max(at, 0)))
		from, at = min(next, len(p.data)), 0
		p.shown = from
	}
}

// excerpt returns a line, or of a long one the part around its match, which begins at from.
func excerpt(line []byte, from int) string {
	if len(line) <= maxShownLine {
		text, _ := decode(line)
		return text
	}
	start := max(0, min(from-maxShownLine/3, len(line)-maxShownLine))
	end := start + maxShownLine
	text := strings.ToValidUTF8(string(text.LastBytes(text.FirstBytes(line, end), end-start)), "")
	if start > 0 {
		text = "..." + text
	}
	if end < len(line) {
		text += "..."
	}
	return text
}
