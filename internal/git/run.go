package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"muster"
	"muster/internal/proc"
	"muster/internal/redact"
)

// Call is one run of git.
type Call struct {
	Dir      string // where git runs: the top level of a worktree, or the git directory
	Args     []string
	Stdin    string
	In       *os.File  // read in place of Stdin
	Out      io.Writer // gets what is printed in place of the caller; an error of it, or more than MaxOut bytes ends it
	Env      []string  // added to the clean environment: GIT_INDEX_FILE and such
	MaxOut   int64
	Settings []Setting // count for this call
	// Upward lets git look above Dir for the repository. Only finding one needs it: a lane that lost its .git file must
	// not be taken for a directory of the user's checkout.
	Upward bool
	Bare   bool // git reads no working tree
	// Uninterruptible lets git end by itself, whatever becomes of ctx and of this process: a git that moves refs and is
	// asked to stop may leave its locks behind. It is for calls that end at once. Their output is dropped, so that no
	// broken pipe ends them.
	Uninterruptible bool
	Script          string // of the shell, run in place of git, with Args, in a place; "" is none
	Look            bool   // the script only looks
	// Write are directories that git writes besides, in a place. ReadsTree says that it does not write the working
	// tree.
	Write     []string
	ReadsTree bool
	// Warned is set when git succeeds and writes to standard error. Nil asks nothing.
	Warned *bool
}

func (c Call) input() io.Reader {
	if c.In != nil {
		return c.In
	}
	return strings.NewReader(c.Stdin)
}

// limited returns the writer of standard output: c.Out with its limit c.MaxOut, or else out with at most most bytes.
func (c Call) limited(out io.Writer, most int64) *limitedWriter {
	if c.Out != nil {
		return &limitedWriter{w: c.Out, left: c.MaxOut}
	}
	return &limitedWriter{w: out, left: most}
}

// ExitError says that git ended with a code other than 0.
type ExitError struct {
	Args   []string
	Code   int // -1 when a signal ended it
	Stderr string
}

// Error gives git's own words, or the exit code when it said nothing.
func (e *ExitError) Error() string {
	return "git " + e.Args[0] + ": " + cmp.Or(strings.TrimSpace(e.Stderr), fmt.Sprintf("exit %d", e.Code))
}

// ExitCode returns the code with which git ended: 0 for nil, -1 when err is something else than an ExitError. Many
// commands end with code 1 to say "no" or "none".
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[*ExitError](err); ok {
		return e.Code
	}
	return -1
}

// isExit reports whether git ran and failed: another try may help, unlike when it could not run at all.
func isExit(err error) bool {
	_, ok := errors.AsType[*ExitError](err)
	return ok
}

// runner runs git. Its environment and settings are what every call has in common.
type runner struct {
	env    []string
	common string // the git directory that all worktrees share; "" while the repository is not known
	root   string // the top level of the main worktree; git gets it, because a config may name another one
	userConfig
	helper func(context.Context) (Helper, error) // starts git in places; nil: nothing confines it
}

// Run runs git in dir, as the runtime's identity, and returns its standard output. Errors: *ExitError, or the
// context's.
func (r *runner) Run(ctx context.Context, dir string, args ...string) (string, error) {
	return r.Do(ctx, Call{Dir: dir, Args: args})
}

// patience is how long a git that is asked to end may take before it is killed, and how long the output of one that has
// ended may take to arrive: seconds on a busy machine. Without all of it the call fails.
const patience = 10 * time.Second

// maxOutput is how many bytes a git may print, with the user's rights: as much as a list of two million files.
const maxOutput = 256 << 20

// Do runs one call. Every git of the program is started here. The end of ctx asks git to stop (it then removes its lock
// files), and kills it when it does not.
func (r *runner) Do(ctx context.Context, c Call) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", context.Cause(ctx)
	}
	if c.Dir != r.common && r.common != "" && HasPlace(r.common, c.Dir) {
		return "", muster.Errorf(muster.Invalid, "git works confined in %s, because commands of members write there: "+
			"see Place.Do", c.Dir)
	}
	settings := slices.Concat(always, r.pinned, r.userFiles, r.drivers.settings(false), c.Settings)
	args := []string{"--no-pager"}
	if c.Bare {
		args = append(args, "--bare")
	}
	args = append(args, plainDiff(c.Args)...)
	if c.Uninterruptible {
		ctx = context.WithoutCancel(ctx)
	}
	env := append(slices.Clip(r.env), SettingsEnv(r.env, settings...)...)
	// GIT_CEILING_DIRECTORIES keeps git from looking above Dir when Dir is no worktree any more.
	if c.Dir == r.common {
		env = append(env, "GIT_DIR="+r.common) // git may be configured not to find a bare one itself
	} else if !c.Upward {
		env = append(env, r.within(c.Dir)...)
	}
	return start(ctx, c, "git", args, append(env, c.Env...))
}

// start starts git, or a script that does, and returns what it has printed.
func start(ctx context.Context, c Call, program string, args, env []string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.Dir = env, c.Dir
	var out, errs bytes.Buffer
	cmd.Stderr = &errs
	limited := c.limited(&out, maxOutput)
	cmd.Stdin, cmd.Stdout = c.input(), limited
	// Every git but one that moves refs ends with this process: the next muster must find nobody at work.
	cmd.SysProcAttr = newAttributes(!c.Uninterruptible)
	if c.Uninterruptible {
		cmd.Stdout = nil
	}
	err := run(cmd)
	if err == nil {
		if c.Warned != nil {
			*c.Warned = errs.Len() > 0
		}
		return out.String(), nil
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if limited.err != nil { // which has ended git by a broken pipe
		return "", limited.err
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return out.String(), &ExitError{Args: c.Args, Code: exit.ExitCode(), Stderr: errs.String()}
	}
	return "", err
}

// run runs a command that the end of its context asks to end first, so that git can remove its lock files.
func run(cmd *exec.Cmd) error {
	cmd.Cancel = func() error {
		if cmd.Process.Signal(syscall.SIGTERM) == nil {
			return nil
		}
		return cmd.Process.Kill() // Windows has no signal to ask with
	}
	cmd.WaitDelay = patience
	// The kernel ends git when the thread that started it ends, and Go ends threads. A locked one lives until Run
	// returns.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return cmd.Run()
}

// within returns the environment that keeps git in dir, the top level of a worktree.
func (r *runner) within(dir string) []string {
	env := []string{"GIT_CEILING_DIRECTORIES=" + filepath.Dir(dir)}
	switch {
	case strings.ContainsRune(dir, filepath.ListSeparator): // which a list of directories cannot hold
		env = []string{"GIT_DIR=" + cmp.Or(DirOf(dir), filepath.Join(dir, ".git")), "GIT_WORK_TREE=" + dir}
	case dir == r.root:
		env = append(env, "GIT_WORK_TREE="+dir)
	}
	return env
}

// keptVariables are the GIT_* of the user's environment that say where git and its settings lie, not which repository
// to use, and whether git-lfs may fetch files.
var keptVariables = []string{"GIT_EXEC_PATH", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM",
	"GIT_LFS_SKIP_SMUDGE"}

// Environ returns env without what redirects git. It is for the runtime's own calls and for the programs that it
// starts.
func Environ(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return strings.HasPrefix(name, "GIT_") && !slices.Contains(keptVariables, name)
	})
}

// cleanEnv returns the environment of the runtime's own calls: git asks nobody, speaks English, and fetches nothing. It
// has the settings that the user's environment gives git, as CI machines name safe directories, and no credentials:
// commands of agents can read it in /proc while git runs, and the filters that git runs get it.
func cleanEnv(all []string) []string {
	secrets := redact.New(redact.FromEnviron(all)...)
	env := slices.DeleteFunc(Environ(all), func(kv string) bool {
		name, value, _ := strings.Cut(kv, "=")
		return name == "LANGUAGE" || name == "LC_ALL" || redact.IsCredential(name) || len(redact.InURLs(value)) > 0 ||
			secrets.Contains(value)
	})
	kept := slices.DeleteFunc(given(all), func(s Setting) bool {
		return secrets.Contains(s.Value) || len(redact.InText(s.Key+"="+s.Value)) > 0
	})
	return append(append(env, SettingsEnv(nil, kept...)...),
		"LC_ALL=C",
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=true", "SSH_ASKPASS=true",
		"GIT_EDITOR=true", "GIT_SEQUENCE_EDITOR=true", "GIT_MERGE_AUTOEDIT=no",
		"GIT_PAGER=cat",
		"GIT_OPTIONAL_LOCKS=0",
		"GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1", // not even a partial clone's missing blobs
		"GIT_LFS_SKIP_DOWNLOAD_ERRORS=1", // a file that git-lfs cannot get stays a pointer
		// Commits, trees and files are what their ids say. An agent can write replacements for them.
		"GIT_NO_REPLACE_OBJECTS=1", "GIT_GRAFT_FILE="+os.DevNull,
	)
}

// given returns the settings that an environment gives git.
func given(env []string) (settings []Setting) {
	count, _ := strconv.Atoi(proc.Variable(env, "GIT_CONFIG_COUNT"))
	for i := range count {
		n := strconv.Itoa(i)
		s := Setting{proc.Variable(env, "GIT_CONFIG_KEY_"+n), proc.Variable(env, "GIT_CONFIG_VALUE_"+n)}
		if s.Key == "" { // git would refuse them all
			break
		}
		settings = append(settings, s)
	}
	return settings
}

// SettingsEnv passes settings to git through the environment, after those of env: there keys may hold any character,
// and git's own children get them too.
func SettingsEnv(env []string, settings ...Setting) []string {
	from := len(given(env))
	more := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(from+len(settings))}
	for i, s := range settings {
		n := strconv.Itoa(from + i)
		more = append(more, "GIT_CONFIG_KEY_"+n+"="+s.Key, "GIT_CONFIG_VALUE_"+n+"="+s.Value)
	}
	return more
}
