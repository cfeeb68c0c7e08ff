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

// automaton finds matches of a regular expression, the same ones as package regexp. It reads a match twice: forward,
// and back. Package regexp takes ten to a hundred times as long for an expression without literal text. An automaton
// belongs to one worker.
type automaton struct {
	forward, backward machine
}

// newAutomaton returns an automaton for the expression of q.
func newAutomaton(ctx context.Context, q *query) *automaton {
	return &automaton{
		forward:  machine{ctx: ctx, prog: q.program},
		backward: machine{ctx: ctx, prog: q.reversed, isBackward: true},
	}
}

// isUseless reports whether the expression has so many states that package regexp is faster.
func (a *automaton) isUseless() bool { return a.forward.isUseless() || a.backward.isUseless() }

// matches reports whether a text has a match. known is false when the time is over, or the automaton useless.
func (a *automaton) matches(text []byte) (is, known bool) {
	end, known := a.forward.run(text, 0, true)
	return end >= 0, known
}

// find returns the place of the first match that begins at or after pos, or -1. known is false when the time is over,
// or the automaton useless.
//
// The way forward finds where the match ends that package regexp prefers: of all that begin first, the first in the
// order of the expression. From there the way back finds where it begins, since no match that ends there begins
// earlier.
func (a *automaton) find(text []byte, pos int) (from, to int, known bool) {
	to, known = a.forward.run(text, pos, false)
	if to < 0 || !known {
		return -1, -1, known
	}
	from, known = a.backward.runBack(text, pos, to)
	return from, to, known
}

// machine reads a text in one direction. Its states are made when they are needed.
type machine struct {
	ctx  context.Context
	prog *syntax.Prog
	// isBackward says that the text is read from its end, and that prog is reversed. All matches then begin where the
	// reading does, and the longest is found.
	isBackward bool
	starts     [4]*state // by the kind of the character beside
	states     map[string]*state
	resets     int
	steps      int
}

// state is what may have been matched before a character.
type state struct {
	insts  []uint32 // of the program, in their order of preference: where it stands
	beside rune     // the character that was read last, as far as assertions can tell
	// matches says that a match ends before the character that was read last.
	matches bool
	// isOver says that a match was found: none that begins later counts.
	isOver bool
	// isNews says that the state is one at which a reader must look: it matches, or nothing can match any more.
	isNews bool
	next   [utf8.RuneSelf]*state
	end    *state          // next at the end of the text
	wide   map[rune]*state // next of the other characters
}

// isUseless reports whether the expression has so many states that package regexp is faster.
func (m *machine) isUseless() bool { return m.resets > maxResets }

// noRune stands for the character before the beginning, and after the end of a text.
const noRune = -1

// kinds are characters between which all assertions can tell.
var kinds = [4]rune{noRune, '\n', 'a', ' '}

// kindOf returns the index of the kind of a character.
func kindOf(r rune) int {
	switch {
	case r == noRune:
		return 0
	case r == '\n':
		return 1
	case syntax.IsWordChar(r):
		return 2
	}
	return 3
}

// start returns the state at a position beside which the character stands.
func (m *machine) start(beside rune) *state {
	kind := kindOf(beside)
	if m.starts[kind] == nil {
		s := &state{beside: kinds[kind]}
		if m.isBackward {
			s.insts = []uint32{uint32(m.prog.Start)}
		}
		m.starts[kind] = m.keep(s)
	}
	return m.starts[kind]
}

// keep returns the state that is equal to s, which is s if there is none yet.
func (m *machine) keep(s *state) *state {
	s.isNews = s.matches || len(s.insts) == 0 && (m.isBackward || s.isOver)
	key := []byte{byte(s.beside), 0}
	if s.matches {
		key[1]++
	}
	if s.isOver {
		key[1] += 2
	}
	for _, pc := range s.insts {
		key = binary.AppendUvarint(key, uint64(pc))
	}
	if known := m.states[string(key)]; known != nil {
		return known
	}
	if m.states == nil {
		m.states = map[string]*state{}
	}
	m.states[string(key)] = s
	return s
}

// step makes the state that follows s after a character, and remembers it. It returns nil when the time is over, or the
// machine useless.
func (m *machine) step(s *state, r rune) *state {
	if m.steps++; m.steps&1023 == 0 && m.ctx.Err() != nil {
		return nil
	}
	if len(m.states) >= maxStates {
		m.resets++
		m.states, m.starts = nil, [4]*state{}
	}
	if m.isUseless() {
		return nil
	}
	next := m.keep(m.follow(s, r))
	switch {
	case r == noRune:
		s.end = next
		return next
	case r < utf8.RuneSelf:
		s.next[r] = next
		return next
	}
	if s.wide == nil || len(s.wide) >= maxStates {
		s.wide = map[rune]*state{}
	}
	s.wide[r] = next
	return next
}

// follow returns what may have been matched when r was read in s. Assertions are decided here, where the characters on
// both sides are known.
func (m *machine) follow(s *state, r rune) *state {
	holds := syntax.EmptyOpContext(s.beside, r)
	if m.isBackward {
		holds = syntax.EmptyOpContext(r, s.beside)
	}
	next := &state{beside: kinds[kindOf(r)], isOver: s.isOver}
	var stack []uint32
	if !m.isBackward && !s.isOver { // a match may also begin here, which is preferred less than all others
		stack = append(stack, uint32(m.prog.Start))
	}
	for _, pc := range slices.Backward(s.insts) {
		stack = append(stack, pc)
	}
	visited, entered := make([]bool, len(m.prog.Inst)), make([]bool, len(m.prog.Inst))
	for len(stack) > 0 {
		pc := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if visited[pc] {
			continue
		}
		visited[pc] = true
		switch inst := &m.prog.Inst[pc]; inst.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			stack = append(stack, inst.Arg, inst.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(inst.Arg)&^holds == 0 {
				stack = append(stack, inst.Out)
			}
		case syntax.InstCapture, syntax.InstNop:
			stack = append(stack, inst.Out)
		case syntax.InstMatch:
			next.matches = true
			if !m.isBackward { // what is left on the stack is preferred less
				next.isOver, stack = true, nil
			}
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			if r != noRune && !entered[inst.Out] && inst.MatchRune(r) {
				entered[inst.Out] = true
				next.insts = append(next.insts, inst.Out)
			}
		}
	}
	if m.isBackward { // the order says nothing
		slices.Sort(next.insts)
	}
	return next
}

// after returns the state that follows s after a character, or nil; see step.
func (m *machine) after(s *state, r rune) (next *state) {
	switch {
	case r == noRune:
		next = s.end
	case r < utf8.RuneSelf:
		next = s.next[r]
	default:
		next = s.wide[r]
	}
	if next == nil {
		next = m.step(s, r)
	}
	return next
}

// run reads a text from a position on, and returns where the first match ends, or -1. If any is true, the end of any
// match will do. known is false when the time is over, or the machine useless.
func (m *machine) run(text []byte, pos int, any bool) (end int, known bool) {
	end = -1
	s := m.start(runeBefore(text, pos))
	for i, size := pos, 0; i < len(text); i += size {
		r := rune(text[i])
		var next *state
		if size = 1; r < utf8.RuneSelf {
			if next = s.next[r]; next == nil {
				next = m.step(s, r)
			}
		} else {
			r, size = utf8.DecodeRune(text[i:])
			next = m.after(s, r)
		}
		if next == nil {
			return -1, false
		}
		if s = next; s.isNews {
			if s.matches {
				end = i
			}
			if any && s.matches || len(s.insts) == 0 {
				return end, true
			}
		}
	}
	if s = m.after(s, noRune); s == nil {
		return -1, false
	}
	if s.matches {
		end = len(text)
	}
	return end, true
}

// runBack reads a text backwards from a position to another one, and returns where the longest match begins that ends
// there. known is false when the time is over, or the machine useless.
func (m *machine) runBack(text []byte, to, pos int) (from int, known bool) {
	after := rune(noRune)
	if pos < len(text) {
		after, _ = utf8.DecodeRune(text[pos:])
	}
	from = -1
	s := m.start(after)
	for {
		r, size := rune(noRune), 0
		if pos > 0 {
			r, size = utf8.DecodeLastRune(text[:pos])
		}
		if s = m.after(s, r); s == nil {
			return -1, false
		}
		if s.matches {
			from = pos
		}
		if pos <= to || len(s.insts) == 0 {
			return from, true
		}
		pos -= size
	}
}

// runeBefore returns the character before a position, or noRune.
func runeBefore(text []byte, pos int) rune {
	if pos == 0 {
		return noRune
	}
	r, _ := utf8.DecodeLastRune(text[:pos])
	return r
}

// reversed returns the expression that matches the reversed texts. Its assertions stay what they are: they are about a
// place in the text, whatever the direction is in which the text is read.
func reversed(re *syntax.Regexp) *syntax.Regexp {
	back := *re
	back.Sub = make([]*syntax.Regexp, len(re.Sub))
	for i, sub := range re.Sub {
		back.Sub[i] = reversed(sub)
	}
	switch re.Op {
	case syntax.OpConcat:
		slices.Reverse(back.Sub)
	case syntax.OpLiteral:
		back.Rune = slices.Clone(re.Rune)
		slices.Reverse(back.Rune)
	}
	return &back
}
