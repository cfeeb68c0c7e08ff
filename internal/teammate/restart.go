package teammate

import (
	"context"
	"slices"

	"muster"
	"muster/internal/mailbox"
	"muster/internal/prompt"
	"muster/internal/transcript"
	"muster/llm"
)

// maxOldMail is how many bytes of the mail that was read before are shown again in a conversation that starts afresh.
const maxOldMail = 8 << 10

// do says who the member is, its task, what the lane holds, its todo list, and its last mail. The lead also gets its
// goal and the open tasks, because it has forgotten what it made.
func (RestartConversation) do(ctx context.Context, m *Member) error {
	m.stage = Retrying
	// The opening words stand here too: what was before goes when the transcript is rotated.
	mark, err := m.conversation.openingMark(ctx)
	if err != nil {
		return err
	}
	why := "Your conversation had grown too long and starts again here."
	if llm.KindOf(m.err) == llm.BadHistory {
		why = "Your model's server refused the conversation as it was, so it starts again here."
	}
	m.nested.reset()
	about, err := m.surroundings(ctx)
	if err != nil {
		return err
	}
	texts := append(about, m.conversation.identity(), m.place(), prompt.Reminder("%s", why))
	marks := []muster.MessageID{mark}
	if m.isLead() {
		p, err := m.Progress(ctx)
		if err != nil {
			return err
		}
		texts = append(texts, m.prompt())
		if tasks := slices.Concat(p.Open, p.NeedsAttention); len(tasks) > 0 {
			text := "These tasks are on the board:"
			for _, t := range tasks {
				text += "\n" + prompt.TaskLine(t)
			}
			texts = append(texts, text)
		}
	}
	if t, ok := m.claims.CurrentTask(); ok {
		text, key, err := m.claims.taskPrompt(ctx, t)
		if err != nil {
			return err
		}
		texts, marks = append(texts, text), append(marks, key)
	} else if !m.isLead() {
		texts = append(texts, m.prompt())
	}
	if list := m.todo.Text(); list != "" {
		texts = append(texts, prompt.Reminder("Your todo list:\n%s", mailbox.Escape(list)))
	}
	mail, err := m.conversation.oldMail(ctx)
	if err != nil {
		return err
	}
	texts = append(texts, mail)
	m.phase.change(func(c *counters) { c.restarted, c.replies, c.prompts = true, 0, promptSizes{} })
	return m.conversation.enter(ctx, m.conversation.script.Fresh, marks, texts)
}

// oldMail shows again the last mail that the conversation had, as much as fits in maxOldMail.
func (v *conversation) oldMail(ctx context.Context) (string, error) {
	last, err := transcript.LastDelivered(ctx, v.Store.Log(), v.name(), transcript.MaxShown)
	if err != nil {
		return "", err
	}
	for ; len(last) > 0; last = last[1:] {
		if text := mailbox.Render(last, 0); len(text) <= maxOldMail {
			return prompt.Reminder("This is the last mail that you have read. You may have answered it already.") +
				"\n" + text, nil
		}
	}
	return "", nil
}
