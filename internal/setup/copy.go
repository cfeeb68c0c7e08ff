package setup

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster/internal/git"
	"muster/internal/proc"
	"muster/internal/text"
)

// What a set-up has made was written by programs of the repository. So the programs that list and copy it run where
// the set-up itself runs: in a sandbox, with limits.

// FileLauncher is a launcher that can confine muster's own programs: those that work where programs of the repository
// have run.
type FileLauncher interface {
	// ForFiles returns a launcher for programs that read and write in some directories, and have no network.
	ForFiles(read, write []string) proc.Launcher
}

// ForFiles returns what FileLauncher says, and l where that does not confine.
func ForFiles(l proc.Launcher, read, write []string) proc.Launcher {
	if f, ok := l.(FileLauncher); ok {
		return f.ForFiles(read, write)
	}
	return l
}

//go:embed copy.sh
var copyScript string

const (
	copyTimeout = 10 * time.Minute
	maxOutput   = 256 << 10 // bytes of names that are printed, or given to a program
)

// errOccupied is the error for a path in a checkout where something is already.
var errOccupied = errors.New("something is there already")

// errTooMuch is the error for more output than maxOutput.
var errTooMuch = errors.New("it has made too many files beside those of the commit")

// output keeps what a program prints, up to maxOutput.
type output struct{ bytes.Buffer }

func (o *output) Write(p []byte) (int, error) {
	if o.Len()+len(p) > maxOutput {
		return 0, errTooMuch
	}
	return o.Buffer.Write(p)
}

// run runs a program in dir, which it reads. It writes only in the directories of write. The error says what it printed
// last if it failed.
func (j Job) run(ctx context.Context, dir string, write []string, argv ...string) (out string, exit int, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, copyTimeout, fmt.Errorf("it took longer than %s", copyTimeout))
	defer cancel()
	l, err := j.Launch()
	if err != nil {
		return "", 0, err
	}
	env := proc.WithVariables(git.Environ(j.Environ), "LC_ALL=C", "PWD="+dir, "TMPDIR=", "GIT_OPTIONAL_LOCKS=0",
		"GIT_CONFIG_GLOBAL="+os.DevNull,
		// Whose the files are does not matter in a sandbox.
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
	var o output
	p, err := ForFiles(l, []string{dir}, write).Start(ctx, proc.Spec{Argv: argv, Dir: dir, Env: env, Out: &o})
	if err != nil {
		return "", 0, err
	}
	if exit, err = p.Wait(); err == nil && exit != 0 {
		lines := strings.Split(strings.TrimSpace(o.String()), "\n")
		err = fmt.Errorf("exit %d: %s", exit, text.CutBytes(text.OneLine(lines[len(lines)-1]), 200))
	}
	return o.String(), exit, err
}

// copy runs copy.sh: it copies or removes roots, which are paths below from or to.
func (j Job) copy(ctx context.Context, mode, from, to string, roots []string) (out string, err error) {
	argv := append(proc.Shell(copyScript), "copy.sh", mode, to, strconv.Itoa(maxEntryFiles),
		strconv.FormatInt(maxEntryBytes, 10))
	for _, root := range roots {
		argv = append(argv, "./"+strings.TrimSuffix(root, "/"))
	}
	out, exit, err := j.run(ctx, from, []string{to}, argv...)
	if exit == 3 {
		err = errOccupied
	}
	return out, err
}

// keep copies roots into an empty directory of the store, and notes in e what they are. isBound says that they work in
// their checkout only.
func (j Job) keep(ctx context.Context, to string, e *Entry) (isBound bool, err error) {
	out, err := j.copy(ctx, "keep", j.Dir, to, e.Roots)
	if err != nil {
		return false, err
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	kind := ""
	if _, err := fmt.Sscan(lines[len(lines)-1], &e.Files, &e.Bytes, &kind); err != nil {
		return false, fmt.Errorf("the copy ended with %q: %w", lines[len(lines)-1], err)
	}
	return kind == "bound", nil
}

// put puts roots of an entry into a checkout. Nothing that is there is replaced. After an error, what was put is
// removed again.
func (j Job) put(ctx context.Context, e Entry, roots []string) error {
	_, err := j.copy(ctx, "put", e.content(), j.Dir, roots)
	if err == nil || errors.Is(err, errOccupied) {
		return err
	}
	return errors.Join(err, j.remove(context.WithoutCancel(ctx), e, roots))
}

// remove removes from a checkout what was put there.
func (j Job) remove(ctx context.Context, e Entry, roots []string) error {
	_, err := j.copy(ctx, "remove", e.content(), j.Dir, roots)
	return err
}

// endAtPipe is git.EndAtPipe for a git in the checkout.
func (j Job) endAtPipe(ctx context.Context) (limited context.Context, end func()) {
	run := func(ctx context.Context, script string, args ...string) (string, error) {
		out, _, err := j.run(ctx, j.Dir, nil, slices.Concat(proc.Shell(script), []string{"sh"}, args)...)
		return out, err
	}
	return git.EndAtPipe(ctx, true, run, j.Dir, filepath.Join(j.Dir, ".git"))
}

// made returns what is in a checkout and not in its commit: the upper paths only. Those of directories end with a
// slash. The error names a file of the commit that was changed.
func (j Job) made(ctx context.Context) (roots []string, err error) {
	ctx, end := j.endAtPipe(ctx)
	defer end()
	// What git ignores is listed too: the set-up may have changed what that is.
	out, _, err := j.run(ctx, j.Dir, nil, proc.Shell("git status --porcelain -z --untracked-files=no --no-renames "+
		"--ignore-submodules=all 2>/dev/null && git ls-files -z -t --others --directory 2>/dev/null")...)
	if err != nil {
		return nil, fmt.Errorf("git cannot tell what it has made: %w", err)
	}
	for _, entry := range git.SplitNUL(out) {
		root, isMade := strings.CutPrefix(entry, "? ")
		if !isMade {
			return nil, fmt.Errorf("it changes %s, which git tracks", strings.TrimSpace(entry[min(2, len(entry)):]))
		}
		roots = append(roots, root)
	}
	return roots, nil
}

// ignored returns those of the paths that git ignores in a checkout.
func (j Job) ignored(ctx context.Context, roots []string) ([]string, error) {
	ctx, end := j.endAtPipe(ctx)
	defer end()
	argv := append(proc.Shell(`printf './%s\0' "$@" | git check-ignore -z --no-index --stdin`), "sh")
	out, exit, err := j.run(ctx, j.Dir, nil, append(argv, roots...)...)
	if err != nil && exit != 1 { // 1: none is
		return nil, err
	}
	known := git.SplitNUL(out)
	return slices.DeleteFunc(slices.Clone(roots), func(r string) bool { return !slices.Contains(known, "./"+r) }), nil
}
