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

// prepare checks s before anything is opened for it, and finds its program.
func prepare(ctx context.Context, s Spec) (path string, err error) {
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return "", muster.Errorf(muster.Invalid, "no program was named")
	}
	for _, list := range [][]string{s.Argv, s.Env, {s.Dir}} {
		for _, t := range list {
			if strings.ContainsRune(t, 0) {
				return "", muster.Errorf(muster.Invalid, "an argument of %s contains a NUL byte", s.Argv[0])
			}
		}
	}
	return find(s.Argv[0], variable(s.Env, "PATH"))
}

// variable returns the value of name in env. Of several the last counts, as in os/exec.
func variable(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(env[i], "="); ok && k == name {
			return v
		}
	}
	return ""
}

// withTag returns env with the tag of a call, in place of one that it has when this process is itself a tool.
func withTag(env []string, tag string) []string {
	own := slices.DeleteFunc(slices.Clone(env), func(e string) bool { return strings.HasPrefix(e, CallVar+"=") })
	return append(own, CallVar+"="+tag)
}

func notFound(program string) error {
	return muster.Errorf(muster.NotFound, "there is no program %q in PATH", program)
}

// refused makes the error of a start that the system refused.
func refused(s Spec, cause error) error {
	code, say := muster.Invalid, cause
	var path *fs.PathError
	if errors.As(cause, &path) {
		say = path.Err
	}
	if errors.Is(cause, fs.ErrNotExist) {
		code = muster.NotFound
		if fi, err := os.Stat(s.Dir); s.Dir != "" && (err != nil || !fi.IsDir()) {
			return &muster.Error{Code: code, Message: "cannot start " + s.Argv[0] + ": there is no directory " + s.Dir, Err: cause}
		}
	}
	return &muster.Error{Code: code, Message: "cannot start " + s.Argv[0] + ": " + say.Error(), Err: cause}
}

func closed() error { return muster.Errorf(muster.Unavailable, "the launcher of tools is closed") }
