package llm

import (
	"errors"
	"fmt"
	"time"
)

// Kind says what to do about an error. What is to be done is done by package steady and by the team: a Model only says
// which it is.
type Kind string

const (
	// Overloaded: the provider cannot now, or cannot be reached. Asked again after After, or with backoff.
	Overloaded Kind = "overloaded"
	// Limited: a rate limit, or the account's. With After everybody who shares the key waits that long and asks
	// again; After 0 says that waiting will not help soon (a spend limit): the team pauses.
	Limited Kind = "limited"
	// Incomplete: the stream ended early, stalled, or did not parse. Asked again.
	Incomplete Kind = "incomplete"
	// ContextFull: the conversation no longer fits the model's context window.
	ContextFull Kind = "context_full"
	// BadRequest: the provider refuses this request as it is. Asking again is no use.
	BadRequest Kind = "bad_request"
	// Denied: the key, the model's name or a permission is wrong. The team stops.
	Denied Kind = "denied"
	// Spent: a budget of our own is used up. No provider says this.
	Spent Kind = "spent"
)

// Error is what a Model returns when there is no reply.
type Error struct {
	Kind   Kind
	After  time.Duration // how long to wait before asking again; 0: not said
	Status int           // the HTTP status, 0 if there was none
	Err    error         // a sentence for people
}

// Errorf makes an Error of a kind with a sentence for people; a %w stays reachable.
func Errorf(k Kind, f string, a ...any) *Error {
	return &Error{Kind: k, Err: fmt.Errorf(f, a...)}
}

// Error is the kind and the sentence.
func (e *Error) Error() string { return string(e.Kind) + ": " + fmt.Sprint(e.Err) }

// Unwrap is Err.
func (e *Error) Unwrap() error { return e.Err }

// KindOf is the kind of the *Error in err's chain, "" if there is none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return ""
}
