package loop

import (
	"fmt"
	"sync/atomic"

	"muster/internal/text"
	"muster/llm"
)

// The limits of what an agent holds in memory.
const (
	// MaxResults is how many bytes the results of one reply's calls may have together. Of those that come when they
	// have as many, only the beginning of the text is kept.
	MaxResults = 8 << 20
	// MaxConversation is how many bytes the messages of a conversation may have. A longer one is treated like one
	// that no longer fits the model's window.
	MaxConversation = 16 << 20
	// keptOfResult is how many bytes are kept of a result for which there is no room.
	keptOfResult = 2000
)

// CheckSize returns an *llm.Error with the kind ContextFull for a conversation that is too large to be kept in memory
// and sent. A Conversation asks it in its Request.
func CheckSize(messages []llm.Message) error {
	size := 0
	for _, m := range messages {
		size += m.Parts.Size()
	}
	if size <= MaxConversation {
		return nil
	}
	return llm.Errorf(llm.ContextFull, "the conversation has %d MB, and may have %d MB", size>>20, MaxConversation>>20)
}

// results counts the bytes of the results of one reply.
type results struct{ size atomic.Int64 }

// fit returns r, or what is kept of it where the results before it have left no room.
func (s *results) fit(r llm.Result) llm.Result {
	size := int64(r.Parts.Size())
	if s.size.Add(size) <= MaxResults || size <= keptOfResult {
		return r
	}
	s.size.Add(-size)
	cut := fmt.Sprintf("%s\n[%d KB are cut here: the results of this reply's calls have %d MB, which is the most. "+
		"Ask for less, or make such calls one by one]",
		text.FirstBytes(r.Text(), keptOfResult), size>>10, MaxResults>>20)
	r.Parts = []llm.Part{llm.Text{Text: cut}}
	return r
}
