package teammate

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/prompt"
	"muster/internal/text"
	"muster/llm"
	"muster/llm/repair"
)

// Counts at which a limit acts.
const (
	phaseTurns    = 200 // of the model in a phase, unless the settings say another number
	repeatWarn    = 3   // times that the same calls came in turn: a reminder
	repeatEnd     = 6   // times that the same calls came in turn: the end of the phase
	maxReminders  = 1   // reminders of the claimed task in a phase
	maxCutReplies = 3   // replies cut at their length limit that are asked to go on
)

var (
	errTurns = errors.New("the turn limit of this phase")
	errMute  = errors.New("two replies in a row that were empty or refused")
	errLoop  = errors.New("a loop: the same calls with the same results six times in a row")
	// errMistakes stands before what is wrong with the calls.
	errMistakes = errors.New("calls that cannot be read")
)

func isLimit(err error) bool {
	return slices.ContainsFunc([]error{errTurns, errStandstill, errLoop, errMute, errMistakes},
		func(limit error) bool { return errors.Is(err, limit) })
}

// boundaryStep is what follows a boundary: the member goes on, reads a reminder, or its phase ends with an error.
type boundaryStep struct {
	goOn       bool
	reminder   string
	tellOthers bool // the lead or the user is to hear of a standstill
	err        error
}

// betweenRounds decides on the limits between two rounds of tools, and notes which reminders were given. maxTurns is
// the setting; if it is 0, phaseTurns and the end of a standstill hold.
func (c *counters) betweenRounds(maxTurns int) boundaryStep {
	limit := cmp.Or(maxTurns, phaseTurns)
	full := c.turns >= limit
	times, length := c.repeats.times()
	switch {
	case c.mistake != nil:
		return boundaryStep{err: fmt.Errorf("%w: %w", errMistakes, c.mistake)}
	case times >= repeatEnd:
		return boundaryStep{err: errLoop}
	case times >= repeatWarn && !c.repeats.warned:
		c.repeats.warned = true
		if full && !c.extended { // the turns are granted here too: one boundary has one reminder
			c.extended, c.turns = true, 0
		}
		if length > 1 {
			return remindStep("You made the same %d calls three times, with the same results. "+
				"Try something else.", length)
		}
		return remindStep("You made the same call three times, with the same result. Try something else.")
	case full && !c.extended:
		c.extended, c.turns = true, 0
		return remindStep("You have used %d turns. You get as many again: %s.", limit, c.whatToDo())
	case full:
		return boundaryStep{err: errTurns}
	}
	return c.still.decide(maxTurns == 0, c.whatToDo())
}

// whatToDo says what a member can do that gets nowhere.
func (c *counters) whatToDo() string {
	if c.hasTask {
		return "finish, or call release_task and say what is left"
	}
	return "finish, and answer with what you have found"
}

// isEndless reports whether the model has paused its reply too often: a paused reply goes on at once, and passes no
// boundary.
func (c *counters) isEndless(maxTurns int) bool { return c.paused > 2*cmp.Or(maxTurns, stillMore) }

// beforeStop decides whether the phase goes on though the model has called no tool. received says that mail or finished
// jobs have just entered; waits, that the member waits and has not simply stopped. The first reply that is empty or
// refuses is answered with a request to go on. The second in a row returns the task; a teammate without one may have
// nothing to say.
func (c *counters) beforeStop(received, lead bool, task muster.TaskID, waits bool) boundaryStep {
	isMute := c.stop == llm.StopRefused || c.isEmpty() && (lead || task != 0)
	if isMute && !received {
		c.mute++
		switch {
		case c.mute == 1 && c.stop == llm.StopRefused:
			return remindStep("You refused to answer. If you cannot do a part of the work, say which part and why, " +
				"and continue with the rest.")
		case c.mute == 1:
			return remindStep("Your reply was empty. Call a tool, or answer in words.")
		case task != 0 && !lead:
			return boundaryStep{err: errMute}
		}
		return boundaryStep{}
	}
	forgot := task != 0 && c.stop == llm.StopEnd && !waits && c.reminded < maxReminders
	if forgot {
		c.reminded++
	}
	cut := c.cutReplies
	if c.stop == llm.StopMax {
		c.cutReplies++
	}
	switch {
	case received:
		return boundaryStep{goOn: true}
	case c.stop == llm.StopMax && cut < maxCutReplies:
		return remindStep("Your reply was cut at its length limit and none of its calls was run. " +
			"Continue in smaller steps: make fewer calls in a reply, and write a large file in parts.")
	case forgot && lead:
		return remindStep("Task #%d is still yours. If it is done, call complete_task. If not, continue, or undo your "+
			"changes and say why it cannot be done.", task)
	case forgot:
		return remindStep("Task #%d is still yours. If it is done, call complete_task. If you cannot do it, call "+
			"release_task. If you need an answer, end with a question.", task)
	}
	return boundaryStep{}
}

func (c *counters) isEmpty() bool { return c.stop == llm.StopEnd && c.words == "" && len(c.calls) == 0 }

func remindStep(format string, args ...any) boundaryStep {
	return boundaryStep{goOn: true, reminder: prompt.Reminder("%s", fmt.Sprintf(format, args...))}
}

// cutOffReason says why the last reply of a member's model was no answer; "" when it was one.
func cutOffReason(name muster.Name, stop llm.Stop, words string) string {
	switch stop {
	case llm.StopEnd:
		if words == "" && name == muster.Lead { // a teammate may have nothing to say
			return "the lead's model gave empty replies"
		}
	case llm.StopRefused:
		return strings.TrimSpace(fmt.Sprintf("%s's model refused: %s", name, text.CutBytes(words, maxQuote)))
	case llm.StopMax:
		return string(name) + "'s reply was cut at its length limit again and again"
	}
	return ""
}

// phase guards the counters of a work phase. Tools run side by side and count too.
type phase struct{ guarded[counters] }

// counters are the facts of a work phase. They are not stored: a restarted member begins a new phase.
type counters struct {
	started    time.Time // zero: no phase has begun in this process
	over       bool      // a tool ended the phase: idle, or a complete_task that landed
	leaves     bool      // the model has agreed to shut down
	onHold     bool      // the user stopped the phase, or a limit did in a conversation: the user speaks next
	turns      int       // of the model, since the phase began or was extended
	extended   bool      // the turn limit was met once, and as many turns granted again
	lastTurnAt time.Time
	still      standstill
	stop       llm.Stop // of the last reply
	paused     int      // replies in a row that the model has paused
	words      string   // of the last reply
	cutReplies int      // replies that were cut at max_tokens
	mute       int      // replies in a row that were empty or refused
	hookStops  int      // how often a hook has made the lead go on
	reminded   int      // how often it was reminded that a task is still claimed
	usedTodo   bool     // todo was called in this round
	wrote      bool     // a tool of this round may have changed files
	hasTask    bool
	completed  int  // how often the runtime has tried to complete the task of a member that has just ended
	answered   bool // the member was asked for its answer after it had met a limit

	seen  map[callSum]bool // the results that the model has got in this phase
	fresh bool             // this round has brought one that it had not seen

	restarts int // how often in a row the conversation was made shorter because the server refused it
	replies  int // of the model, since the last time
	prompts  promptSizes

	mistakes  repair.Mistakes    // in the arguments of calls
	mistake   error              // that was made once too often
	calls     []llm.Call         // of the last reply
	results   map[string]callSum // of those that count, by the id of the call
	pending   []string           // calls that the end of this process cut off, and that records answer
	repeats   repeats
	idleWaits int // waits of the lead that returned at once, with nothing done in between
}

func (p *phase) end()   { p.change(func(c *counters) { c.over = true }) }
func (p *phase) leave() { p.change(func(c *counters) { c.leaves = true }) }

// extend begins the count of turns anew. The lead's phase lasts from a wake to its next wait, claim or end.
func (p *phase) extend() { p.change(func(c *counters) { c.turns, c.extended = 0, false }) }

func (p *phase) noteOpen(call string) {
	p.change(func(c *counters) { c.pending = append(c.pending, call) })
}

// noteShorter notes that the conversation became shorter: a server that counts fewer tokens now has cut nothing.
func (p *phase) noteShorter() { p.change(func(c *counters) { c.prompts = promptSizes{} }) }

func (p *phase) countWait(slept, mail bool) error {
	var isLoop bool
	if p.change(func(c *counters) { isLoop = c.countWait(slept, mail) }); isLoop {
		return errLoop // told the same again and again, the lead does nothing about it
	}
	return nil
}

// countReply counts a reply, and keeps its calls until their results come.
func (c *counters) countReply(r llm.Reply, ownsTodo func(llm.Call) bool) {
	c.calls, c.results = r.Message.Calls(), map[string]callSum{}
	c.mistake = c.mistakes.Count(c.calls)
	c.stop, c.words = r.Stop, textOf(r.Message)
	if c.paused++; c.stop != llm.StopPaused {
		c.paused = 0
	}
	if c.stop != llm.StopRefused && !c.isEmpty() {
		c.mute = 0
	}
	c.usedTodo = c.usedTodo || slices.ContainsFunc(c.calls, ownsTodo)
	c.replies++
}

// countResult notes the result of a call, unless its tool polls. Repeats are counted at the end of the round.
func (c *counters) countResult(r llm.Result, effects map[string]toolEffects) {
	i := slices.IndexFunc(c.calls, func(call llm.Call) bool { return call.ID == r.ID })
	if i < 0 || effects[c.calls[i].Name].polls {
		return
	}
	c.idleWaits = 0
	c.still.noteCall(effects[c.calls[i].Name], r.IsError)
	c.wrote = c.wrote || effects[c.calls[i].Name].files
	var b bytes.Buffer
	for _, part := range r.Parts {
		_ = json.NewEncoder(&b).Encode(part) // a part that does not encode only counts as equal
	}
	if said := sha256.Sum256(b.Bytes()); !r.IsError && b.Len() >= minRead && !c.seen[said] {
		if c.seen == nil {
			c.seen = map[callSum]bool{}
		}
		c.seen[said], c.fresh = true, true
	}
	fmt.Fprintf(&b, "%s\x00%s\x00", c.calls[i].Name, c.calls[i].Input)
	c.results[r.ID] = sha256.Sum256(b.Bytes())
}

func (c *counters) countRound(jobsRun bool) {
	// Without a task, to read what was not read yet is the work.
	c.still.changed = c.still.changed || c.fresh && !c.hasTask
	c.fresh = false
	for _, call := range c.calls { // tools that only read run side by side: their order is that of the calls
		if sum, counts := c.results[call.ID]; counts {
			c.repeats.count(sum)
		}
	}
	// A member that only asks after its jobs waits for them.
	if len(c.results) > 0 || !jobsRun {
		c.still.countRound(c.calls)
	}
	c.results = nil
}

// minRead is how many bytes a result must have to count as something read: a shorter one may say that there is nothing.
const minRead = 200

type callSum [sha256.Size]byte

const maxPattern = 3

// repeats finds calls that come again in turn with the same results: one, or a pattern of up to maxPattern.
type repeats struct {
	last   [maxPattern]callSum // the last calls, the newest first
	equal  [maxPattern]int     // of a pattern of i+1 calls: calls in a row that were as i+1 calls before
	warned bool                // of this pattern
}

func (r *repeats) count(sum callSum) {
	for i, before := range r.last {
		if r.equal[i]++; sum != before {
			r.equal[i] = 0
		}
	}
	copy(r.last[1:], r.last[:])
	r.last[0] = sum
	if times, _ := r.times(); times < repeatWarn {
		r.warned = false
	}
}

func (r *repeats) times() (times, length int) {
	for i, n := range r.equal {
		if t := 1 + n/(i+1); t > times {
			times, length = t, i+1
		}
	}
	return times, length
}

// countWait counts a wait of the lead, and reports whether too many have returned at once. One that has slept begins a
// new phase: the lead's lasts from a wake to its next wait, claim or end.
func (c *counters) countWait(slept, mail bool) (isLoop bool) {
	switch {
	case slept:
		c.turns, c.extended, c.idleWaits = 0, false, 0
	case !mail:
		c.idleWaits++
		return c.idleWaits >= repeatEnd
	}
	return false
}

func (c *counters) idleReason(asks bool, latest muster.Member) muster.IdleReason {
	switch {
	case asks:
		return muster.IdleMessages
	case c.over:
		return muster.IdleTasks
	case c.started.IsZero() && latest.Status == muster.Idle: // it was idle before this process began
		return latest.IdleReason
	}
	return muster.IdleNoToolUse
}

// minReplies is how many replies a conversation that was made shorter must have had before it counts as one that was
// not.
const minReplies = 3

func (c *counters) recentRestarts() int {
	if c.replies >= minReplies {
		return 0
	}
	return c.restarts
}

// Counts of a standstill, in rounds of tools.
const (
	stillRemind = 25  // the member is reminded
	stillTell   = 30  // the lead is told, or the user if it is the lead
	stillMore   = 50  // as many rounds are granted once more
	stillEnd    = 100 // the end of the phase
)

var errStandstill = errors.New("a standstill: 100 rounds of tools without a change in files, board or mail")

// standstill counts the rounds of tools in which the member has changed nothing in files, board or mail, has got no
// mail, and without a task has read nothing new. It outlasts the phase: a member that its own jobs wake could go on for
// ever. It is not stored.
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

// decide decides what follows between two rounds. ends says that the standstill may end the phase, and whatToDo what
// the member can do.
func (s *standstill) decide(ends bool, whatToDo string) (step boundaryStep) {
	const begin = "You have had %d rounds of tools without a change in files, board or mail. "
	step.goOn = true
	switch {
	case ends && s.rounds >= stillEnd:
		return boundaryStep{err: errStandstill}
	case ends && s.rounds >= stillMore && !s.extended:
		s.extended, s.reminded = true, true
		step = remindStep(begin+"You get as many again: %s.", s.rounds, whatToDo)
	case s.rounds >= stillRemind && !s.reminded && !s.onlyReads:
		s.reminded = true
		step = remindStep(begin+"If you have what you need, begin. If you cannot continue, say why.", s.rounds)
	}
	step.tellOthers = s.rounds >= stillTell && !s.told && (!s.onlyReads || s.rounds >= stillMore)
	s.told = s.told || step.tellOthers
	return step
}

// noteChange notes a change in files, board or mail that no call of a tool has made.
func (p *phase) noteChange() { p.change(func(c *counters) { c.still.changed = true }) }
