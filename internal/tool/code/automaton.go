package code

import (
	"bytes"
	"context"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// The limits of an automaton. A state takes about a kilobyte.
const (
	maxStates = 2000 // that are kept; after that they are made anew
	maxResets = 10   // after which the expression is one for which states do not pay
)

// automaton finds lines that may match a regular expression, and reads each byte of them once. Package regexp takes
// ten to a hundred times as long for an expression without literal text. Its states are made when they are needed. It
// assumes that \b and \B hold everywhere; every other line that it finds does match. It belongs to one worker.
type automaton struct {
	ctx    context.Context
	prog   *syntax.Prog
	start  *state // at the beginning of a line
	states map[string]*state
	resets int
	steps  int
	// spans says that a match may contain the end of a line. Then all assertions are assumed to hold, and a position
	// that is found only says that there may be a match.
	spans bool
	// isExact says that a line that is found matches.
	isExact bool
}

// state is what may have been matched before a byte.
type state struct {
	insts       []uint32 // of the program, sorted: each consumes a character or waits for the end of a line
	next        [utf8.RuneSelf]*state
	wide        map[rune]*state // next of the other characters
	matches     bool            // a match is complete
	matchesLast bool            // one is at the end of a line
}

// newAutomaton returns an automaton for the expression of q.
func newAutomaton(ctx context.Context, q *query) *automaton {
	a := &automaton{ctx: ctx, prog: q.program, spans: q.spansLines, isExact: true}
	for _, inst := range a.prog.Inst {
		if inst.Op == syntax.InstEmptyWidth &&
			syntax.EmptyOp(inst.Arg)&(syntax.EmptyWordBoundary|syntax.EmptyNoWordBoundary) != 0 {
			a.isExact = false
		}
	}
	a.reset()
	return a
}

// reset forgets all states.
func (a *automaton) reset() {
	a.states = map[string]*state{}
	a.start = a.state([]uint32{uint32(a.prog.Start)}, true)
}

// state returns the state in which the program is at one of these instructions, or begins anew.
func (a *automaton) state(begin []uint32, atStart bool) *state {
	s := &state{}
	seen := make([]bool, len(a.prog.Inst))
	for stack := begin; len(stack) > 0; {
		pc := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[pc] {
			continue
		}
		seen[pc] = true
		switch inst := &a.prog.Inst[pc]; inst.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			stack = append(stack, inst.Out, inst.Arg)
		case syntax.InstCapture, syntax.InstNop:
			stack = append(stack, inst.Out)
		case syntax.InstMatch:
			s.matches = true
		case syntax.InstEmptyWidth:
			switch op := syntax.EmptyOp(inst.Arg); {
			case a.spans:
				stack = append(stack, inst.Out)
			case op&(syntax.EmptyBeginLine|syntax.EmptyBeginText) != 0 && !atStart:
			case op&(syntax.EmptyEndLine|syntax.EmptyEndText) != 0:
				s.insts = append(s.insts, pc)
			default:
				stack = append(stack, inst.Out)
			}
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			s.insts = append(s.insts, pc)
		}
	}
	slices.Sort(s.insts)
	key := make([]byte, 0, 4*len(s.insts)+1)
	for _, pc := range s.insts {
		key = append(key, byte(pc), byte(pc>>8), byte(pc>>16), byte(pc>>24))
	}
	if s.matches {
		key = append(key, 'm')
	}
	if atStart {
		key = append(key, 's')
	}
	if known := a.states[string(key)]; known != nil {
		return known
	}
	s.matchesLast = s.matches || a.endsHere(s.insts, atStart)
	a.states[string(key)] = s
	return s
}

// endsHere reports whether a match is complete at the end of a line, from these instructions.
func (a *automaton) endsHere(insts []uint32, atStart bool) bool {
	seen := make([]bool, len(a.prog.Inst))
	for stack := slices.Clone(insts); len(stack) > 0; {
		pc := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[pc] {
			continue
		}
		seen[pc] = true
		switch inst := &a.prog.Inst[pc]; inst.Op {
		case syntax.InstMatch:
			return true
		case syntax.InstAlt, syntax.InstAltMatch:
			stack = append(stack, inst.Out, inst.Arg)
		case syntax.InstCapture, syntax.InstNop:
			stack = append(stack, inst.Out)
		case syntax.InstEmptyWidth:
			isBegin := syntax.EmptyOp(inst.Arg)&(syntax.EmptyBeginLine|syntax.EmptyBeginText) != 0
			if !isBegin || atStart {
				stack = append(stack, inst.Out)
			}
		}
	}
	return false
}

// step makes the state that follows s after a character, and remembers it. A match may begin behind the
// character. It returns nil when the time is over, or the automaton useless.
func (a *automaton) step(s *state, r rune) *state {
	if a.steps++; a.steps&1023 == 0 && a.ctx.Err() != nil {
		return nil
	}
	if len(a.states) >= maxStates {
		a.resets++
		a.reset()
		if a.isUseless() {
			return nil
		}
	}
	begin := []uint32{uint32(a.prog.Start)}
	for _, pc := range s.insts {
		if inst := &a.prog.Inst[pc]; inst.Op != syntax.InstEmptyWidth && inst.MatchRune(r) {
			begin = append(begin, inst.Out)
		}
	}
	next := a.state(begin, r == '\n')
	if r < utf8.RuneSelf {
		s.next[r] = next
		return next
	}
	if s.wide == nil || len(s.wide) >= maxStates {
		s.wide = map[rune]*state{}
	}
	s.wide[r] = next
	return next
}

// find returns a position on the first line at or after pos, which is where a line begins, that may match. It returns
// -1 where none does, and when the time is over.
func (a *automaton) find(data []byte, pos int) int {
	s := a.start
	if s.matches && pos < len(data) {
		return pos
	}
	for i := pos; i < len(data); {
		c := data[i]
		if c == '\n' || c == '\r' && (i+1 == len(data) || data[i+1] == '\n') {
			if s.matchesLast {
				return i
			}
			if !a.spans {
				n := bytes.IndexByte(data[i:], '\n')
				if n < 0 {
					return -1 // this \r is the last byte
				}
				if i, s = i+n+1, a.start; s.matches && i < len(data) {
					return i
				}
				continue
			}
		}
		var next *state
		size := 1
		if c < utf8.RuneSelf {
			if next = s.next[c]; next == nil {
				if next = a.step(s, rune(c)); next == nil {
					return a.giveUp(i)
				}
			}
		} else {
			var r rune
			r, size = utf8.DecodeRune(data[i:])
			if next = s.wide[r]; next == nil {
				if next = a.step(s, r); next == nil {
					return a.giveUp(i)
				}
			}
		}
		if s = next; s.matches {
			return i
		}
		i += size
	}
	if s.matchesLast && pos < len(data) && data[len(data)-1] != '\n' {
		return len(data) - 1
	}
	return -1
}

// giveUp returns what find returns where it cannot go on: the line of a position may match, unless the time is over.
func (a *automaton) giveUp(at int) int {
	if a.ctx.Err() != nil {
		return -1
	}
	return at
}

// isUseless reports whether the expression has so many states that package regexp is faster.
func (a *automaton) isUseless() bool { return a.resets > maxResets }
