package tool

import (
	"errors"
	"fmt"

	"muster"
	"muster/llm"
)

// FromError makes what a tool returns of an error. Every tool converts its errors here, so that a model always reads
// what happened and, where the error has a hint, what to do next. An error that Fatal has marked is not for the
// model: FromError returns it, without its mark, as the runtime's.
func FromError(err error) (llm.Result, error) {
	var f fatal
	if errors.As(err, &f) {
		return llm.Result{}, f.error
	}
	return llm.ErrorResult("%s", ErrorText(err)), nil
}

// ErrorText is an error as a model reads it: what happened, then the hint of a *muster.Error in its chain.
func ErrorText(err error) string {
	var e *muster.Error
	if errors.As(err, &e) && e.Hint != "" {
		return fmt.Sprintf("%v: %s", err, e.Hint)
	}
	return err.Error()
}

// Classify sorts an error of the services that a tool works on. The model can act on a *muster.Error, which it reads;
// Unavailable, and every other error, means that the runtime is in trouble, and becomes Fatal. Classify(nil) is nil.
func Classify(err error) error {
	var e *muster.Error
	if err == nil || IsFatal(err) || errors.As(err, &e) && e.Code != muster.Unavailable {
		return err
	}
	return Fatal(err)
}

// Fatal marks an error as the runtime's: returned from a Func it ends the turn. Fatal(nil) is nil.
func Fatal(err error) error {
	if err == nil {
		return nil
	}
	return fatal{err}
}

// IsFatal tells whether err is, or wraps, an error made by Fatal.
func IsFatal(err error) bool {
	var f fatal
	return errors.As(err, &f)
}

// fatal is the mark that Fatal leaves.
type fatal struct{ error }

func (f fatal) Unwrap() error { return f.error }
