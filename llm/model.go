package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Request is one request. System and Tools are byte-stable for a member's life
// between compactions, and Messages only ever grow: that is what providers cache by.
type Request struct {
	System    []string // what the most agents share comes first
	Tools     []Spec   // in the order given: never from a map
	Messages  []Message
	MaxTokens int    // most tokens of the reply; 0 is the adapter's default
	CacheKey  string // the agent's stable id, for providers that tell conversations apart by it
	// CacheGroup names those who have System, Tools and the first part of the first message in common, for providers
	// that route by it; "" is CacheKey. Adapters that say what is to be cached mark the end of that part.
	CacheGroup string
	// CacheLong asks for a cache that lasts an hour and not some minutes, where the provider has one: the agent may
	// be about to wait. Its writes cost more.
	CacheLong bool
	// Purpose says what it is for where it is no turn of the member's own, to who counts calls. It is not sent.
	Purpose string
	// Agent is the name of the helper that asks, and Role its role. Both are "" for a member itself. They are for who
	// counts calls, and are not sent.
	Agent, Role string
}

// Group returns the key of those who share the beginning of the request.
func (r Request) Group() string { return cmp.Or(r.CacheGroup, r.CacheKey) }

// Usage is what a reply cost, in tokens. The numbers do not overlap: Output is the reply, and the others add up to what
// the request held.
type Usage struct {
	Input          int `json:"input"`                      // neither read from nor written to a cache
	Output         int `json:"output"`                     // thinking included
	CacheRead      int `json:"cache_read"`                 // of the request, found in the cache
	CacheWrite     int `json:"cache_write"`                // of the request, written to the cache
	CacheWriteLong int `json:"cache_write_long,omitempty"` // of the request, written to the cache for an hour
}

// Plus returns the sum of u and v.
func (u Usage) Plus(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Output + v.Output, u.CacheRead + v.CacheRead, u.CacheWrite + v.CacheWrite,
		u.CacheWriteLong + v.CacheWriteLong}
}

// Prompt returns how many tokens the request held.
func (u Usage) Prompt() int { return u.Input + u.CacheRead + u.CacheWrite + u.CacheWriteLong }

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
	// Dollars is what it cost, set by who counts calls; nil where that is not known. Adapters leave it out.
	Dollars *float64 `json:"dollars,omitempty"`
}

// Delta is a bit of a reply that streams in. For display only; the Reply is the truth.
type Delta struct {
	Part  int    // which part of the reply it belongs to, rising
	Text  string // more of a Text
	Think string // more of a Thinking
	Again bool   // what was shown of this reply is void: it is asked again

	// Answer is set in a Delta of its own when a server begins to answer, before anything of the reply is known. An
	// adapter emits one for each request that it sends. Package retry paces requests by them.
	Answer *Answer

	// Note is set in a Delta of its own: a line for people about how the request had to be made, such as with a limit
	// that the account can pay for. Package retry passes it to Options.OnNote.
	Note string
}

// Answer is what a server's answer says before its body: the HTTP status, and what is left of the limits.
type Answer struct {
	Status           int
	Requests, Tokens Quota
}

// Quota is a limit on the requests or the tokens of a minute. A zero Limit means that nothing was said.
type Quota struct {
	Limit, Remaining int
	Reset            time.Duration // until all of the limit remains; 0: not said
}

// Account names the limits that the requests of a model count against. A Model tells it by a method Account.
type Account struct {
	ID    string // one for each endpoint and key; it shows neither
	Model string // servers have limits for each model, too
	// Requests and Tokens are what the user allows in a minute; 0 means what the server allows.
	Requests, Tokens int
}

// Model answers requests. Safe for concurrent use.
type Model interface {
	// Reply asks once and returns the finished reply, or an error: nothing in between.
	// emit gets what streams in, in order, from one goroutine, before Reply returns;
	// an empty Delta says only that the model is at work.
	// Errors are *Error; ctx's end is returned as context.Cause.
	Reply(ctx context.Context, r Request, emit func(Delta)) (Reply, error)
}

// Spec is what a model is told of a tool, and, in the fields without a name in JSON, what whoever runs it
// must know. Such a fact is a property of the tool: nothing outside keeps a list of tools by name.
type Spec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"input_schema"` // of the input, an object; frozen bytes, made once
	// ReadOnly: it may run beside other read-only calls of the same reply.
	ReadOnly bool `json:"-"`
	// Reads reports whether a call with this input only reads, for a tool of which some calls do. nil: ReadOnly says it
	// for all calls.
	Reads func(input json.RawMessage) bool `json:"-"`
	// NeedsPlan: it changes the task's files, or lands them. Where a plan is required it is refused until
	// one is approved.
	NeedsPlan bool `json:"-"`
	// Lasting: its results stay whole when older ones are cleared from the conversation.
	Lasting bool `json:"-"`
	// Polls: it is asked again and again until something has changed. The same answer twice is no sign of a
	// loop.
	Polls bool `json:"-"`
	// Optional: a request that is refused because of it can be made without it.
	Optional bool `json:"-"`
}

// OnlyReads reports whether a call of the tool with this input only reads.
func (s Spec) OnlyReads(input json.RawMessage) bool {
	return s.ReadOnly || s.Reads != nil && s.Reads(input)
}

// Tool is something that a model may call. One value serves every agent that has it, so it is safe for
// concurrent use. Package tool makes one of a typed function.
type Tool interface {
	// Spec is what the model is told; the same at each call.
	Spec() Spec
	// Run runs one call; progress gets lines for people while it runs. What the
	// model can mend is a Result with IsError; an error is the runtime's
	// (cancelled, store broken) and ends the turn.
	Run(ctx context.Context, c Call, progress func(string)) (Result, error)
}

// ErrorResult is a result that tells the model what went wrong and what to do instead. Package tool makes
// one of an error.
func ErrorResult(f string, a ...any) Result {
	return Result{IsError: true, Parts: []Part{Text{Text: fmt.Sprintf(f, a...)}}}
}

// Kind says what to do about an error. Package retry and the team do it; a Model only says which kind an
// error is.
type Kind string

const (
	// Overloaded means that the provider cannot answer now. The request is repeated after After, or with
	// backoff.
	Overloaded Kind = "overloaded"
	// Unreachable means that no answer came: the host was not found, refused the connection or is behind a
	// network that is down. The request is repeated with backoff.
	Unreachable Kind = "unreachable"
	// Limited means a limit on the rate. Everybody who shares the endpoint waits for After, or with backoff,
	// and asks again.
	Limited Kind = "limited"
	// Incomplete means that the stream ended early, stalled or did not parse. The request is repeated.
	Incomplete Kind = "incomplete"
	// ContextFull means that the conversation no longer fits the model's context window.
	ContextFull Kind = "context_full"
	// BadHistory means that the provider refuses the conversation for how its messages follow each other, as
	// with a call that has no result, or for characters in it. A new conversation is taken.
	BadHistory Kind = "bad_history"
	// BadRequest means that the provider refuses this request as it is. Repeating it is no use.
	BadRequest Kind = "bad_request"
	// Denied means that the key, the model's name or a permission is wrong. The team stops.
	Denied Kind = "denied"
	// Spent means that the account's credit or quota, or a budget of our own, is used up. Waiting does not
	// help: the team stops.
	Spent Kind = "spent"
)

// Error is what a Model returns when there is no reply.
type Error struct {
	Kind   Kind
	After  time.Duration // how long to wait before asking again; 0: not said
	Status int           // the HTTP status, 0 if there was none
	Err    error         // a sentence for people

	// Tools are the Optional tools without which a request that is a BadRequest may be taken: those that the server
	// names, or all where it speaks of tools and does not say which.
	Tools []string

	// Malformed says of an Incomplete reply that it came whole and makes no sense. It is asked for again once only:
	// a server that answers so twice does it each time.
	Malformed bool
}

// Errorf makes an Error of a kind with a sentence for people; a %w stays reachable.
func Errorf(k Kind, f string, a ...any) *Error {
	return &Error{Kind: k, Err: fmt.Errorf(f, a...)}
}

// Error returns the kind and the sentence.
func (e *Error) Error() string { return string(e.Kind) + ": " + fmt.Sprint(e.Err) }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the *Error in err's chain, "" if there is none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return ""
}
