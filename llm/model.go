package llm

import "context"

// Request is one request. System and Tools are byte-stable for a member's life
// between compactions, and Messages only ever grow: that is what providers cache by.
type Request struct {
	System    []string // adapters put a cache breakpoint after each
	Tools     []Spec   // in the order given: never from a map
	Messages  []Message
	MaxTokens int    // most tokens of the reply; 0 is the adapter's default
	CacheKey  string // the member's stable id, for providers that route by it
}

// Usage is what a reply cost, in tokens. The four do not overlap: what a request
// held is Input + CacheRead + CacheWrite.
type Usage struct {
	Input      int `json:"input"`       // neither read from nor written to a cache
	Output     int `json:"output"`      // thinking included
	CacheRead  int `json:"cache_read"`  // of the request, found in the cache
	CacheWrite int `json:"cache_write"` // of the request, written to the cache
}

// Plus returns the sum of u and v.
func (u Usage) Plus(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Output + v.Output, u.CacheRead + v.CacheRead, u.CacheWrite + v.CacheWrite}
}

// Stop says why a reply ended.
type Stop string

const (
	// StopEnd means that the model has said what it wanted.
	StopEnd Stop = "end"
	// StopTools means that the model waits for the results of its calls. No other stop has calls.
	StopTools Stop = "tools"
	// StopMax means that the reply was cut at MaxTokens. Its calls are dropped, so that no cut call ever
	// runs.
	StopMax Stop = "max_tokens"
	// StopRefused means that the model or its provider declined. People see it; the request is not repeated
	// blindly.
	StopRefused Stop = "refused"
	// StopPaused means that the caller asks again with the same conversation.
	StopPaused Stop = "paused"
)

// Reply is a finished answer. A Message without parts is a valid one: the model
// said nothing.
type Reply struct {
	Message Message `json:"message"`
	Stop    Stop    `json:"stop"`
	Usage   Usage   `json:"usage"`
	Model   string  `json:"model"` // that answered: a fallback may have
}

// Delta is a bit of a reply that streams in. For display only; the Reply is the truth.
type Delta struct {
	Part  int    // which part of the reply it belongs to, rising
	Text  string // more of a Text
	Think string // more of a Thinking
	Again bool   // what was shown of this reply is void: it is asked again
}

// Model answers requests. Safe for concurrent use.
type Model interface {
	// Reply asks once and returns the finished reply, or an error: nothing in between.
	// emit gets what streams in, in order, from one goroutine, before Reply returns;
	// an empty Delta says only that the model is at work.
	// Errors are *Error; ctx's end is returned as context.Cause.
	Reply(ctx context.Context, r Request, emit func(Delta)) (Reply, error)
}
