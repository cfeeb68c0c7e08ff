package code

import (
	"context"
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// The limits of an automaton. A state takes about a kilobyte.
const (
	maxStates = 2000 // that are kept; after that they are made anew
	maxResets = 10   // after which the expression is one for which states do not pay
)

// automaton finds the lines that may match a regular expression, and reads each byte of them once. Package regexp takes
// ten to a hundred times as long for an expression without literal text. Its states are made when they are needed. It
// assumes that $, \b and \B hold everywhere, and ^ too where a match may span lines. It belongs to one worker.
type automaton struct {
	ctx   context.Context
	prog  *syntax.Prog
	spans bool // a match may contain the end of a line
	// isExact says that the expression has no assertion that is assumed to hold, so what is found does match.
	isExact bool
	start   *state // at the beginning of a line
	states  map[string]*state
	resets  int
	steps   int
}

// state is what may have been matched before a byte.
type state struct {
	insts   []uint32 // of the program, sorted: each consumes a character
	next    [utf8.RuneSelf]*state
	wide    map[rune]*state // next of the other characters
	matches bool            // a match is complete
}

// newAutomaton returns an automaton for the expression of q.
func newAutomaton(ctx context.Context, q *query) *automaton {
	a := &automaton{ctx: ctx, prog: q.program, spans: q.spansLines}
	a.isExact = !a.spans && !slices.ContainsFunc(a.prog.Inst, func(inst syntax.Inst) bool {
		return inst.Op == syntax.InstEmptyWidth && !isBegin(inst)
	})
	a.reset()
	return a
}

// isBegin reports whether an assertion is one of the beginning of a line.
func isBegin(assertion syntax.Inst) bool {
	return syntax.EmptyOp(assertion.Arg)&^(syntax.EmptyBeginLine|syntax.EmptyBeginText) == 0
}

// reset forgets all states.
func (a *automaton) reset() {
	a.states = map[string]*state{}
	a.start = a.state([]uint32{uint32(a.prog.Start)}, true)
}

// state returns the state in which the program is at the instructions of stack.
func (a *automaton) state(stack []uint32, atStart bool) *state {
	s := &state{}
	for seen := make([]bool, len(a.prog.Inst)); len(stack) > 0; {
		pc := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[pc] {
			continue
		}
		seen[pc] = true
		switch inst := a.prog.Inst[pc]; inst.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			stack = append(stack, inst.Out, inst.Arg)
		case syntax.InstEmptyWidth:
			if atStart || a.spans || !isBegin(inst) {
				stack = append(stack, inst.Out)
			}
		case syntax.InstCapture, syntax.InstNop:
			stack = append(stack, inst.Out)
		case syntax.InstMatch:
			s.matches = true
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			s.insts = append(s.insts, pc)
		}
	}
	slices.Sort(s.insts)
	var key []byte
	for _, pc := range s.insts {
		key = binary.AppendUvarint(key, uint64(pc)+1)
	}
	if s.matches {
		key = append(key, 0)
	}
	if known := a.states[string(key)]; known != nil {
		return known
	}
	a.states[string(key)] = s
	return s
}

// step makes the state that follows s after a character, and remembers it. A match may also begin behind the character.
// It returns nil when the time is over, or the automaton useless.
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
	next := a.start
	if r != '\n' || a.spans {
		stack := []uint32{uint32(a.prog.Start)}
		for _, pc := range s.insts {
			if inst := &a.prog.Inst[pc]; inst.MatchRune(r) {
				stack = append(stack, inst.Out)
			}
		}
		next = a.state(stack, false)
	}
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

// find returns the last position of the first place at or after pos, which is where a line begins, that may match. It
// returns -1 where none does, and when the time is over.
func (a *automaton) find(data []byte, pos int) int {
	s := a.start
	if s.matches && pos < len(data) {
		return pos
	}
	for i, size := pos, 0; i < len(data); i += size {
		r := rune(data[i])
		var next *state
		if size = 1; r < utf8.RuneSelf {
			next = s.next[r]
		} else {
			r, size = utf8.DecodeRune(data[i:])
			next = s.wide[r]
		}
		if next == nil {
			if next = a.step(s, r); next == nil {
				if a.ctx.Err() != nil {
					return -1
				}
				return i // package regexp decides about this line, and those after it
			}
		}
		if s = next; s.matches {
			return i
		}
	}
	return -1
}

// isUseless reports whether the expression has so many states that package regexp is faster.
func (a *automaton) isUseless() bool { return a.resets > maxResets }
