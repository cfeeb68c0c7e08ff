package teamtools

import (
	"context"
	"fmt"
	"strings"

	"muster"
	"muster/llm"
	"muster/tool"
)

// sendMessage sends mail to one member. The caller is told if the receiver has shut down, and so does not wait for an
// answer that cannot come.
func (k toolset) sendMessage() llm.Tool {
	type in struct {
		To      muster.Name `json:"to" jsonschema:"a teammate's name, lead, or user"`
		Content string      `json:"content"`
	}
	return textTool("send_message", "Send mail to one member. It is delivered at the other's next step, or wakes it.",
		func(ctx context.Context, in in) (string, error) {
			me := k.caller.Me().Name
			if in.To == me {
				return "", muster.Errorf(muster.Invalid, "that is you: write to somebody else")
			}
			m, err := k.Post.Send(ctx, muster.Message{Type: muster.MailMessage, From: me, To: in.To,
				Content: in.Content})
			if err != nil {
				return "", err
			}
			// The mail is sent in any case: it is stored, and an error here must not make the model send it again.
			if to, err := k.Roster.Get(ctx, in.To); err == nil && to.Status == muster.Shutdown {
				return fmt.Sprintf("%s has shut down: it reads this when it is spawned again.", m.To), nil
			}
			k.caller.Asked(in.To, in.Content)
			return fmt.Sprintf("Sent to %s.", m.To), nil
		})
}

// readInbox shows the mail of the caller. Reading it delivers nothing: mail is delivered between two rounds.
func (k toolset) readInbox() llm.Tool {
	return textTool("read_inbox", "What waits for you, and the last 20 mails you were given. New mail comes by itself.",
		func(ctx context.Context, _ struct{}) (string, error) { return k.caller.Inbox(ctx) },
		tool.ReadOnly(), tool.Polls())
}

// broadcast sends the same mail to every teammate that is not shut down, but not to the caller. A teammate that joins
// while it runs does not get it.
func (k toolset) broadcast() llm.Tool {
	type in struct {
		Content string `json:"content"`
	}
	return textTool("broadcast", "Send the same mail to every living teammate. It wakes them all: use send_message "+
		"where one is meant.",
		func(ctx context.Context, in in) (string, error) {
			all, err := k.Roster.List(ctx)
			if err != nil {
				return "", err
			}
			var to []muster.Name
			var names []string
			for _, m := range all {
				if m.Name != k.caller.Me().Name && m.Status != muster.Shutdown {
					to, names = append(to, m.Name), append(names, string(m.Name))
				}
			}
			if len(to) == 0 {
				return "", muster.Errorf(muster.Invalid, "nobody was told: there is no living teammate")
			}
			_, err = k.Post.Broadcast(ctx, k.caller.Me().Name, in.Content, to)
			return answer(err, "Sent to %s.", strings.Join(names, ", "))
		})
}
