package teammate

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"muster"
	"muster/internal/compact"
	"muster/internal/failpoint"
	"muster/internal/mailbox"
	"muster/internal/prompt"
	"muster/internal/requests"
	"muster/internal/text"
	"muster/internal/tool/code"
	"muster/internal/transcript"
	"muster/journal"
	"muster/llm"
)

// conversation is what the member's model reads: the transcript, and the mail that enters it. Its methods are for the
// goroutine of Live, but for those that say otherwise.
type conversation struct {
	record     muster.Member // as it was when this life began
	team       muster.Name
	maxTokens  int // in a reply
	run        func(context.Context) (muster.Run, error)
	log        muster.Log
	post       *mailbox.Mail
	requests   *requests.Requests
	talk       Talk
	jobs       *code.Jobs
	compaction *compaction
	tasks      holder
	isAlone    func(context.Context) bool // the member is a lead without a team
	diary      *diary
	status     status
	phase      changes
	askHooks   func(ctx context.Context, words string) (said, refused string, err error)
	hasAnswer  func(muster.RequestID) bool // a tool has returned the answer to the request

	script *transcript.Transcript // nil until the member has started
	inbox  muster.Pos             // up to where the inbox was read
}

// What the conversation uses of the other parts of the member.
type (
	status interface {
		Me() muster.Member
		setStatus(ctx context.Context, s muster.MemberStatus, why muster.IdleReason, doing string) error
		checkHost(context.Context) error
		noteAnswers([]muster.Message)
		onModelReply(context.Context)
	}
	changes interface {
		noteChange()
		noteShorter()
	}
)

const shortConversation = 4 // how few messages a conversation may have before the member is told again who it is

func (v *conversation) isLead() bool { return v.record.Name == muster.Lead }

func (v *conversation) identity() string {
	return prompt.Identity(v.record.Name, v.record.Role, v.team)
}

// prompt returns what the member was spawned with. A teammate's is escaped; the lead's is the runtime's own.
func (v *conversation) prompt() string {
	if v.isLead() {
		return v.record.Prompt
	}
	return text.EscapeTags(v.record.Prompt)
}

// open opens the transcript and makes this process its writer: a former host can append nothing more. The former host
// may be stopped, or this process itself, awake again; so the record is read once more. It is Fenced when another
// process hosts the member by now.
func (v *conversation) open(ctx context.Context) error {
	const maxTries = 10
	for try := 1; ; try++ {
		t, err := transcript.Open(ctx, v.log, v.record.Name)
		if err != nil {
			return err
		}
		if t.Pos() == 0 {
			v.script = t
			return nil
		}
		if err = t.TakeOver(ctx, v.record.Host); err == nil {
			v.script = t
			return v.status.checkHost(ctx)
		}
		if !errors.Is(err, muster.ErrFenced) || try == maxTries {
			return err
		}
	}
}

// request returns a request with messages. All of a member's requests are made here, and those of a role begin alike.
func (v *conversation) request(ctx context.Context, p *profile, messages []llm.Message) llm.Request {
	return llm.Request{System: p.system, Tools: p.specs, Messages: messages, MaxTokens: v.maxTokens,
		CacheKey: agentID(v.record.Name, v.team), CacheGroup: string(v.team) + "/" + v.record.Role,
		CacheLong: v.mayWaitLong(ctx)}
}

// mayWaitLong reports whether the next request may come after providers have dropped what they cached. A lead waits for
// its team or the user, unless it works on a task of its own.
func (v *conversation) mayWaitLong(ctx context.Context) bool {
	if _, works := v.tasks.CurrentTask(); works || !v.isLead() {
		return false
	}
	return !v.isAlone(ctx) || isOpen(v.talk)
}

// say appends the runtime's words. marks are noted in the same entry: after a crash it is known if they were said.
func (v *conversation) say(ctx context.Context, marks []muster.MessageID, texts ...string) error {
	return v.enter(ctx, false, marks, texts)
}

func (v *conversation) remind(ctx context.Context, format string, args ...any) error {
	return v.say(ctx, nil, prompt.Reminder(format, args...))
}

// enter writes texts as one message, without the empty ones, in a new conversation if afresh.
func (v *conversation) enter(ctx context.Context, afresh bool, marks []muster.MessageID, texts []string) error {
	var parts []llm.Part
	for _, t := range texts {
		if t != "" {
			parts = append(parts, llm.Text{Text: t})
		}
	}
	if len(parts) == 0 {
		return nil
	}
	// The words and the marks are one entry, so that a crash cannot part them.
	defer failpoint.Hit("teammate.told")
	if afresh {
		return v.script.Fresh(ctx, parts, marks)
	}
	return v.script.User(ctx, parts, marks)
}

// wake shows that an idle member is at work before it takes mail, and says who it is if that was lost.
func (v *conversation) wake(ctx context.Context) error {
	if err := v.status.setStatus(ctx, muster.Working, "", ""); err != nil {
		return err
	}
	if n := len(v.script.Messages()); n > 0 && n < shortConversation {
		return v.say(ctx, nil, v.identity())
	}
	return nil
}

// openingMark is noted with the opening words: the goal of this run to the lead, or the prompt of this spawn. The
// prompt alone would not do: a member may be spawned again with the same words.
func (v *conversation) openingMark(ctx context.Context) (muster.MessageID, error) {
	if v.isLead() {
		run, err := v.run(ctx)
		return openingOf(run), err
	}
	sum := crc32.ChecksumIEEE([]byte(v.record.Prompt))
	return muster.MessageID(fmt.Sprintf("spawn-%08x%s", sum, v.script.LastMark())), nil
}

func openingOf(run muster.Run) muster.MessageID {
	return muster.MessageID(fmt.Sprintf("run-%.6f", run.StartedAt))
}

func (v *conversation) markLeft(ctx context.Context) error {
	if v.script == nil {
		return nil
	}
	return v.script.Mark(ctx, fmt.Sprintf("left-%d", v.status.Me().Epoch))
}

func (v *conversation) hasRead(id muster.MessageID) bool             { return v.script.Delivered(id) }
func (v *conversation) isEmpty() bool                                { return len(v.script.Messages()) == 0 }
func (v *conversation) reply(ctx context.Context, r llm.Reply) error { return v.script.Reply(ctx, r) }

func (v *conversation) answer(ctx context.Context, r llm.Result) error {
	return v.script.Result(ctx, r)
}

func (v *conversation) unanswered() []llm.Call { return v.script.Unanswered() }

// repliedAt returns when the model replied last; 0: not yet, as far as is known.
func (v *conversation) repliedAt() float64 {
	if v.script == nil {
		return 0
	}
	return v.script.RepliedAt()
}

func (v *conversation) last() (m llm.Message) {
	if messages := v.script.Messages(); len(messages) > 0 {
		m = messages[len(messages)-1]
	}
	return m
}

// hasText reports whether messages have the text, by themselves or in a result.
func hasText(messages []llm.Message, text string) bool {
	has := func(parts llm.Parts) bool { return strings.Contains(parts.Text(), text) }
	return slices.ContainsFunc(messages, func(m llm.Message) bool {
		return has(m.Parts) || slices.ContainsFunc(m.Parts, func(p llm.Part) bool {
			r, isResult := p.(llm.Result)
			return isResult && has(r.Parts)
		})
	})
}

func (v *conversation) owesReply() bool { return v.last().Role == llm.User }

func (v *conversation) announceJobs(ctx context.Context) (bool, error) {
	done := v.jobs.Finished()
	if len(done) == 0 {
		return false, nil
	}
	return true, v.say(ctx, nil, code.Render(done))
}

const maxDelivery = 64 << 10 // how many bytes of mail enter at one boundary

// deliver moves pending mail into the conversation and reports whether some was new. The transcript comes first, then
// the inbox: after a crash in between the transcript says that it was delivered.
func (v *conversation) deliver(ctx context.Context) (bool, error) {
	msgs, end, waiting, err := v.post.Peek(ctx, v.record.Name, v.inbox, maxDelivery)
	if err != nil || len(msgs) == 0 {
		return false, err
	}
	fresh := v.fresh(ctx, msgs)
	// What the user asks of the runtime is no mail to the model. After a crash the user asks again.
	for i := len(fresh) - 1; i >= 0; i-- {
		if isAsk(fresh[i]) {
			if err := v.compaction.do(ctx, fresh[i]); err != nil {
				return false, err
			}
			fresh = slices.Delete(fresh, i, i+1)
		}
	}
	fresh, said, err := v.submit(ctx, fresh)
	if err != nil {
		return false, err
	}
	if len(fresh) > 0 {
		for i, msg := range fresh {
			if fresh[i], err = v.recordRequest(ctx, msg); err != nil {
				return false, err
			}
		}
		text := strings.TrimSpace(mailbox.Render(fresh, waiting) + "\n" + said)
		if err := v.script.Deliver(ctx, text, fresh); err != nil {
			return false, err
		}
		failpoint.Hit("teammate.told")
		v.phase.noteChange()
		v.diary.event(ctx, journal.MailDelivered, map[string]any{"count": len(fresh)})
		for _, msg := range fresh {
			if v.isLead() && v.talk != nil && msg.From == muster.User {
				v.talk.Heard(msg.ID) // the user sees that the lead has read it
			}
		}
	}
	// The mail is in the transcript. After a crash before the drop, fresh leaves it out.
	failpoint.Hit("teammate.delivered")
	if err := v.post.Drop(ctx, v.record.Name, end); err != nil {
		return false, err
	}
	failpoint.Hit("teammate.dropped")
	v.inbox = end
	v.status.noteAnswers(fresh)
	return len(fresh) > 0, nil
}

// recordRequest makes a request of a mail that asks for something. A repetition after a crash finds the record.
func (v *conversation) recordRequest(ctx context.Context, msg muster.Message) (muster.Message, error) {
	if msg.Type != muster.MailPlan && msg.Type != muster.MailShutdown {
		return msg, nil
	}
	r, isRequest, err := v.requests.FromMail(ctx, msg, v.record.Name)
	if isRequest {
		msg.RequestID = r.ID
	}
	return msg, err
}

// deliverWaking delivers all mail if some of it is worth waking a model for. Status news alone stays in the inbox.
func (v *conversation) deliverWaking(ctx context.Context) (bool, error) {
	if wakes, err := v.hasWakingMail(ctx); err != nil || !wakes {
		return false, err
	}
	return v.deliver(ctx)
}

// hasWakingMail reports whether mail waits that an idle model should read. It drops mail that is void.
func (v *conversation) hasWakingMail(ctx context.Context) (bool, error) {
	msgs, err := v.post.Waking(ctx, v.record.Name, v.inbox)
	if err != nil || len(msgs) == 0 {
		return false, err
	}
	if len(v.fresh(ctx, msgs)) > 0 {
		return true, nil
	}
	_, err = v.deliver(ctx)
	return false, err
}

func (v *conversation) hasOnlyAsks(ctx context.Context) (bool, error) {
	fresh, err := v.waking(ctx)
	return len(fresh) > 0 && !slices.ContainsFunc(fresh, func(m muster.Message) bool { return !isAsk(m) }), err
}

func (v *conversation) waking(ctx context.Context) ([]muster.Message, error) {
	msgs, err := v.post.Waking(ctx, v.record.Name, v.inbox)
	return v.fresh(ctx, msgs), err
}

func (v *conversation) landings(ctx context.Context) ([]muster.Message, error) {
	msgs, err := v.post.Landings(ctx, v.record.Name, v.inbox)
	return v.fresh(ctx, msgs), err
}

// submit returns the mails that the hooks let through, with what they say. The user is told of the others.
func (v *conversation) submit(
	ctx context.Context, msgs []muster.Message,
) (kept []muster.Message, said string, err error) {
	if !v.isLead() {
		return msgs, "", nil
	}
	for _, msg := range msgs {
		if msg.From != muster.User {
			kept = append(kept, msg)
			continue
		}
		text, refused, err := v.askHooks(ctx, msg.Content)
		if err != nil {
			return nil, "", err
		}
		if refused == "" {
			kept, said = append(kept, msg), strings.TrimSpace(said+"\n"+text)
			continue
		}
		err = v.diary.note(ctx, 0, "a hook refused what you said: "+refused)
		v.diary.dropped(ctx, "noting a refused message", err)
		if v.talk != nil {
			v.talk.Heard(msg.ID)
		}
	}
	return kept, said, nil
}

func (v *conversation) watch(ctx context.Context) <-chan struct{} {
	return v.post.Watch(ctx, v.record.Name)
}

// isAsk reports whether a mail asks for something that the runtime does. No model reads it.
func isAsk(m muster.Message) bool {
	return m.From == muster.User && (m.Type == muster.MailCompact || m.Type == muster.MailClear)
}

// fresh returns the mails that the conversation does not have and that still say something.
func (v *conversation) fresh(ctx context.Context, msgs []muster.Message) []muster.Message {
	return slices.DeleteFunc(slices.Clone(msgs), func(msg muster.Message) bool {
		return v.script.Delivered(msg.ID) || v.isVoid(ctx, msg)
	})
}

// isVoid reports whether a mail brings a request that was decided already, or an answer that submit_plan has returned.
func (v *conversation) isVoid(ctx context.Context, msg muster.Message) bool {
	switch msg.Type {
	case muster.MailShutdown, muster.MailPlan:
		return isDecided(ctx, v.requests, msg.RequestID)
	case muster.MailPlanAnswer:
		return v.hasAnswer(msg.RequestID)
	}
	return false
}

// Inbox shows what waits and what was delivered last. Mail enters at a boundary, so a tool may call it.
func (v *conversation) Inbox(ctx context.Context) (string, error) {
	msgs, _, waiting, err := v.post.Peek(ctx, v.record.Name, v.inbox, maxDelivery)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if fresh := v.fresh(ctx, msgs); len(fresh) == 0 {
		b.WriteString("Nothing waits.\n")
	} else {
		b.WriteString("New mail, which you get after this reply:\n" + mailbox.Render(fresh, waiting) + "\n")
	}
	last, err := transcript.LastDelivered(ctx, v.log, v.record.Name, transcript.MaxShown)
	if len(last) > 0 {
		b.WriteString("Delivered last:\n" + mailbox.Render(last, 0))
	}
	return b.String(), err
}

// oldMail shows again the last mail, as much as fits. The newest is cut if it must be: it may be the instruction that
// the member works on.
func (v *conversation) oldMail(ctx context.Context, most int) (string, error) {
	last, err := transcript.LastDeliveredSince(ctx, v.log, v.record.Name, clearedMark)
	if err != nil {
		return "", err
	}
	for ; len(last) > 0; last = last[1:] {
		if len(last) == 1 {
			last[0].Content = compact.Shorten(last[0].Content, most/4)
		}
		if text := mailbox.Render(last, 0); len(text) <= most || len(last) == 1 {
			return prompt.Reminder("This is the last mail that you have read. You may have answered it already.") +
				"\n" + text, nil
		}
	}
	return "", nil
}
