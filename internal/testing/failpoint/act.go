package failpoint

import (
	"math/rand/v2"
	"os"
	"sync"
)

// plan is what a process is armed with.
type plan struct {
	kind   string
	name   string // of the point, for kill and stop
	at     int    // at which passing
	chance float64
	file   string // for list
	note   string
	next   *plan // another one, that this process is armed with too

	mu   sync.Mutex
	dice *rand.Rand
	had  int // passings of the point
	seen map[string]bool
}

func (p *plan) seed(n uint64) { p.dice = rand.New(rand.NewPCG(n, 0)) }

// pass is one passing of a point.
func (p *plan) pass(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch p.kind {
	case "list":
		if p.seen == nil {
			p.seen = map[string]bool{}
		}
		if !p.seen[name] {
			p.seen[name] = true
			write(p.file, name)
		}
	case "random":
		if p.dice.Float64() < p.chance {
			write(p.note, name)
			die()
		}
	case "kill":
		if p.counts(name) {
			write(p.note, name)
			die()
		}
	case "stop":
		if p.counts(name) {
			p.mu.Unlock() // other goroutines must not wait for this one when the process goes on
			defer p.mu.Lock()
			write(p.note, name)
			halt()
		}
	}
}

// counts reports whether this passing is the one that is meant.
func (p *plan) counts(name string) bool {
	if name != p.name {
		return false
	}
	p.had++
	return p.had == p.at
}

// write appends a line to a file, if there is one: in one write, so that several processes may share it. It is a service
// to a harness, and a failure must change nothing for the process.
func write(file, name string) {
	if file == "" {
		return
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = f.WriteString(name + "\n")
}
