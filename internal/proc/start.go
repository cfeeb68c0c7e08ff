package proc

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"muster"
)

// startWith checks s, opens what its program reads and writes, and has launch start it. The child closes what was
// opened when it is over; if there is none, startWith closes it.
func startWith(
	ctx context.Context, s Spec, launch func(ctx context.Context, s Spec, path string, pipes *stdio) (*child, error),
) (Process, error) {
	path, err := checkSpec(ctx, s)
	if err != nil {
		return nil, err
	}
	pipes, err := openStdio(s)
	if err != nil {
		return nil, startError(s, err)
	}
	c, err := launch(ctx, s, path, pipes)
	if err != nil {
		pipes.abandon()
		return nil, err
	}
	return c, nil
}

// checkSpec checks s before anything is opened for it, and finds its program.
func checkSpec(ctx context.Context, s Spec) (path string, err error) {
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return "", muster.Errorf(muster.Invalid, "no program was named")
	}
	// The system would cut an argument at a NUL byte, silently. The guard's frames rely on it, too.
	hasNUL := func(t string) bool { return strings.Contains(t, "\x00") }
	if slices.ContainsFunc(slices.Concat(s.Argv, s.Env, []string{s.Dir}), hasNUL) {
		return "", muster.Errorf(muster.Invalid, "an argument of %s contains a NUL byte", s.Argv[0])
	}
	return findProgram(s.Argv[0], lookupEnv(s.Env, "PATH"))
}

// lookupEnv returns the value of name in env. Of several the last counts, as in os/exec.
func lookupEnv(env []string, name string) string {
	for _, e := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(e, name+"="); ok {
			return value
		}
	}
	return ""
}

// setTag returns env with the tag of a call. It replaces the tag that env has when this process is itself a tool.
func setTag(env []string, tag string) []string {
	own := slices.DeleteFunc(slices.Clone(env), func(e string) bool { return strings.HasPrefix(e, CallVar+"=") })
	return append(own, CallVar+"="+tag)
}

// errNoProgram is the error of a program that is not in PATH.
func errNoProgram(program string) error {
	return muster.Errorf(muster.NotFound, "there is no program %q in PATH", program)
}

// startError returns the error of a start that the system refused. A missing working directory gives the same error as
// a missing program, so it is looked for.
func startError(s Spec, cause error) error {
	code, why := muster.Invalid, cause.Error()
	if path, ok := errors.AsType[*fs.PathError](cause); ok {
		why = path.Err.Error()
	}
	if errors.Is(cause, fs.ErrNotExist) {
		code = muster.NotFound
		if fi, err := os.Stat(s.Dir); s.Dir != "" && (err != nil || !fi.IsDir()) {
			why = "there is no directory " + s.Dir
		}
	}
	return &muster.Error{Code: code, Message: "cannot start " + s.Argv[0] + ": " + why, Err: cause}
}

// errClosed is the error of a start after Close.
func errClosed() error { return muster.Errorf(muster.Unavailable, "the launcher of tools is closed") }
