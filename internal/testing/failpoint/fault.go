// Package fault has the named points at which a test may kill or stop the process, and the mutants: protections that a
// test may switch off to see that it notices.
//
// Read in this order: fault.go (points, and how a process is armed), act.go (what happens at one), points.go (the list
// of points, each with what is durable by then), mutants.go.
//
// A point that nothing is armed at costs one atomic load. Points are armed by the environment of the process that dies
// of them; mutants by Go code only, so that no environment can take a protection away from a user's team.
package failpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
)

// The environment variables that Arm reads.
const (
	// Variable says what happens at which point:
	//	kill:NAME[:N]   the process kills itself at the N-th passing (1)
	//	stop:NAME[:N]   it stops itself, until somebody continues it
	//	random:SEED:P   it kills itself at each point with the probability P
	//	list:FILE       nothing; each point that is passed is written into the file, once
	//
	// Several are separated by semicolons.
	Variable = "MUSTER_FAULT"
	// NoteVariable names a file that gets the name of a point, on a line, before the process dies of it or stops there.
	NoteVariable = "MUSTER_FAULT_NOTE"
)

var armed atomic.Pointer[plan]

// Point is where a process may die. The names are those of the list in points.go.
func Point(name string) {
	for p := armed.Load(); p != nil; p = p.next {
		p.pass(name)
	}
}

// File is a point of a file of the state: what the file holds, a dot, and the step.
func File(path, step string) {
	for p := armed.Load(); p != nil; p = p.next {
		p.pass(holds(path) + "." + step)
	}
}

// holds is what a state file has in it, by its name alone.
func holds(path string) string {
	dir, base := filepath.Split(filepath.ToSlash(path))
	dir = filepath.Base(dir)
	switch {
	case base == ".tasks" || base == ".transcripts": // a directory, on its way to the archive
		return base[1:]
	case strings.Contains(filepath.ToSlash(path), "/.team/archive/"):
		return "archive"
	case strings.HasSuffix(base, ".torn"):
		return "torn"
	case dir == ".tasks" && base == "claim_events.jsonl":
		return "claim_events"
	case dir == ".tasks":
		return "tasks"
	case dir == ".worktrees" && base == "events.jsonl":
		return "lane_events"
	case dir == ".worktrees":
		return "lanes"
	case dir == "locks" && strings.HasPrefix(base, "check-"): // the note of a check's checkout
		return "checks"
	case dir == ".team" && strings.HasPrefix(base, "events."):
		return "events"
	case dir == ".team":
		return "team"
	case strings.HasSuffix(dir, ".segments"):
		return "segments"
	case base == "log.jsonl":
		return "transcripts"
	case strings.HasSuffix(base, ".rejected.jsonl"):
		return "rejected"
	}
	return dir
}

// Arm reads the environment of this process and takes what arms it away: no child is meant. It is called once, when the
// program starts. The error says what cannot be understood.
func Arm() error {
	text := os.Getenv(Variable)
	if text == "" {
		return nil
	}
	note := os.Getenv(NoteVariable)
	os.Unsetenv(Variable)
	os.Unsetenv(NoteVariable)
	return ArmWith(text, note)
}

// ArmWith arms this process from its own code, with what the environment would say. What it was armed with before is
// forgotten.
func ArmWith(text, note string) error {
	var first *plan
	for one := range strings.SplitSeq(text, ";") {
		p, err := parse(one)
		if err != nil {
			return fmt.Errorf("%s=%s: %w", Variable, text, err)
		}
		p.note, p.next = note, first
		first = p
	}
	armed.Store(first)
	return nil
}

// Disarm forgets what this process is armed with.
func Disarm() { armed.Store(nil) }

func parse(text string) (*plan, error) {
	kind, rest, _ := strings.Cut(text, ":")
	p := &plan{kind: kind}
	switch kind {
	case "list":
		if p.file = rest; rest == "" {
			return nil, fmt.Errorf("list wants a file: list:FILE")
		}
		return p, nil
	case "random":
		seed, chance, _ := strings.Cut(rest, ":")
		n, err := strconv.ParseUint(seed, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("random wants a whole number: random:SEED:P")
		}
		if p.chance, err = strconv.ParseFloat(chance, 64); err != nil || p.chance < 0 || p.chance > 1 {
			return nil, fmt.Errorf("random wants a probability from 0 to 1: random:SEED:P")
		}
		p.seed(n)
		return p, nil
	case "kill", "stop":
		name, times, several := strings.Cut(rest, ":")
		if p.name, p.at = name, 1; !Known(name) {
			return nil, fmt.Errorf("there is no point %q", name)
		}
		if several {
			n, err := strconv.Atoi(times)
			if err != nil || n < 1 {
				return nil, fmt.Errorf("%s wants a number of passings from 1: %s:NAME:N", kind, kind)
			}
			p.at = n
		}
		return p, nil
	}
	return nil, fmt.Errorf("it is one of kill:NAME[:N], stop:NAME[:N], random:SEED:P, list:FILE")
}
