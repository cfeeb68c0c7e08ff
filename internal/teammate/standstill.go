package teammate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"muster"
	"muster/internal/text"
	"muster/llm"
)

// Counts of a standstill, in rounds of tools.
const (
	stillRemind = 10  // the member is reminded
	stillTell   = 30  // the lead is told, or the user if it is the lead
	stillMore   = 50  // as many rounds are granted once more
	stillEnd    = 100 // the end of the phase
)

var errStandstill = errors.New("a standstill: 100 rounds of tools without a change in files, board or mail")

// standstill counts the rounds of tools in which the member has changed nothing in files, board or mail, and has got no
// mail. It outlasts the phase: a member that its own jobs wake could go on for ever. It is not stored.
type standstill struct {
	onlyReads bool // to read on is the member's work: nobody is told before the first limit on the rounds
	rounds    int
	reminded  bool
	told      bool // somebody else
	extended  bool
	changed   bool     // something, in this round
	mayWrite  bool     // since the last look at the files something ran that may have changed some
	last      []string // the last calls
}

// What is told of the last calls.
const (
	maxLastCalls = 3
	maxLastCall  = 120 // bytes of each
)

func (s *standstill) noteCall(e toolEffects, failed bool) {
	s.changed = s.changed || e.records && !failed
	s.mayWrite = s.mayWrite || e.files // also one that has failed
}

func (s *standstill) endIfChanged() bool {
	changed := s.changed
	if changed {
		*s = standstill{mayWrite: s.mayWrite, onlyReads: s.onlyReads}
	}
	return changed
}

func (s *standstill) countRound(calls []llm.Call) {
	if s.endIfChanged() {
		return
	}
	s.rounds++
	for _, c := range calls {
		s.last = append(s.last, strings.TrimSpace(c.Name+" "+text.CutBytes(Gist(c), maxLastCall)))
	}
	s.last = slices.Clone(s.last[max(0, len(s.last)-maxLastCalls):])
}

func (s *standstill) isDue() bool {
	n := s.rounds + 1
	return n >= stillEnd || n >= stillRemind && !s.reminded || n >= stillTell && !s.told ||
		n >= stillMore && !s.extended
}

// decide decides what follows between two rounds. ends says that the standstill may end the phase.
func (s *standstill) decide(ends bool) (step boundaryStep) {
	const begin = "You have had %d rounds of tools without a change in files, board or mail. "
	step.goOn = true
	switch {
	case ends && s.rounds >= stillEnd:
		return boundaryStep{err: errStandstill}
	case ends && s.rounds >= stillMore && !s.extended:
		s.extended, s.reminded = true, true
		step = remindStep(begin+"You get as many once more: finish, or give the task back with release_task and say "+
			"what is left.", s.rounds)
	case s.rounds >= stillRemind && !s.reminded && !s.onlyReads:
		s.reminded = true
		step = remindStep(begin+"If you have what you need, begin. If you cannot go on, say why.", s.rounds)
	}
	step.tellOthers = s.rounds >= stillTell && !s.told && (!s.onlyReads || s.rounds >= stillMore)
	s.told = s.told || step.tellOthers
	return step
}

// noteChange notes a change in files, board or mail that no call of a tool has made.
func (p *phase) noteChange() { p.change(func(c *counters) { c.still.changed = true }) }

// noteFiles notes whether the files of the lane have changed since the last look. Before a limit acts it always looks.
func (s *session) noteFiles(ctx context.Context) {
	still := s.phase.get().still
	if !still.mayWrite {
		return
	}
	if changed, ok := s.claims.lookAtFiles(ctx, still.isDue()); ok {
		s.phase.change(func(c *counters) {
			c.still.changed = c.still.changed || changed
			c.still.mayWrite = s.jobs.Running() > 0 // they may write after this look
		})
	}
}

// tellStandstill mails the lead that the member changes nothing. The lead's own standstill is for the user to see.
func (s *session) tellStandstill(ctx context.Context) error {
	still := s.phase.get().still
	text := fmt.Sprintf("%s has had %d rounds of tools without a change in files, board or mail", s.life().name(),
		still.rounds)
	t, busy := s.claims.CurrentTask()
	if busy {
		text += fmt.Sprintf(", with task #%d (%s) in hand", t.ID, t.Subject)
	}
	text += ". Its last calls: " + strings.Join(still.last, "; ") + "."
	if s.life().isLead() {
		return s.diary.note(ctx, t.ID, text)
	}
	return s.diary.tellLead(ctx, muster.MailError, t.ID,
		text+" Tell it how to go on with send_message, or have it give up with request_shutdown.")
}
