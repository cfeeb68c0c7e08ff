package teammate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/failpoint"
	"muster/internal/prompt"
	"muster/journal"
	"muster/llm"
	"muster/loop"
)

// session is the member's conversation as the loop works on it: it brings in the mail, and
// keeps the limits.
type session struct{ *self }

// Request returns what to send now. System and tools stay the same byte for byte, and
// messages are only appended to, so that the model's provider can cache the prefix.
func (s session) Request(ctx context.Context) (llm.Request, error) {
	p, messages := s.toolbox.get(), s.conversation.script.Messages()
	if err := loop.CheckSize(messages); err != nil {
		return llm.Request{}, err
	}
	var turn int
	s.phase.change(func(c *counters) {
		c.turns++
		c.lastTurnAt = time.Now()
		turn = c.turns
	})
	s.presence.event(ctx, journal.TurnStarted, map[string]any{"turn": turn, "turns": s.presence.turns.Add(1)})
	return llm.Request{System: p.system, Tools: p.specs, Messages: messages,
		MaxTokens: s.Limits.MaxTokens, CacheKey: s.agentID(), CacheGroup: s.cacheGroup(),
		CacheLong: s.mayWaitLong(ctx)}, nil
}

// Append makes a finished reply durable, before any of its calls begins, and meters it. The
// counters and the events follow the transcript: a crash in between loses numbers only.
func (s session) Append(ctx context.Context, r llm.Reply) error {
	var isCut bool
	if s.phase.change(func(c *counters) { isCut = c.prompts.isCut(r) }); isCut {
		s.Emit(loop.ReplyDiscarded{})
		return llm.Errorf(llm.ContextFull, "the model's server leaves out a part of the conversation: "+
			"it counts fewer tokens though there are more")
	}
	if err := s.conversation.script.Reply(ctx, r); err != nil {
		return err
	}
	failpoint.Hit("teammate.replied")
	var now counters
	s.phase.change(func(c *counters) {
		c.countReply(r, s.todo.Owns)
		now = *c
	})
	// From here on a crash leaves calls without results. They are answered when the member
	// starts again; see answerCalls.
	s.presence.onModelReply(ctx)
	s.presence.event(ctx, journal.TurnEnded, usageFields(r, map[string]any{"turn": now.turns,
		"seconds": seconds(time.Since(now.lastTurnAt))}))
	if now.isEndless(s.Limits.Turns) {
		return errTurns
	}
	return nil
}

// Answer makes the result of one call durable. A call that the end of the process cut off
// stays open if records answer it: the process that takes the conversation over asks them. An
// answer now would say "interrupted" of a call whose outcome is on record.
func (s session) Answer(ctx context.Context, r llm.Result) error {
	p := s.toolbox.get()
	var isPending bool
	s.phase.change(func(c *counters) {
		if isPending = slices.Contains(c.pending, r.ID); !isPending {
			c.countResult(r, p.polls)
		}
	})
	if isPending {
		return nil
	}
	defer failpoint.Hit("teammate.answered")
	return s.conversation.script.Result(ctx, r)
}

// Boundary is where things from outside enter the conversation, and limits act.
func (s session) Boundary(ctx context.Context, b loop.Boundary) (bool, error) {
	if err := context.Cause(ctx); err != nil {
		return false, err
	}
	// A round of tools that has ended the phase is its last one: no mail is taken that nobody
	// would read before the next phase.
	if c := s.phase.get(); c.leaves || c.over {
		return false, nil
	}
	deliver := s.conversation.deliver
	if b == loop.BeforeStop { // what wakes no idle model does not keep this one going either
		deliver = s.conversation.deliverWaking
	}
	received, err := deliver(ctx)
	if err != nil {
		return false, err
	}
	announced, err := s.conversation.announceJobs(ctx)
	if err != nil {
		return false, err
	}
	step := s.decideBoundary(b, received || announced)
	if b == loop.BeforeStop && step == (boundaryStep{}) && s.phase.get().stop == llm.StopEnd {
		if text := s.scratch.reminder(ctx); text != "" {
			step = remindStep("%s", text)
		}
	}
	if step.reminder != "" {
		if err := s.conversation.say(ctx, nil, step.reminder); err != nil {
			return false, err
		}
	}
	return step.goOn, step.err
}

// decideBoundary decides from the phase's counters what follows at a boundary.
func (s session) decideBoundary(b loop.Boundary, received bool) (step boundaryStep) {
	task, _ := s.claims.CurrentTask()
	waits := s.waits()
	s.phase.change(func(c *counters) {
		if b == loop.BeforeStop {
			step = c.beforeStop(received, s.isLead(), task.ID, waits)
			return
		}
		if step = c.betweenRounds(s.Limits.Turns); step.reminder == "" && step.err == nil {
			if text, due := s.todo.Round(c.usedTodo); due {
				step.reminder = prompt.Reminder("%s", text)
			}
		}
		c.usedTodo = false
	})
	return step
}

// waits reports whether the member waits for something and has not simply stopped. A lead that
// was told that nothing can move knows its task.
func (s *self) waits() bool {
	return len(s.presence.openQuestions()) > 0 || s.jobs.Running() > 0 || s.lead.toldStuck
}

// Counts at which a limit acts.
const (
	repeatWarn    = 3 // equal calls in a row: a reminder
	repeatEnd     = 6 // equal calls in a row: the end of the phase
	maxReminders  = 2 // reminders of the claimed task in a phase
	maxCutReplies = 3 // replies cut at their length limit that are asked to go on
)

var (
	errTurns = errors.New("the turn limit of this phase")
	errMute  = errors.New("two replies in a row that were empty or refused")
	errLoop  = errors.New("a loop: the same call with the same result six times in a row")
)

// boundaryStep is what a member does at a boundary, decided from its counters: it goes on or
// not, reads a reminder, or its phase ends with an error.
type boundaryStep struct {
	goOn     bool
	reminder string
	err      error
}

// betweenRounds decides on the limits between two rounds of tools, and notes in the counters
// which reminders were given. limit is the number of turns in a phase; 0 is no limit.
func (c *counters) betweenRounds(limit int) boundaryStep {
	full := limit > 0 && c.turns >= limit
	switch {
	case c.repeats >= repeatEnd:
		return boundaryStep{err: errLoop}
	case c.repeats >= repeatWarn && !c.warned:
		c.warned = true
		if full && !c.extended { // the turns are granted here too: one boundary has one reminder
			c.extended, c.turns = true, 0
		}
		return remindStep("You made the same call three times with the same result. Do something else.")
	case full && !c.extended:
		c.extended, c.turns = true, 0
		return remindStep("You have used %d turns. You get as many once more: finish, or give the task back with "+
			"release_task and say what is left.", limit)
	case full:
		return boundaryStep{err: errTurns}
	}
	return boundaryStep{goOn: true}
}

// isEndless reports whether the model has paused its reply so often that the phase must end:
// a paused reply is asked to go on at once, and passes no boundary.
func (c *counters) isEndless(limit int) bool {
	return c.stop == llm.StopPaused && limit > 0 && c.turns > 2*limit
}

// beforeStop decides whether the phase goes on though the model has called no tool. received
// says that mail or finished jobs have just entered the conversation; task is the claimed
// task, if there is one; waits says that the member waits for something and has not simply
// stopped. The first reply that is empty or refuses is answered with a request to go on. The
// second in a row returns the task; a teammate without one may have nothing to say.
func (c *counters) beforeStop(received, lead bool, task muster.TaskID, waits bool) boundaryStep {
	isMute := c.stop == llm.StopRefused || c.isEmpty() && (lead || task != 0)
	if isMute && !received {
		c.mute++
		switch {
		case c.mute == 1 && c.stop == llm.StopRefused:
			return remindStep("You refused to answer. If a part of the work cannot be done, say which and why, and " +
				"go on with the rest.")
		case c.mute == 1:
			return remindStep("Your reply was empty. Go on: call a tool, or say in words how things stand.")
		case task != 0 && !lead:
			return boundaryStep{err: errMute}
		}
		return boundaryStep{}
	}
	most := maxReminders
	if lead { // TellStuck is the second one
		most = 1
	}
	forgot := task != 0 && c.stop == llm.StopEnd && !waits && c.reminded < most
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
			"Go on in smaller steps: fewer calls in a reply, and a large file in pieces.")
	case forgot:
		return remindStep("Task #%d is still yours. If it is done, call complete_task; if you cannot do it, "+
			"release_task; if you wait for an answer, just end your turn.", task)
	}
	return boundaryStep{}
}

// isEmpty reports whether the last reply has ended without a word and without a call.
func (c *counters) isEmpty() bool { return c.stop == llm.StopEnd && c.words == "" && len(c.calls) == 0 }

// remindStep is a step that goes on with a reminder.
func remindStep(format string, args ...any) boundaryStep {
	return boundaryStep{goOn: true, reminder: prompt.Reminder("%s", fmt.Sprintf(format, args...))}
}

// cutOffReason says why the last reply of a member's model was no answer; it is empty when it
// was one.
func cutOffReason(name muster.Name, stop llm.Stop, text string) string {
	switch stop {
	case llm.StopEnd:
		if text == "" && name == muster.Lead { // a teammate may have nothing to say
			return "the lead's model gave empty replies"
		}
	case llm.StopRefused:
		return strings.TrimSpace(fmt.Sprintf("%s's model refused: %s", name, clip(text, maxQuote)))
	case llm.StopMax:
		return string(name) + "'s reply was cut at its length limit again and again"
	}
	return ""
}

// phase is what a member counts within one work phase. Tools run side by side and count too; decisions are made
// on a copy of the counters.
type phase struct{ guarded[counters] }

// counters are the facts of a work phase. They are not stored: a restarted member begins a
// new phase.
type counters struct {
	started    time.Time // zero: no phase has begun in this process
	over       bool      // a tool ended the phase: idle, or a complete_task that landed
	leaves     bool      // the model has agreed to shut down
	onHold     bool      // the user stopped the phase, or a limit did in a conversation: the user speaks next
	turns      int       // of the model, since the phase began or was extended
	extended   bool      // the turn limit was met once, and as many turns granted again
	lastTurnAt time.Time
	stop       llm.Stop // of the last reply
	words      string   // of the last reply
	cutReplies int      // replies that were cut at max_tokens
	mute       int      // replies in a row that were empty or refused
	reminded   int      // how often it was reminded that a task is still claimed
	usedTodo   bool     // todo was called in this round

	restarted bool // the conversation was started afresh, because it had grown too long
	replies   int  // of the model, since then
	prompts   promptSizes

	calls     map[string]llm.Call // of the last reply, by id
	pending   []string            // calls that the end of this process cut off, and that records answer
	lastCall  [sha256.Size]byte   // the last counted call with its result
	repeats   int                 // how often it came in a row
	warned    bool                // of the repeats
	idleWaits int                 // waits of the lead that returned at once, with nothing done in between
}

// promptSizes are what a server has counted of the requests of one conversation. Some servers leave out the oldest
// messages of one that is too long, and say nothing.
type promptSizes struct {
	most int // tokens
	less int // requests in a row that had fewer, though the conversation only grows
}

// What is taken for a conversation that a server has cut.
const (
	minCutPrompt = 3000 // tokens; a window below is too small for any work
	minCutTimes  = 3    // requests in a row
)

// isCut reports whether the server has most probably left out a part of the conversation that r answers. Servers
// count fewer tokens for other reasons, too: those that are cached, or earlier thinking, which they do not read again.
// A reply with either says nothing, and neither does a number that is far too small.
func (p *promptSizes) isCut(r llm.Reply) bool {
	n := r.Usage.Input
	thinks := slices.ContainsFunc(r.Message.Parts, func(x llm.Part) bool { _, is := x.(llm.Thinking); return is })
	if thinks || r.Usage.Prompt() > n || n >= p.most || n < p.most/2 || n < minCutPrompt {
		*p = promptSizes{most: max(p.most, n)}
		return false
	}
	p.less++
	return p.less >= minCutTimes
}

// Idle ends this phase after the round of tools.
func (p *phase) Idle(string) { p.change(func(c *counters) { c.over = true }) }

// countReply counts a reply of the model, and keeps its calls until their results come.
// ownsTodo says whether a call is one of the todo tool.
func (c *counters) countReply(r llm.Reply, ownsTodo func(llm.Call) bool) {
	calls := r.Message.Calls()
	c.calls = map[string]llm.Call{}
	for _, call := range calls {
		c.calls[call.ID] = call
	}
	c.stop, c.words = r.Stop, textOf(r.Message)
	if c.stop != llm.StopRefused && !c.isEmpty() {
		c.mute = 0
	}
	c.usedTodo = c.usedTodo || slices.ContainsFunc(calls, ownsTodo)
	c.replies++
}

// countResult counts calls that repeat with the same result. A tool that polls is not
// counted.
func (c *counters) countResult(r llm.Result, polls func(tool string) bool) {
	call, ok := c.calls[r.ID]
	if !ok || polls(call.Name) {
		return
	}
	c.idleWaits = 0
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\x00%s\x00", call.Name, call.Input)
	for _, part := range r.Parts {
		_ = json.NewEncoder(&b).Encode(part) // a part that does not encode only counts as equal
	}
	sum := sha256.Sum256(b.Bytes())
	if sum == c.lastCall {
		c.repeats++
	} else {
		c.lastCall, c.repeats, c.warned = sum, 1, false
	}
}

// countWait counts a wait of the lead, and reports whether it is one of too many that
// returned at once. A wait that has slept begins a new phase: the lead's lasts from a wake to
// its next wait, claim or end.
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

// idleReason says why the phase ended, for the record of an idle member.
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
