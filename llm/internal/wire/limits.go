package wire

import (
	"bytes"
	"fmt"
	"io"

	"muster/llm"
)

// The limits of an answer. Without them a server that never ends, or whoever stands between it and us, could fill the
// memory. They are far above what the longest replies of today's models need: 128,000 tokens are about 600 KB of text.
const (
	// MaxStream is how many bytes of one answer are read, pings and what the protocol adds included.
	MaxStream = 128 << 20
	// MaxEvents is how many events one stream may have. Each takes time, however small it is.
	MaxEvents = 1_000_000
	// MaxEvent is the size of the largest event, and of an answer that is no stream. Some vendors send a whole reply
	// in one.
	MaxEvent = 4 << 20
	// MaxReply is how many bytes are kept of one reply: texts, thinking, and calls with their ids.
	MaxReply = 2 << 20
	// MaxInput is how many bytes the arguments of one call may have.
	MaxInput = 1 << 20
	// MaxCalls is how many calls one reply may make.
	MaxCalls = 128
	// MaxDepth is how deep the JSON of an event, or of a call's arguments, may be nested.
	MaxDepth = 100
	// MaxValues is how many values the JSON of an event, or of a call's arguments, may have. A value of two bytes
	// takes a hundred times as much when it is decoded.
	MaxValues = 100_000
	// maxErrorBody is how many bytes of an answer with an error status are read, and maxSays how many of its words
	// are shown.
	maxErrorBody = 64 << 10
	maxSays      = 500
	// maxID and maxModelName are the lengths of what a server may call a call and itself.
	maxID        = 256
	maxModelName = 256
	// maxTokens is the largest number of tokens that a server is believed.
	maxTokens = 100_000_000
	// partSize is what one part costs beside its content, so that a reply of many empty parts is bounded, too.
	partSize = 256
)

// errLimit is the error for an answer that exceeds a limit. The request is not repeated: who answers so once would do
// it again.
func (x *Exchange) errLimit(f string, a ...any) *llm.Error {
	return llm.Errorf(llm.BadRequest, "the answer of %s %s: see what answers there, or use another model", x.Host(),
		fmt.Sprintf(f, a...))
}

// Keep counts bytes of the reply that a Reader is about to keep. The error says that there are too many.
func (x *Exchange) Keep(bytes int) error {
	if x.kept += bytes; x.kept > MaxReply {
		return x.errLimit("has more than %s, and a reply may have no more", formatSize(MaxReply))
	}
	return nil
}

// KeepPart counts a new part of the reply with bytes in it.
func (x *Exchange) KeepPart(bytes int) error { return x.Keep(partSize + bytes) }

// formatSize returns a limit in its unit.
func formatSize(n int) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d KB", n>>10)
	}
	return fmt.Sprintf("%d MB", n>>20)
}

// checkJSON returns in what respect JSON is too large to be decoded, or "". It looks only at its form; whether it is
// valid is decided by who decodes it.
func checkJSON(data []byte) (problem string) {
	depth, values := 0, 1
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i += stringLen(data[i:]) - 1
		case '{', '[':
			depth++
			values++
		case '}', ']':
			depth--
		case ',':
			values++
		}
		if depth > MaxDepth {
			return fmt.Sprintf("is nested deeper than %d levels", MaxDepth)
		}
		if values > MaxValues {
			return fmt.Sprintf("has more than %d values", MaxValues)
		}
	}
	return ""
}

// stringLen returns the length of the JSON string at the beginning of data, with its quotes. A string without an end
// goes to the end of data.
func stringLen(data []byte) int {
	for i := 1; i < len(data); i++ {
		n := bytes.IndexAny(data[i:], `"\`)
		if n < 0 {
			return len(data)
		}
		if i += n; data[i] == '"' {
			return i + 1
		}
		i++ // what follows a backslash is no end
	}
	return len(data)
}

// limited reads at most max bytes. What comes then is the error.
type limited struct {
	r    io.Reader
	left int
	err  error
}

// Read reads from r while bytes are left.
func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, l.err
	}
	n, err := l.r.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}
