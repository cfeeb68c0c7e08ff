package file

import (
	"context"
	"errors"
	"sync"

	"muster"
)

// groups lets goroutines of this process that append to one file at the same time share one write and one sync. The
// first one waits for the file's lock; those that come while it waits give it their lines.
type groups struct {
	mu   sync.Mutex
	open map[string]*group // by lock; those that still take lines
}

// group is the lines that are written together.
type group struct {
	parts []*groupPart
	size  int
	// done is closed when they were written or have failed.
	done chan struct{}
}

// groupPart is what one goroutine appends.
type groupPart struct {
	lines []byte
	// gone says that its context ended before it was written.
	gone bool
	end  muster.Pos
	err  error
}

// maxGroup limits the bytes that are written together, because they also fail together.
const maxGroup = 1 << 20

// errGroupAbandoned tells the others of a group that the first one's context ended before it wrote. They try again.
var errGroupAbandoned = errors.New("left")

// append appends lines to a file, alone or together with others, and returns the position after them. lock takes the
// file's lock and write appends. The goroutine that came first calls both for all.
func (g *groups) append(ctx context.Context, name string, lines []byte, lock func() (func(), error),
	write func([]byte) (muster.Pos, error)) (muster.Pos, error) {
	for {
		p := &groupPart{lines: lines}
		grp, first := g.join(name, p)
		if first {
			g.writeGroup(ctx, name, grp, lock, write)
			return p.end, p.err
		}
		select {
		case <-grp.done:
		case <-ctx.Done():
			if g.leave(name, grp, p) {
				return 0, ctx.Err()
			}
			<-grp.done // it is being written
		}
		if !errors.Is(p.err, errGroupAbandoned) {
			return p.end, p.err
		}
	}
}

// join adds a part to the open group of that name, or opens a new one.
func (g *groups) join(name string, p *groupPart) (grp *group, first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	grp = g.open[name]
	if first = grp == nil || grp.size+len(p.lines) > maxGroup; first {
		grp = &group{done: make(chan struct{})}
		if g.open == nil {
			g.open = map[string]*group{}
		}
		g.open[name] = grp
	}
	grp.parts = append(grp.parts, p)
	grp.size += len(p.lines)
	return grp, first
}

// leave removes a part again. It returns false if the part is being written: then its caller waits for the result,
// because it must not report that nothing was written.
func (g *groups) leave(name string, grp *group, p *groupPart) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[name] != grp {
		return false
	}
	p.gone = true
	return true
}

// writeGroup writes a group. From the moment it holds the lock, nobody can join.
func (g *groups) writeGroup(ctx context.Context, name string, grp *group, lock func() (func(), error),
	write func([]byte) (muster.Pos, error)) {
	defer close(grp.done)
	unlock, err := lock()
	// The group is closed before its parts are read. A part that joined later would be told that it is written although
	// it is not.
	g.mu.Lock()
	if g.open[name] == grp {
		delete(g.open, name)
	}
	g.mu.Unlock()
	var all []byte
	var end muster.Pos
	if err == nil {
		defer unlock()
		for _, p := range grp.parts {
			if !p.gone {
				all = append(all, p.lines...)
			}
		}
		end, err = write(all)
	}
	// The others must not fail because the first one was cancelled: their own contexts go on.
	others := err
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		others = errGroupAbandoned
	}
	end -= muster.Pos(len(all))
	for i, p := range grp.parts {
		if p.gone {
			continue
		}
		end += muster.Pos(len(p.lines))
		if p.end, p.err = end, others; i == 0 {
			p.err = err
		}
	}
}
