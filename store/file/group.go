package file

import (
	"context"
	"slices"
	"sync"

	"muster"
)

// groups lets goroutines of this process that append to one file at the same time share one write and one sync. Each
// leaves its lines and waits for the file's lock; whoever has the lock first writes the lines of all.
type groups struct {
	mu      sync.Mutex
	waiting map[string][]*groupPart // by file: what nobody has begun to write
}

// groupPart is what one goroutine appends.
type groupPart struct {
	lines   []byte
	written chan struct{} // closed when the rest is set
	leave   func()        // ends the wait for the lock
	end     muster.Pos
	err     error
}

// maxGroup limits the bytes that are written together, because they also fail together.
const maxGroup = 1 << 20

// append appends lines to a file, alone or together with others, and returns the position after them. lock takes the
// file's lock and write appends.
func (g *groups) append(ctx context.Context, name string, lines []byte, lock func(context.Context) (func(), error),
	write func([]byte) (muster.Pos, error)) (muster.Pos, error) {
	// What is written needs no lock any more, which another process may hold for any time.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &groupPart{lines: lines, written: make(chan struct{}), leave: cancel}
	g.mu.Lock()
	g.waiting[name] = append(g.waiting[name], p)
	g.mu.Unlock()
	unlock, err := lock(ctx)
	if err != nil {
		if g.leave(name, p) {
			return 0, err
		}
		// Another goroutine has begun to write it, so it must not be reported that nothing was written.
		<-p.written
		return p.end, p.err
	}
	defer unlock()
	// Whoever had the lock before may have written the part. If not, it is written now, after those that came earlier:
	// nobody else writes while this goroutine has the lock.
	for {
		select {
		case <-p.written:
			return p.end, p.err
		default:
			writeGroup(g.take(name), write)
		}
	}
}

// leave removes a part again. It returns false if somebody has begun to write it.
func (g *groups) leave(name string, p *groupPart) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.waiting[name], p)
	if i < 0 {
		return false
	}
	g.waiting[name] = slices.Delete(g.waiting[name], i, i+1)
	return true
}

// take removes the parts that are written together, at least one, from those that wait. The caller holds the file's
// lock and has a part of its own that is not written, so there is one.
func (g *groups) take(name string) []*groupPart {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.waiting[name]
	n, size := 1, len(all[0].lines)
	for n < len(all) && size+len(all[n].lines) <= maxGroup {
		size += len(all[n].lines)
		n++
	}
	if g.waiting[name] = all[n:]; n == len(all) {
		delete(g.waiting, name)
	}
	return all[:n]
}

// writeGroup writes parts, and tells those who wait for them.
func writeGroup(parts []*groupPart, write func([]byte) (muster.Pos, error)) {
	var all []byte
	for _, p := range parts {
		all = append(all, p.lines...)
	}
	// The lines lie one after another before the end, so each part's own end follows from the sizes.
	end, err := write(all)
	end -= muster.Pos(len(all))
	for _, p := range parts {
		end += muster.Pos(len(p.lines))
		p.end, p.err = end, err
		close(p.written)
		p.leave()
	}
}
