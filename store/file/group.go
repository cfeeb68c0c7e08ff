package file

import (
	"context"
	"errors"
	"sync"

	"muster"
)

// groups let goroutines of this process that append to one file at the same moment share one write and one sync. Who
// comes first waits for the file's lock; who comes while it waits, gives it its lines.
type groups struct {
	mu   sync.Mutex
	open map[string]*group // by lock; those that still take lines
}

// group is lines that go out together.
type group struct {
	parts []*share
	size  int
	done  chan struct{} // closed when they have gone out, or have not
}

// share is what one goroutine appends.
type share struct {
	lines []byte
	gone  bool // its context ended before it was written
	end   muster.Pos
	err   error
}

// maxGroup is how many bytes are written together: what is written together fails together.
const maxGroup = 1 << 20

// errLeft is what a group's first one leaves to the others when its context ended before it wrote: they try again.
var errLeft = errors.New("left")

// append appends lines at the end of a file, alone or with others', and returns the place after them. lock takes the
// file's lock under ctx and write appends; the goroutine that was first does both for all.
func (g *groups) append(ctx context.Context, name string, lines []byte, lock func() (func(), error), write func([]byte) (muster.Pos, error)) (muster.Pos, error) {
	for {
		p := &share{lines: lines}
		grp, first := g.join(name, p)
		if first {
			g.lead(ctx, name, grp, lock, write)
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
		if p.err != errLeft {
			return p.end, p.err
		}
	}
}

// join adds a part to the open group of that name, or opens one.
func (g *groups) join(name string, p *share) (grp *group, first bool) {
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

// leave takes a part out again, if it is not being written yet.
func (g *groups) leave(name string, grp *group, p *share) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[name] != grp {
		return false
	}
	p.gone = true
	return true
}

// lead writes a group, unless its first one's context ends before that.
func (g *groups) lead(ctx context.Context, name string, grp *group, lock func() (func(), error), write func([]byte) (muster.Pos, error)) {
	defer close(grp.done)
	unlock, err := lock()
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
	others := err
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		others = errLeft
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
