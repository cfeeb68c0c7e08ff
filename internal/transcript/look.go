package transcript

import (
	"context"
	"errors"

	"muster"
	"muster/llm"
)

// Picture is a conversation as it stands, for people who look at it.
type Picture struct {
	Messages []llm.Message
	// Counted is how many tokens the provider has counted in the last request, which had the first Asked messages. It
	// is 0 where no reply has come since the conversation began or was made shorter.
	Counted, Asked int
	// Shortened is the entry that has made the conversation shorter last, Before what it was until then, and After
	// what it was made. Without one its Kind is "".
	Shortened     Entry
	Before, After []llm.Message
}

// Look reads the conversation of a member, also while another process writes it. Entries that cannot be read are left
// out. One that does not exist yet is empty.
func Look(ctx context.Context, l muster.Log, name muster.Name) (p Picture, err error) {
	var c conversation
	for e, err := range Read(ctx, l, name, 0) {
		if err != nil {
			if !errors.Is(err, muster.ErrCorrupt) {
				return p, err
			}
			continue
		}
		isShorter := e.Kind == KindFresh && c.Len() > 0
		switch {
		case isShorter:
			p.Counted, p.Asked, p.Shortened, p.Before = 0, 0, e, c.Messages()
		case e.Kind == KindReply && e.Usage != nil:
			p.Counted, p.Asked = e.Usage.Prompt(), c.Len()
		}
		if c.add(e); isShorter {
			p.After = c.Messages()
		}
	}
	p.Messages = c.Messages()
	return p, nil
}
