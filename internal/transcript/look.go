package transcript

import (
	"context"
	"errors"
	"slices"

	"muster"
	"muster/llm"
)

// Picture is a conversation as it stands, for people who look at it.
type Picture struct {
	Messages []llm.Message
	// Counted is how many tokens the provider has counted in the last request and its reply, which are the first Asked
	// messages. It is 0 where it has counted nothing since the conversation began or was made shorter.
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
		isShorter := c.Len() > 0 && slices.Contains([]Kind{KindFresh, KindCompressed, KindCleared}, e.Kind)
		if isShorter {
			p.Shortened, p.Before = e, c.Messages()
		}
		if c.add(e); isShorter {
			p.After = c.Messages()
		}
	}
	p.Messages, p.Counted, p.Asked = c.Messages(), c.tokens, c.counted
	return p, nil
}
