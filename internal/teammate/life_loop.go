package teammate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/failpoint"
	"muster/internal/hooks"
	"muster/internal/prompt"
	"muster/internal/text"
	"muster/journal"
	"muster/llm"
	"muster/loop"
	"muster/tool"
)

// session is the Member as the loop works on it: it brings in the mail, and keeps the limits.
type session Member

// Request returns what to send now. Messages are only appended, for the provider's cache.
func (s *session) Request(ctx context.Context) (llm.Request, error) {
	p := s.toolbox.get(ctx)
	messages, err := s.compaction.fit(ctx, p)
	if err != nil {
		return llm.Request{}, err
	}
	var turn int
	s.phase.change(func(c *counters) {
		c.turns++
		c.lastTurnAt = time.Now()
		turn = c.turns
	})
	s.diary.event(ctx, journal.TurnStarted, map[string]any{"turn": turn, "turns": s.presence.turns.Add(1)})
	return s.conversation.request(ctx, p, messages), nil
}

// Append makes a reply durable, before its calls begin, and meters it. A crash in between loses numbers only.
func (s *session) Append(ctx context.Context, r llm.Reply) error {
	var isCut bool
	if s.phase.change(func(c *counters) { isCut = c.prompts.isCut(r) }); isCut {
		s.emit(loop.ReplyDiscarded{})
		return llm.Errorf(llm.ContextFull, "the model's server leaves out a part of the conversation: "+
			"it counts fewer tokens though there are more")
	}
	if err := s.conversation.reply(ctx, r); err != nil {
		return err
	}
	failpoint.Hit("teammate.replied")
	s.compaction.counted(r.Usage)
	var now counters
	s.phase.change(func(c *counters) {
		c.countReply(r, s.todo.Owns)
		now = *c
	})
	// From here on a crash leaves calls without results, which answerCalls answers.
	s.presence.onModelReply(ctx)
	s.diary.replied(ctx, r, map[string]any{"turn": now.turns, "seconds": seconds(time.Since(now.lastTurnAt))})
	if now.isEndless(s.limits.Turns) {
		return errTurns
	}
	return nil
}

// Answer makes the result of one call durable. A call that the end of the process cut off stays open if records answer
// it: an answer now would say "interrupted" of a call whose outcome is on record.
func (s *session) Answer(ctx context.Context, r llm.Result) error {
	p := s.toolbox.get(ctx)
	var isPending bool
	s.phase.change(func(c *counters) {
		if isPending = slices.Contains(c.pending, r.ID); !isPending {
			c.countResult(r, p.effects)
		}
	})
	if isPending {
		return nil
	}
	defer failpoint.Hit("teammate.answered")
	return s.conversation.answer(ctx, r)
}

func (s *session) Boundary(ctx context.Context, b loop.Boundary) (goOn bool, err error) {
	if err := context.Cause(ctx); err != nil {
		return false, err
	}
	// After a round of tools that has ended the phase no mail is taken: nobody would read it.
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
	collisions := ""
	if b == loop.BetweenRounds {
		collisions = s.collisions(ctx)
		s.noteFiles(ctx)
	}
	step := s.decideBoundary(b, received || announced)
	if b == loop.BeforeStop && step == (boundaryStep{}) && s.phase.get().stop == llm.StopEnd {
		if text := s.scratch.reminder(ctx) + s.claims.own.reminder(ctx); text != "" {
			step = remindStep("%s", text)
		} else if step, err = s.unattended(ctx); err == nil && step == (boundaryStep{}) {
			step, err = s.stopHooks(ctx)
		}
		if err != nil {
			return false, err
		}
	}
	if err := s.conversation.say(ctx, nil, collisions, step.reminder); err != nil {
		return false, err
	}
	if step.tellOthers {
		if err := s.tellStandstill(ctx); err != nil {
			return false, err
		}
	}
	return step.goOn, step.err
}

func (s *session) collisions(ctx context.Context) string {
	wrote := s.jobs.Running() > 0 // they may write at any time
	s.phase.change(func(c *counters) { wrote, c.wrote = wrote || c.wrote, false })
	return s.claims.conflicts(ctx, wrote)
}

func (s *session) decideBoundary(b loop.Boundary, received bool) (step boundaryStep) {
	task, _ := s.claims.CurrentTask()
	waits, jobsRun := (*Member)(s).waits(), s.jobs.Running() > 0
	s.phase.change(func(c *counters) {
		c.hasTask = task.ID != 0
		if b == loop.BeforeStop {
			c.still.endIfChanged()
			step = c.beforeStop(received, s.conversation.isLead(), task.ID, waits)
			return
		}
		c.countRound(jobsRun)
		if step = c.betweenRounds(s.limits.Turns); step.reminder == "" && step.err == nil {
			if text, due := s.todo.Round(c.usedTodo); due {
				step.reminder = prompt.Reminder("%s", text)
			}
		}
		c.usedTodo = false
	})
	return step
}

// promptSizes are what a server has counted of the requests of one conversation. Some servers leave out the oldest
// messages of one that is too long, and do not say so.
type promptSizes struct {
	most int // tokens
	less int // requests in a row that had fewer, though the conversation only grows
}

// What is taken for a conversation that a server has cut.
const (
	minCutPrompt = 3000 // tokens; a window below is too small for any work
	minCutTimes  = 3    // requests in a row
)

// isCut reports whether the server has most probably left out a part of the conversation that r answers. Servers count
// fewer tokens for other reasons, too: cached ones, or earlier thinking. A reply with either says nothing, and neither
// does a number that is far too small.
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

// unattended sees to a task whose owner has ended its turn in words although it was reminded of the task. What it has
// done is completed with those words as the summary; without a change the task needs attention. After a question the
// member keeps its task, and waits for the answer.
func (s *session) unattended(ctx context.Context) (step boundaryStep, err error) {
	c := s.phase.get()
	t, ok := s.claims.CurrentTask()
	if !ok || c.reminded < maxReminders || c.words == "" || asksQuestion(c.words) {
		return step, nil
	}
	if (*Member)(s).waits() || isOpen(s.talk) {
		return step, nil
	}
	hasWork := !s.claims.mayWrite // the words of one that only reads are its work
	if !hasWork {
		if hasWork, err = s.claims.worktrees.Changed(ctx, t.Worktree); err != nil {
			s.diary.dropped(ctx, "looking at the lane of a task that was not completed", err)
			return step, nil
		}
	}
	s.phase.change(func(c *counters) { c.completed++ })
	if s.limits.KeepUnattended || !hasWork || c.completed >= maxReminders { // what came back was not mended
		err := s.claims.giveUp(ctx, board.Release{By: s.record.Name, Final: true, Note: c.words,
			Reason: fmt.Sprintf("%s has ended twice without completing it", s.record.Name)})
		return step, ignoreLostClaim(err)
	}
	r, err := s.claims.Complete(ctx, t.ID, c.words)
	if err != nil {
		r, err = tool.FromError(tool.Classify(err))
	}
	if err != nil || !r.IsError {
		return step, err
	}
	return remindStep("You ended twice without complete_task, so the runtime called it for task #%d. It failed: "+
		"%s", t.ID, text.EscapeTags(r.Text())), nil
}

// asksQuestion reports whether words end with a question.
func asksQuestion(words string) bool {
	words = strings.TrimRight(words, " \n\t*_\"')")
	return strings.HasSuffix(words, "?") || strings.HasSuffix(words, "？")
}

func (s *session) stopHooks(ctx context.Context) (step boundaryStep, err error) {
	c := s.phase.get()
	if !s.conversation.isLead() || c.hookStops == maxHookStops {
		return step, nil
	}
	o, err := s.hooks.run(ctx, hooks.Stop, "", nil, stopFields(c.hookStops > 0, c.words))
	if err == nil && o.Blocked {
		s.phase.change(func(c *counters) { c.hookStops++ })
		step = remindStep("A hook of the user asks you to continue: %s",
			text.EscapeTags(o.Reason))
	}
	return step, err
}

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
	text := fmt.Sprintf("%s has had %d rounds of tools without a change in files, board or mail", s.record.Name,
		still.rounds)
	t, busy := s.claims.CurrentTask()
	if busy {
		text += fmt.Sprintf(", with task #%d (%s) in hand", t.ID, t.Subject)
	}
	text += ". Its last calls: " + strings.Join(still.last, "; ") + "."
	if s.conversation.isLead() {
		return s.diary.note(ctx, t.ID, text)
	}
	return s.diary.tellLead(ctx, muster.MailError, t.ID,
		text+" Call send_message to say what it should do, or request_shutdown to stop it.")
}
