package llm

import (
	"errors"
	"fmt"
	"time"
)

// Kind says what to do about an error. Package retry and the team do it; a Model only says which kind an
// error is.
type Kind string

const (
	// Overloaded means that the provider cannot answer now or cannot be reached. The request is repeated
	// after After, or with backoff.
	Overloaded Kind = "overloaded"
	// Limited means a limit on the rate or of the account. With After, everybody who shares the key waits
	// that long and asks again. Without it, waiting does not help soon, as with a limit on spending, and
	// the team pauses.
	Limited Kind = "limited"
	// Incomplete means that the stream ended early, stalled or did not parse. The request is repeated.
	Incomplete Kind = "incomplete"
	// ContextFull means that the conversation no longer fits the model's context window.
	ContextFull Kind = "context_full"
	// BadRequest means that the provider refuses this request as it is. Repeating it is no use.
	BadRequest Kind = "bad_request"
	// Denied means that the key, the model's name or a permission is wrong. The team stops.
	Denied Kind = "denied"
	// Spent means that a budget of our own is used up. No provider says this.
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
