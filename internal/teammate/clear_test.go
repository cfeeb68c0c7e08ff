package teammate

import (
	"strings"
	"testing"

	"muster"
	"muster/internal/board"
	"muster/internal/transcript"
	"muster/llm"
)

// The user has the lead begin anew: it knows the goal and the board, and nothing that was said, also when the new
// conversation is shortened itself.
func TestTheUserBeginsANewConversation(t *testing.T) {
	live(t, muster.Lead, func(l *life) {
		l.config.Talk = newTalk()
		l.restart(muster.Lead)
		l.create(board.Draft{Subject: "the open task"})
		l.change("alice", func(m *muster.Member) { m.Status = muster.Working })
		l.start(calls("task_list", nil), says("Here I am."), says("The secret is 42."), says("Yes?"), says("A summary."), says("On."))
		l.send(muster.MailMessage, muster.User, muster.Lead, "remember the secret")
		l.hasEnded()
		asked := len(l.asked)
		l.send(muster.MailClear, muster.User, muster.Lead, "begin a new conversation")
		l.hasEnded()
		if len(l.asked) != asked {
			l.Errorf("the model is asked %d times for it: %s", len(l.asked)-asked, l.heard())
		}
		for i, words := range []string{"Go on.", "And on."} {
			l.send(muster.MailMessage, muster.User, muster.Lead, words)
			l.hasEnded()
			heard := l.heard()
			for _, gone := range []string{"secret", "Here I am.", "begin a new conversation"} {
				if strings.Contains(heard, gone) {
					l.Errorf("message %d: it still has %q: %s", i, gone, heard)
				}
			}
			for _, kept := range []string{words, l.record(muster.Lead).Prompt, "the open task"} {
				if !strings.Contains(heard, kept) {
					l.Errorf("message %d: %q is gone: %s", i, kept, heard)
				}
			}
			l.send(muster.MailCompact, muster.User, muster.Lead, "")
			l.hasEnded()
		}
	})
}

// Whatever write fails, the conversation is the old one or the new one, and after a crash the request does not clear
// what was said since.
func TestACrashAroundANewConversation(t *testing.T) {
	prepare := func(l *life) {
		l.config.Talk = newTalk()
		l.restart(muster.Lead)
		l.open()
		reply, _ := says("What was.")(llm.Request{Messages: l.conversation.script.Messages()})
		l.must(l.conversation.script.Reply(l.Context(), reply))
		l.send(muster.MailClear, muster.User, muster.Lead, "begin a new conversation")
		l.send(muster.MailMessage, muster.User, muster.Lead, "the newest words")
	}
	failEachOp(t, muster.Lead, prepare, func(l *life) error {
		_, err := l.conversation.deliver(l.Context())
		again, openErr := transcript.Open(l.Context(), l.world.Store.Log(), muster.Lead)
		l.must(openErr)
		text := ""
		for _, m := range again.Messages() {
			text += m.Parts.Text()
		}
		isOld := strings.Contains(text, "What was.")
		if isNew := strings.Contains(text, "begun a new conversation"); isOld == isNew {
			l.Errorf("after %v: %s", err, text)
		}
		// Whoever goes on finds in the inbox what was not dropped.
		l.send(muster.MailMessage, muster.User, muster.Lead, "still newer words")
		l.restart(muster.Lead)
		e := l.Member.open(l.Context())
		if e == nil {
			_, e = l.conversation.deliver(l.Context())
		}
		if e != nil {
			return e
		}
		text = l.said()
		if strings.Count(text, "the newest words") != 1 || strings.Count(text, "still newer words") != 1 {
			l.Errorf("after %v it has %s", err, text)
		}
		return err
	})
}
