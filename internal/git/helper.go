package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/proc"
	"muster/internal/text"
)

// Helper starts git where it must be confined: in places where members write, and where what they made is unpacked. A
// sandbox is of one git alone.
type Helper interface {
	// ForFiles returns what starts programs of the system that may write below the directories write, and read the
	// repository, without its settings and other places, and what read names. ForFilters is the same for a git with
	// filters, which may be programs of the user's.
	ForFiles(read, write []string) proc.Launcher
	ForFilters(read, write []string) proc.Launcher
}

// SetHelper sets what starts git in places. open is called when it is needed first; its error is that of the call that
// needs it. Without one git runs there with the user's rights. It must be called before the repository is used; the
// first call counts.
func SetHelper(r *Repo, open func(context.Context) (Helper, error)) {
	if r.helper == nil {
		r.helper = open
	}
}

// How long one git in a place may take, how much memory it may use, which is much more than it needs for an object of
// the largest size, and how much it may print.
const (
	helperTime   = 10 * time.Minute
	helperMemory = 2 << 30
	helperOutput = 32 << 20
	helperErrors = 64 << 10
)

// looks are the commands of git that only look, and lookTime is for how many seconds of a processor such a one may
// work: those of the largest projects need a tenth of that.
var (
	looks    = []string{"status", "ls-files", "diff-index", "diff", "check-ignore"}
	lookTime = 30
)

// Do runs git in the working tree, confined. Call.Dir is "" for the top, or the path of a repository below it, in which
// git obeys whatever a command has written. Errors: *ExitError, the context's, and Unavailable.
func (p *Place) Do(ctx context.Context, c Call) (string, error) {
	r := p.repo
	env, read, write := r.placeEnv(), []string{p.Tree, p.Dir}, append([]string{p.GitDir()}, c.Write...)
	var settings []Setting
	isTop := c.Dir == "" || c.Dir == p.Tree
	if isTop {
		c.Dir = p.Tree
		settings = r.placeSettings(len(c.Args) > 0 && c.Args[0] == "add")
		// Both are named, so that no file of a command leads git to another directory.
		env = append(env, "GIT_DIR="+p.GitDir(), "GIT_COMMON_DIR="+p.Dir, "GIT_WORK_TREE="+p.Tree)
		read = append(read, filepath.Join(r.common, "git-crypt"))
	} else {
		// Whose the files are does not matter in a sandbox.
		settings = append(slices.Clip(always), Setting{"safe.directory", "*"})
		env = append(env, "GIT_CEILING_DIRECTORIES="+filepath.Dir(c.Dir))
		write = append(write, p.Modules()...)
	}
	if !c.ReadsTree {
		write = append(write, p.Tree)
	}
	ctx, end := EndAtPipe(ctx, !isTop, r.inSandbox(p.Tree, p.GitDir()), p.Tree, p.GitDir())
	defer end()
	settings = append(settings, c.Settings...)
	return r.confined(ctx, c, slices.Concat(env, SettingsEnv(nil, settings...), c.Env), write, read)
}

// placeSettings returns the settings of each git in a place: which changes it sees, and which drivers run. isStaging
// says that a file must have passed its filter.
func (r *runner) placeSettings(isStaging bool) []Setting {
	settings := slices.Concat(always, r.pinned, r.drivers.settings(isStaging)) // of the user's files it has copies
	if len(r.drivers.armed) > 0 {
		settings = append(settings, r.forPlaces.secret...)
	}
	return settings
}

// InCheckout runs git, confined, in a working tree where programs of the repository have run, with a git directory that
// they cannot write and that borrows the repository's objects.
func InCheckout(ctx context.Context, r *Repo, tree, gitDir string, args ...string) error {
	env := append(r.placeEnv(), SettingsEnv(nil, r.placeSettings(false)...)...)
	ctx, end := EndAtPipe(ctx, false, r.inSandbox(tree, gitDir), tree, gitDir)
	defer end()
	_, err := r.confined(ctx, Call{Dir: tree, Args: args}, append(env, "GIT_DIR="+gitDir, "GIT_WORK_TREE="+tree),
		[]string{tree, gitDir}, []string{filepath.Join(r.common, "git-crypt")})
	return err
}

// pipePatience is how long git may work in a place before muster looks whether it waits for a pipe.
const pipePatience = 2 * time.Second

// EndAtPipe returns a context for a git in a working tree, which ends where git waits for a pipe in the place of a
// file. run runs a script in a sandbox that sees the tree and the git directory. isAny says that git may open any file
// in the tree, because it obeys settings that are there; else it opens .gitignore and such, and what is in the git
// directory of another repository. end must be called.
func EndAtPipe(
	ctx context.Context, isAny bool, run func(ctx context.Context, script string, args ...string) (string, error),
	tree, gitDir string,
) (limited context.Context, end func()) {
	limited, cancel := context.WithCancelCause(ctx)
	pattern := "*/.git*"
	if isAny {
		pattern = "*"
	}
	watch := time.AfterFunc(pipePatience, func() {
		found, _ := run(limited, findPipe, pattern, tree, gitDir) // git has limits of its own
		if name, _, _ := strings.Cut(found, "\n"); name != "" {
			cancel(muster.Errorf(muster.Invalid, "%s is a pipe or a device, for which git would wait",
				strings.TrimPrefix(name, tree+"/")).WithHint("remove it: rm %s", text.ShellQuote(name)))
		}
	})
	return limited, func() { watch.Stop(); cancel(nil) }
}

// findPipe prints a pipe or a device that is below $3, or below $2 with a path of the pattern $1, or a link to one.
const findPipe = `find_at() {
	find "$1" -path "$2" \( -type p -o -type b -o -type c \) -print
	find "$1" -path "$2" -type l -exec sh -c '
		for f; do if [ -p "$f" ] || [ -c "$f" ] || [ -b "$f" ]; then echo "$f"; fi; done' sh {} +
}
{ find_at "$2" "$1"; find_at "$3" '*'; } 2>/dev/null | head -n 1`

// inSandbox returns what runs a script in a sandbox that reads directories.
func (r *runner) inSandbox(read ...string) func(ctx context.Context, script string, args ...string) (string, error) {
	return func(ctx context.Context, script string, args ...string) (string, error) {
		return r.confined(ctx, Call{Dir: read[0], Script: script, Args: args, Look: true}, r.placeEnv(), nil, read)
	}
}

// placeEnv returns the environment of a git in a place: none of the user's settings.
func (r *runner) placeEnv() []string {
	env := slices.DeleteFunc(slices.Clone(r.env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return name == "HOME" || name == "XDG_CONFIG_HOME" || strings.HasPrefix(name, "GIT_CONFIG")
	})
	return append(env, "HOME=/nonexistent", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
}

// confined runs git as the helper starts it.
func (r *runner) confined(ctx context.Context, c Call, env, write, read []string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, helperTime, muster.Errorf(muster.Unavailable,
		"git did not end within %v", helperTime))
	defer cancel()
	argv := append([]string{"--no-pager"}, plainDiff(c.Args)...)
	program := "git"
	if c.Script != "" { // with the git that all calls find
		env = append(slices.Clip(env), "PATH="+os.Getenv("PATH"))
		program, argv = "sh", append([]string{"-c", c.Script, "git"}, c.Args...)
	}
	var helper Helper
	if r.helper != nil {
		var err error
		if helper, err = r.helper(ctx); err != nil {
			return "", err
		}
	}
	if helper == nil { // nothing confines here
		return start(ctx, c, program, argv, env)
	}
	isLook := len(c.Args) > 0 && slices.Contains(looks, c.Args[0]) || c.Look
	if isLook { // patterns can take git any time
		limit := fmt.Sprintf(`ulimit -S -t %d && exec "$@"`, lookTime) // the soft limit: its signal is another one
		argv = append([]string{"-c", limit, "sh", program}, argv...)
		program = "sh"
	}
	errs, said, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer errs.Close()
	var out bytes.Buffer
	limited := c.limited(&out, helperOutput)
	s := proc.Spec{Argv: append([]string{program}, argv...), Dir: c.Dir, Env: env, Stdin: c.input(), Out: limited,
		Err: said, Limits: proc.Limits{Memory: helperMemory}}
	launcher := helper.ForFiles
	if len(r.drivers.armed) > 0 {
		launcher = helper.ForFilters
	}
	p, err := launcher(read, write).Start(ctx, s)
	_ = said.Close() // the program has its own
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(&text, io.LimitReader(errs, helperErrors))
		_, _ = io.Copy(io.Discard, errs) // so that git need not wait
	}()
	exit, err := p.Wait()
	<-done
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case limited.err != nil:
		return "", muster.Errorf(muster.Invalid, "git says more than anybody reads: %w", limited.err)
	case err != nil:
		return "", err
	case isLook && exit == 128+24: // killed by SIGXCPU
		return "", muster.Errorf(muster.Invalid, "git has worked for %d seconds only to see what has changed",
			lookTime).
			WithHint("patterns in .gitignore and .gitattributes with many stars can take any time: make them simpler")
	case exit != 0:
		e := &ExitError{Args: c.Args, Code: exit, Stderr: text.String()}
		if exit > 128 && e.Stderr == "" { // git itself ends with 128 after a fatal error, and says which
			e.Code = -1
			e.Stderr = fmt.Sprintf("it was killed, as where it needs more than %d MB of memory", helperMemory>>20)
		}
		return out.String(), e
	case c.Warned != nil:
		*c.Warned = text.Len() > 0
	}
	return out.String(), nil
}

// ErrTooMuch says that git has printed more than Call.MaxOut, or than anybody reads.
var ErrTooMuch = errors.New("git prints too much")

// limitedWriter fails beyond a limit, which ends the program. It remembers its error.
type limitedWriter struct {
	w    io.Writer
	left int64
	err  error
}

func (l *limitedWriter) Write(data []byte) (n int, err error) {
	if l.left -= int64(len(data)); l.left < 0 {
		err = ErrTooMuch
	} else {
		n, err = l.w.Write(data)
	}
	l.err = cmp.Or(l.err, err)
	return n, err
}
