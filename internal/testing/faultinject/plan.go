package faultinject

import (
	"math/rand/v2"
	"os"
	"sync"
)

// plan is one thing that a process is armed with: kill, random, list or watch.
type plan struct {
	kind   string
	name   string  // of the point, for kill
	at     int     // the passing of that point at which it happens, from 1
	chance float64 // of dying at each point, for random
	file   string  // for list
	watch  func(string)
	next   *plan // the next plan of this process, nil for none

	mu     sync.Mutex
	rand   *rand.Rand
	passed int             // how often the point of that name was passed
	seen   map[string]bool // the points that were listed
}

// seed makes the plan's random numbers repeatable.
func (p *plan) seed(n uint64) { p.rand = rand.New(rand.NewPCG(n, 0)) }

// pass does what the plan says for one passing of a point.
func (p *plan) pass(name string) {
	if p.kind == "watch" {
		p.watch(name)
		return
	}
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
		if p.rand.Float64() < p.chance {
			die()
		}
	case "kill":
		if name != p.name {
			return
		}
		if p.passed++; p.passed == p.at {
			die()
		}
	}
}

// write appends a line to a file. It writes the line at once, so that several processes can share the file. It ignores
// errors: the process under test must not behave differently because of its harness.
func write(file, name string) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = f.WriteString(name + "\n")
}
