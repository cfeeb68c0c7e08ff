package llm

import (
	"errors"
	"fmt"
	"time"
)

// Kind says what to do about an error.
type Kind string

const (
	// Overloaded: the provider cannot now, or cannot be reached. Again after After, or with backoff.
	Overloaded Kind = "overloaded"
	// Limited: too much was asked for. With After everybody who shares the key waits
	// that long; After 0 is a spend limit: the team pauses.
	Limited Kind = "limited"
	// Incomplete: the stream ended early, stalled, or did not parse. Again.
	Incomplete Kind = "incomplete"
	// ContextFull: the conversation no longer fits the model's window.
	ContextFull Kind = "context_full"
	// BadRequest: the provider refuses this request as it is. Asking again is no use.
	BadRequest Kind = "bad_request"
	// Denied: the key, the model's name or a permission.
	Denied Kind = "denied"
	// Spent: our own budget.
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

func (e *Error) Error() string { return string(e.Kind) + ": " + fmt.Sprint(e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// KindOf is the kind of the *Error in err's chain, "" if there is none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return ""
}
