package teamtools

import (
	"context"
	"fmt"
	"strings"

	"muster"
	"muster/llm"
	"muster/tool"
)

func (k toolset) sendMessage() llm.Tool {
	type in struct {
		To      muster.Name `json:"to" jsonschema:"a teammate's name, lead, or user"`
		Content string      `json:"content"`
	}
	return tool.Func("send_message", "Send mail to one member. It is delivered at the other's next step, or wakes it.",
		func(ctx context.Context, in in) (string, error) {
			me := k.caller.Me().Name
			if in.To == me {
				return "", fmt.Errorf("that is you: write to somebody else")
			}
			m, err := k.Post.Send(ctx, muster.Message{Type: muster.MailMessage, From: me, To: in.To, Content: in.Content})
			if err != nil {
				return "", tool.Classify(err)
			}
			if to, err := k.Roster.Get(ctx, in.To); err == nil && to.Status == muster.Shutdown {
				return fmt.Sprintf("%s has shut down: it reads this when it is spawned again.", m.To), nil
			}
			k.caller.Asked(in.To, in.Content)
			return fmt.Sprintf("Sent to %s.", m.To), nil
		})
}

func (k toolset) readInbox() llm.Tool {
	type in struct{}
	return tool.Func("read_inbox", "What waits for you, and the last 20 mails you were given. New mail comes by itself.",
		func(ctx context.Context, _ in) (string, error) {
			text, err := k.caller.Inbox(ctx)
			return text, tool.Classify(err)
		}, tool.ReadOnly(), tool.Polls())
}

func (k toolset) broadcast() llm.Tool {
	type in struct {
		Content string `json:"content"`
	}
	return tool.Func("broadcast", "Send the same mail to every living teammate. It wakes them all: use send_message where one is meant.",
		func(ctx context.Context, in in) (string, error) {
			all, err := k.Roster.List(ctx)
			if err != nil {
				return "", tool.Classify(err)
			}
			var to []muster.Name
			var names []string
			for _, m := range all {
				if m.Name != k.caller.Me().Name && m.Status != muster.Shutdown {
					to, names = append(to, m.Name), append(names, string(m.Name))
				}
			}
			if len(to) == 0 {
				return "", fmt.Errorf("nobody was told: there is no living teammate")
			}
			if _, err := k.Post.Broadcast(ctx, k.caller.Me().Name, in.Content, to); err != nil {
				return "", tool.Classify(err)
			}
			return "Sent to " + strings.Join(names, ", ") + ".", nil
		})
}
