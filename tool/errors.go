package tool

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"muster"
	"muster/llm"
)

// FromError turns an error into what a tool returns. Every tool converts its errors here, so that a model
// always reads what happened and, where the error has a hint, what to do next. An error that Fatal has
// marked is not for the model: FromError returns it as an error, without its mark.
func FromError(err error) (llm.Result, error) {
	if f, ok := errors.AsType[fatal](err); ok {
		return llm.Result{}, f.error
	}
	return llm.ErrorResult("%s", ErrorText(err)), nil
}

// ErrorText returns an error as a model reads it: what happened, then the hint of a *muster.Error in its
// chain. A command of muster in the hint is for people: the tool that does the same takes its place, and a line
// with another command is left out.
func ErrorText(err error) string {
	e, ok := errors.AsType[*muster.Error](err)
	if !ok {
		return err.Error()
	}
	lines := strings.Split(toolsForCommands.Replace(e.Hint), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return line == "" || strings.Contains(line, "muster ") })
	if len(lines) == 0 {
		return err.Error()
	}
	return fmt.Sprintf("%v: %s", err, strings.Join(lines, "\n"))
}

var toolsForCommands = strings.NewReplacer("muster worktree list", "worktree_list", "muster task list", "task_list",
	"muster task show", "task_list", "muster team list", "list_teammates")

// Classify marks an error of the services that a tool works on, if it is not for the model. The model can
// act on a *muster.Error and reads it. Unavailable, and every other error, means that the runtime is in
// trouble: it becomes Fatal. Classify(nil) is nil.
func Classify(err error) error {
	var e *muster.Error
	if err == nil || IsFatal(err) || errors.As(err, &e) && e.Code != muster.Unavailable {
		return err
	}
	return Fatal(err)
}

// Fatal marks an error as one that the model can do nothing about: returned from a Func it ends the turn.
// Fatal(nil) is nil.
func Fatal(err error) error {
	if err == nil {
		return nil
	}
	return fatal{err}
}

// IsFatal reports whether err is, or wraps, an error made by Fatal.
func IsFatal(err error) bool {
	_, ok := errors.AsType[fatal](err)
	return ok
}

// fatal is the mark that Fatal leaves.
type fatal struct{ error }

// Unwrap returns the error that was marked.
func (f fatal) Unwrap() error { return f.error }
