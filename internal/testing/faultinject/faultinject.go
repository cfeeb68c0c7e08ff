// Package faultinject kills a process at named points, so that tests can see what the program does then.
// internal/failpoint calls it in builds with the tag "failpoint"; the program that people install does not contain it.
//
// Read in this order: faultinject.go (points, and how a process is armed), plan.go (what happens at a point),
// points.go (the list of points, each with what is durable there).
//
// A point costs one atomic load in a process that is not armed.
package faultinject

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
)

// Variable is the environment variable that Arm reads. It names what happens at which point:
//
//	kill:NAME[:N]   the process kills itself at the N-th passing (1)
//	random:SEED:P   it kills itself at each point with the probability P
//	list:FILE       it goes on, and appends the name of each point to the file the first time
//
// Several are separated by semicolons, and the last one comes first.
const Variable = "MUSTER_FAULT"

var armed atomic.Pointer[plan]

// Hit does what this process is armed with at the point of that name, which points.go lists.
func Hit(name string) {
	for p := armed.Load(); p != nil; p = p.next {
		p.pass(name)
	}
}

// HitFile is Hit for a step of writing a state file. The point's name is the kind of the file, a dot, and the step.
func HitFile(path, step string) {
	for p := armed.Load(); p != nil; p = p.next {
		p.pass(fileKind(path) + "." + step)
	}
}

// fileKind returns what a state file holds, by its name alone.
func fileKind(path string) string {
	dir, base := filepath.Split(filepath.ToSlash(path))
	dir = filepath.Base(dir)
	switch {
	case base == ".tasks" || base == ".transcripts": // a directory, on its way to the archive
		return base[1:]
	case strings.Contains(filepath.ToSlash(path), "/.team/archive/"):
		return "archive"
	case dir == "repositories" || dir == "muster": // the user's registry, and the mark in a repository
		return "registry"
	case strings.Contains(filepath.ToSlash(path), "/.git/"): // of lanes, and of the worktrees that git has for them
		return "places"
	case strings.HasSuffix(base, ".md"): // of the state, only memories are Markdown
		return "memory"
	case strings.HasSuffix(base, ".torn"):
		return "torn"
	case dir == ".tasks" && strings.HasPrefix(base, "claim_events."):
		return "claim_events"
	case dir == ".tasks":
		return "tasks"
	case dir == ".worktrees" && strings.HasPrefix(base, "events."):
		return "lane_events"
	case dir == ".worktrees":
		return "lanes"
	case dir == "locks": // the note of a check's checkout, also while it is staged
		return "checks"
	case dir == ".team" && strings.HasPrefix(base, "events."):
		return "events"
	case dir == ".team" && strings.HasPrefix(base, "spend."):
		return "spend"
	case dir == ".team":
		return "team"
	case strings.HasSuffix(dir, ".segments"):
		return "segments"
	case strings.HasPrefix(base, "log."):
		return "transcripts"
	case strings.HasSuffix(base, ".rejected.jsonl"):
		return "rejected"
	}
	return dir
}

// Arm arms this process with what its environment says, and removes the variable so that its children are not armed.
// A program calls it once, when it starts.
func Arm() error {
	text := os.Getenv(Variable)
	if text == "" {
		return nil
	}
	os.Unsetenv(Variable)
	return ArmWith(text)
}

// ArmWith arms this process with text, the value that the environment variable would have. It replaces what the process
// was armed with before.
func ArmWith(text string) error {
	var first *plan
	for one := range strings.SplitSeq(text, ";") {
		p, err := parse(one)
		if err != nil {
			return fmt.Errorf("%s=%s: %w", Variable, text, err)
		}
		p.next = first
		first = p
	}
	armed.Store(first)
	return nil
}

// Disarm ends what Arm or ArmWith began: points do nothing again.
func Disarm() { armed.Store(nil) }

// parse returns the plan that one part of Variable's value describes.
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
	case "kill":
		name, times, several := strings.Cut(rest, ":")
		if p.name, p.at = name, 1; !Known(name) {
			return nil, fmt.Errorf("there is no point %q", name)
		}
		if several {
			n, err := strconv.Atoi(times)
			if err != nil || n < 1 {
				return nil, fmt.Errorf("kill wants a number of passings from 1: kill:NAME:N")
			}
			p.at = n
		}
		return p, nil
	}
	return nil, fmt.Errorf("it is one of kill:NAME[:N], random:SEED:P, list:FILE")
}
