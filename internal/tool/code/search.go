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
	smallFile      = 4 << 20 // bytes
)

// search is one call of grep: where it searches, for what, and what of it is shown. The matches are counted first, in
// many files at once. Then the files of those that are shown are searched again, which are few.
type search struct {
	tools         toolset
	at            confinedPath
	filter        nameFilter
	query         *query
	mode          string
	before, after int // lines around a match
	offset, limit int // of the matches, or of the files
	files         int // that are searched
}

// fileMatches says how many matches a file has.
type fileMatches struct {
	name  string
	n     int
	isCut bool // only a part of the file was searched
}

// run searches the files for as long as a command may run, and shows the matches in the order of names.
func (s *search) run(ctx context.Context, limit time.Duration) (llm.Result, error) {
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	showing, cancel := context.WithTimeout(ctx, 2*limit) // what was found in time is shown
	defer cancel()
	names, err := s.at.files(ctx, s.tools)
	names = slices.DeleteFunc(names, func(name string) bool { return !s.filter.accepts(name, s.at.shown(name)) })
	s.files = len(names)
	result := s.show(showing, s.count(timed, s.narrow(timed, names)))
	switch {
	case ctx.Err() != nil:
		return llm.Result{}, context.Cause(ctx)
	case err != nil:
		return tool.FromError(err)
	}
	if timed.Err() != nil {
		result = strings.TrimSuffix(result, "\n") + fmt.Sprintf("\n[stopped after %v, before all was searched: "+
			"narrow the search, or repeat less in the pattern]\n", limit)
	}
	return tool.Text(result), nil
}

// count counts the matches in files, in several at once, until ctx ends. It returns the files that have some, in order.
func (s *search) count(ctx context.Context, names []string) []fileMatches {
	all := make([]fileMatches, len(names))
	var taken atomic.Int64
	var workers sync.WaitGroup
	for range min(maxGrepWorkers, runtime.GOMAXPROCS(0), (len(names)+batch-1)/batch) {
		workers.Go(func() {
			w := worker{query: s.query, opener: opener{at: s.at}}
			defer w.opener.close()
			for ctx.Err() == nil {
				end := int(taken.Add(batch))
				for i := end - batch; i < min(end, len(names)); i++ {
					m := &all[i]
					m.name = names[i]
					m.isCut = w.each(ctx, m.name, func(_ []byte, _, _ int) bool {
						m.n++
						return s.mode != showFiles
					})
				}
				if end >= len(names) {
					return
				}
			}
		})
	}
	workers.Wait()
	return slices.DeleteFunc(all, func(m fileMatches) bool { return m.n == 0 && !m.isCut })
}

// worker searches files one after the other.
type worker struct {
	query  *query
	opener opener
	buffer []byte // for the content of a file
}

// largeFiles lets one search at a time hold a large file in memory, whatever the number of agents.
var largeFiles = make(chan struct{}, 1)

// each calls found with the content of a file and the place of each match in it, as query.each does. A file that is not
// text, or that cannot be read, has no match. Links are skipped: what they point to is searched under its own name, if
// it is in the directory at all. isCut says that only a part of the file was searched.
func (w *worker) each(ctx context.Context, name string, found func(data []byte, from, to int) bool) (isCut bool) {
	f, size, err := w.opener.open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	if size > smallFile {
		select {
		case largeFiles <- struct{}{}:
			defer func() { w.buffer = nil; <-largeFiles }()
		case <-ctx.Done():
			return false
		}
	}
	data := w.read(f, int(min(size, maxGrepBytes)))
	err = w.query.each(ctx, data, func(from, to int) bool { return found(data, from, to) })
	return data != nil && size > maxGrepBytes || errors.Is(err, errTooLong)
}

// read reads as much of a file, and nothing of one that is not text. The data is valid until the next call. The size is
// known, so the end of the file need not be met: that would be one more read.
func (w *worker) read(f io.Reader, size int) []byte {
	if w.buffer == nil {
		w.buffer = make([]byte, 64<<10)
	}
	n, _ := io.ReadFull(f, w.buffer[:min(size, len(w.buffer))])
	if isBinary(w.buffer[:min(n, sniffedBytes)]) {
		return nil
	}
	if size > len(w.buffer) {
		w.buffer = append(make([]byte, 0, size), w.buffer[:n]...)[:size]
		rest, _ := io.ReadFull(f, w.buffer[n:])
		n += rest
	}
	return w.buffer[:n]
}

// print writes matches of a file: those from the index first up to, but not including, last.
func (s *search) print(ctx context.Context, b *strings.Builder, name string, first, last int) {
	w := worker{query: s.query, opener: opener{at: s.at}}
	defer w.opener.close()
	p := printer{Builder: b, name: s.at.shown(name), before: s.before, after: s.after}
	n := 0
	w.each(ctx, name, func(data []byte, from, to int) bool {
		p.data = data
		start, end := lineStart(data, from), lineAfter(data, from, to)
		p.rest(start)
		if first <= n && n < last {
			p.match(start, end, from-start)
		} else {
			p.shown, p.left = end, 0
		}
		n++
		return n < last || p.left > 0
	})
	p.rest(len(p.data))
}

// printer writes matches of one file, which come in their order.
type printer struct {
	*strings.Builder
	name          string
	data          []byte
	before, after int // lines around a match

	shown int // where the lines end that are written
	left  int // lines after the last match that may still be written
	// number is the number of the line that begins at counted, less one.
	number, counted int
}

// match writes the lines from start to end, and those before that are not written yet. at is where the match begins in
// the first line.
func (p *printer) match(start, end, at int) {
	begin := start
	for n := 0; n < p.before && begin > p.shown; n++ {
		begin = lineStart(p.data, begin-1)
	}
	// As other programs do, a line of dashes stands where lines between two matches are left out.
	if p.before+p.after > 0 && p.Len() > 0 && (begin > p.shown || p.shown == 0) {
		p.WriteString("--\n")
	}
	for p.shown = begin; p.shown < start; {
		p.line('-', 0)
	}
	for ; p.shown < end; at = 0 {
		p.line(':', at)
	}
	p.left = p.after
}

// rest writes the lines after the last match, up to end.
func (p *printer) rest(end int) {
	for ; p.left > 0 && p.shown < end; p.left-- {
		p.line('-', 0)
	}
}

// line writes the next line, of a long one the part around its byte at.
func (p *printer) line(mark byte, at int) {
	p.number += bytes.Count(p.data[p.counted:p.shown], []byte("\n"))
	p.counted = p.shown
	end, next := lineEnd(p.data, p.shown)
	fmt.Fprintf(p, "%s%c%d%c%s\n", p.name, mark, p.number+1, mark, excerpt(p.data[p.shown:end], at))
	p.shown = min(next, len(p.data))
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
