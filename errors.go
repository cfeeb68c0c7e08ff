package muster

import (
	"errors"
	"fmt"
)

// Code is the kind of an error; there are few.
type Code string

// The codes of errors.
const (
	NotFound    Code = "not_found"
	Stale       Code = "stale"       // the document or the stream has moved: read again
	Fenced      Code = "fenced"      // the claim is no longer yours
	Held        Code = "held"        // someone else has it
	Invalid     Code = "invalid"     // the caller's fault; Message says what to do
	Corrupt     Code = "corrupt"     // this one record cannot be read; the others can
	Trimmed     Code = "trimmed"     // the position was forgotten
	Unavailable Code = "unavailable" // the engine cannot be reached, or writing has ended after a failed sync
)

// Error is the error that crosses packages: a code for programs, a sentence for people.
// Message says what happened; Hint, where there is one, is what to do or type next.
type Error struct {
	Code    Code
	Message string
	Hint    string
	Err     error
}

// Errorf makes an Error with a code and a sentence. A %w in f is kept as its cause; what the standard library says in
// it is put into plain words.
func Errorf(c Code, f string, a ...any) *Error {
	err := fmt.Errorf(f, a...)
	return &Error{Code: c, Message: PlainText(err), Err: errors.Unwrap(err)}
}

// WithHint returns e with what to do next.
func (e *Error) WithHint(f string, a ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(f, a...)
	return &c
}

// Error is Message, or what stands for it; the hint is not in it.
func (e *Error) Error() string {
	if e.Message == "" {
		return string(e.Code)
	}
	return e.Message
}

// Unwrap is Err.
func (e *Error) Unwrap() error { return e.Err }

// Is matches by code, so that errors.Is(err, ErrStale) works for every *Error with that code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Message == "" && t.Err == nil && t.Code == e.Code
}

// The sentinels, for errors.Is.
var (
	ErrNotFound    = &Error{Code: NotFound}
	ErrStale       = &Error{Code: Stale}
	ErrFenced      = &Error{Code: Fenced}
	ErrHeld        = &Error{Code: Held}
	ErrInvalid     = &Error{Code: Invalid}
	ErrCorrupt     = &Error{Code: Corrupt}
	ErrTrimmed     = &Error{Code: Trimmed}
	ErrUnavailable = &Error{Code: Unavailable}
)

// Causes of cancellation: context.Cause says why a member, a turn or a tool was stopped.
var (
	CauseShutdown = errors.New("shutdown")        // asked, granted, or its deadline has passed
	CauseUser     = errors.New("stopped by user") // Ctrl-C: state is kept
	CauseTurn     = errors.New("the user stopped this turn")
)

// HintOf returns what to do about err, or "". Of several hints it is the innermost one, which is nearest to what is
// wrong; the sentence to show with it is the outermost.
func HintOf(err error) string {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return ""
	}
	if inner := HintOf(e.Err); inner != "" {
		return inner
	}
	return e.Hint
}
