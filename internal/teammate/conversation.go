package teammate

import (
	"context"
	"fmt"
	"hash/crc32"
	"strings"
	"sync"

	"muster"
	"muster/internal/failpoint"
	"muster/internal/prompt"
	"muster/internal/tool/code"
	"muster/internal/transcript"
	"muster/llm"
)

// conversation is what the member's model reads: the transcript, and the mail that enters it.
// Its methods are for the goroutine of Live, but for those that say otherwise.
type conversation struct {
	*self
	script *transcript.Transcript // nil until the member has started
	inbox  muster.Pos             // up to where the inbox was read

	// returned has the ids of the plans whose answer submit_plan has returned: the mails that
	// bring it are void.
	returned sync.Map
}

// maxQuote is how much of an error or of a model's words goes into a mail.
const maxQuote = 4000

// shortConversation is how few messages a conversation may have before the member is told
// again who it is.
const shortConversation = 4

// identity returns the text that says who the member is.
func (v *conversation) identity() string { return prompt.Identity(v.name(), v.record.Role, v.Team) }

// say appends the runtime's words to the conversation. marks are noted with them in the same
// entry, so that after a crash it is known whether they were said.
func (v *conversation) say(ctx context.Context, marks []muster.MessageID, texts ...string) error {
	return v.enter(ctx, v.script.User, marks, texts)
}

// remind says a reminder.
func (v *conversation) remind(ctx context.Context, format string, args ...any) error {
	return v.say(ctx, nil, prompt.Reminder(format, args...))
}

// enter writes texts as one message, so that no crash can leave half of them. Empty texts are
// left out. write is User of the transcript, or Fresh for a new conversation.
func (v *conversation) enter(ctx context.Context, write func(context.Context, []llm.Part, []muster.MessageID) error,
	marks []muster.MessageID, texts []string) error {
	var parts []llm.Part
	for _, t := range texts {
		if t != "" {
			parts = append(parts, llm.Text{Text: t})
		}
	}
	if len(parts) == 0 {
		return nil
	}
	// The words and the marks are one entry. Two entries could be torn apart by a crash:
	// something would be said twice, or never.
	defer failpoint.Hit("teammate.told")
	return write(ctx, parts, marks)
}

// wake loads the conversation of an idle member again, and says who the member is where that
// may have been lost. The status comes first: whoever looks at the team sees it at work
// before anything is taken from its inbox.
func (v *conversation) wake(ctx context.Context) error {
	if err := v.presence.setStatus(ctx, muster.Working, "", ""); err != nil {
		return err
	}
	if err := v.script.Load(ctx); err != nil {
		return err
	}
	if n := len(v.script.Messages()); n > 0 && n < shortConversation {
		return v.say(ctx, nil, v.identity())
	}
	return nil
}

// openingMark is noted in the transcript when the opening words were said: the goal of this
// run to the lead, the prompt of this spawn to a teammate. The prompt alone would not do,
// because a member may be spawned again with the same words.
func (v *conversation) openingMark(ctx context.Context) (muster.MessageID, error) {
	if v.isLead() {
		run, err := v.Run(ctx)
		return muster.MessageID(fmt.Sprintf("run-%.6f", run.StartedAt)), err
	}
	sum := crc32.ChecksumIEEE([]byte(v.record.Prompt))
	return muster.MessageID(fmt.Sprintf("spawn-%08x%s", sum, v.script.LastMark())), nil
}

// markLeft ends this spawn in the transcript, so that the next one says its prompt.
func (v *conversation) markLeft(ctx context.Context) error {
	if v.script == nil {
		return nil
	}
	return v.script.Mark(ctx, fmt.Sprintf("left-%d", v.presence.Me().Epoch))
}

// owesReply reports whether the model has not answered the last message yet.
func (v *conversation) owesReply() bool {
	messages := v.script.Messages()
	return len(messages) > 0 && messages[len(messages)-1].Role == llm.User
}

// announceJobs tells of finished background jobs.
func (v *conversation) announceJobs(ctx context.Context) (bool, error) {
	done := v.jobs.Finished()
	if len(done) == 0 {
		return false, nil
	}
	return true, v.say(ctx, nil, code.Render(done))
}

// textOf returns the text of a message.
func textOf(msg llm.Message) string {
	var b strings.Builder
	for _, p := range msg.Parts {
		if t, ok := p.(llm.Text); ok {
			b.WriteString(t.Text)
		}
	}
	return strings.TrimSpace(b.String())
}

// clip cuts text to at most n bytes, at a rune.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + " ..."
}
