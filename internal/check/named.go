package check

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"muster"
	"muster/internal/git"
)

// Where there are several checks, they run side by side, each in a checkout of its own. All of them run to their ends,
// also when one has failed: whoever mends the work wants to know all that is wrong with it.

// runNamed is Run for the named checks.
func (r *Runner) runNamed(ctx context.Context, of Job, last Last) (Result, error) {
	began := time.Now()
	checks := r.options.Check.Named
	results, errs := make([]Result, len(checks)), make([]error, len(checks))
	// Where one has no answer, those of the others are not wanted.
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	run := func(i int) {
		c := checks[i]
		results[i], errs[i] = r.runInTurn(limited, c, of)
		if errs[i] != nil && c.Advisory && ctx.Err() == nil {
			results[i], errs[i] = Result{CannotRun: true, How: errs[i].Error(), Command: c.Command}, nil
		}
		if errs[i] != nil {
			cancel(errs[i])
		}
		results[i].Name, results[i].Advisory = c.Name, c.Advisory
	}
	var running sync.WaitGroup
	for i := range checks {
		running.Go(func() { run(i) })
	}
	running.Wait()
	if err := context.Cause(limited); err != nil {
		return Result{}, err
	}
	res := combine(results, muster.RequiredNames(checks))
	res.Seconds = time.Since(began).Seconds()
	if last == nil || res.CannotRun {
		return res, nil
	}
	return r.ask(ctx, of, last, res)
}

// The tokens are those of the Runner, so that the checks of all its callers share the machine. Nobody waits for another
// token while holding one, so none waits for ever.

// runInTurn runs one of the checks when there is room for it.
func (r *Runner) runInTurn(ctx context.Context, c muster.NamedCheck, of Job) (Result, error) {
	select {
	case r.running <- struct{}{}:
		defer func() { <-r.running }()
	case <-ctx.Done():
		return Result{}, context.Cause(ctx)
	}
	of.Name += "-" + c.Name
	return r.runOne(ctx, c, of, nil)
}

// ask asks last about a commit of which all checks have said something. It has a checkout of its own, because none of
// theirs has what all have made.
func (r *Runner) ask(ctx context.Context, of Job, last Last, said Result) (Result, error) {
	res, _, err := r.inCheckout(ctx, muster.NamedCheck{}, of, &said, last)
	if err != nil || res.Refused || res.CannotRun {
		return res, err
	}
	return said, nil
}

// NoFiles is how a check ends that has nothing to say, because the tree has none of its files. It is also the hash of
// no file.
const NoFiles = "no file matches its paths"

// The hash has the mode, the id and the path of each file, as git lists them. So a file that was renamed, removed or
// made executable changes it, and one that was changed and put back does not.

// HashFiles returns a hash of the files of a commit that match one of the patterns. A check that depends on nothing
// else says the same of two commits in which it is the same.
func HashFiles(ctx context.Context, repo *git.Repo, commit string, patterns []string) (string, error) {
	out, err := repo.Run(ctx, repo.CommonDir(), "ls-tree", "-r", "-z", "--full-tree", commit)
	if err != nil {
		return "", unavailable(ctx, "the commit cannot be read", err)
	}
	sum, hasAny := sha256.New(), false
	for entry := range strings.SplitSeq(out, "\x00") {
		if _, path, ok := strings.Cut(entry, "\t"); ok && isGuarded(path, patterns) {
			hasAny = true
			_, _ = io.WriteString(sum, entry+"\x00") // it never fails
		}
	}
	if !hasAny {
		return NoFiles, nil
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// isGuarded reports whether a path matches one of the patterns. The name of a directory stands for all that is in it.
func isGuarded(path string, patterns []string) bool {
	for _, p := range patterns {
		p = strings.TrimSuffix(p, "/")
		if doublestar.MatchUnvalidated(p, path) || doublestar.MatchUnvalidated(p+"/**", path) {
			return true
		}
	}
	return false
}
