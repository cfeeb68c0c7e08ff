package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"muster"
	"muster/internal/durable"
	"muster/internal/failpoint"
	"muster/internal/text"
)

// Resolve returns the commit that rev names. Errors: NotFound, Invalid.
func (r *Repo) Resolve(ctx context.Context, rev string) (string, error) {
	return r.ResolveIn(ctx, r.common, rev)
}

// ResolveIn is Resolve as the worktree at dir sees it: HEAD is that worktree's.
func (r *Repo) ResolveIn(ctx context.Context, dir, rev string) (string, error) {
	if rev == "" || strings.HasPrefix(rev, "-") || strings.ContainsAny(rev, "\n\x00") {
		return "", muster.Errorf(muster.Invalid, "%q does not name a commit", rev)
	}
	if dir == r.common {
		if id := r.readCommit(rev); id != "" {
			return id, nil
		}
	}
	id, err := r.revParse(ctx, dir, rev, "commit")
	if err == nil {
		r.commits.known.Store(id, true)
	}
	return id, err
}

func (r *runner) revParse(ctx context.Context, dir, rev, kind string) (string, error) {
	out, err := r.Run(ctx, dir, "rev-parse", "--verify", "-q", rev+"^{"+kind+"}")
	if ExitCode(err) == 1 { // any other code is a git that failed, and says nothing of the object
		return "", muster.Errorf(muster.NotFound, "there is no commit %s", rev)
	}
	return strings.TrimSpace(out), err
}

// Head returns the commit of the user's checkout.
func (r *Repo) Head(ctx context.Context) (string, error) {
	return r.ResolveIn(ctx, r.headDir(), "HEAD")
}

// headDir returns where git finds the HEAD of the user's checkout: in the common directory that of the main worktree.
func (r *Repo) headDir() string {
	if r.here == r.root {
		return r.common
	}
	return r.here
}

// CurrentBranch returns the branch of the user's checkout as refs/heads/..., "" when its HEAD is detached.
func (r *Repo) CurrentBranch(ctx context.Context) (string, error) {
	out, err := r.Run(ctx, r.headDir(), "symbolic-ref", "-q", "HEAD")
	if ExitCode(err) == 1 {
		return "", nil
	}
	return strings.TrimSpace(out), err
}

// IsAncestor reports whether commit a is b or lies in its history.
func (r *Repo) IsAncestor(ctx context.Context, a, b string) (bool, error) {
	// A landing asks about the commits that it has just made.
	for at := b; IsID(a) && a != ""; {
		if at == a {
			return true, nil
		}
		made, ok := r.commits.made.Load(at)
		if !ok {
			break
		}
		at = made.(madeCommit).parent
	}
	return r.hasBase(ctx, "--is-ancestor", a, b)
}

// Related reports whether commits a and b have any commit in common.
func (r *Repo) Related(ctx context.Context, a, b string) (bool, error) { return r.hasBase(ctx, a, b) }

// hasBase runs git merge-base, which ends with code 1 to say no.
func (r *runner) hasBase(ctx context.Context, args ...string) (bool, error) {
	_, err := r.Run(ctx, r.common, append([]string{"merge-base"}, args...)...)
	if ExitCode(err) == 1 {
		return false, nil
	}
	return err == nil, err
}

// Ref returns the value of a ref, "" when there is none.
func (r *Repo) Ref(ctx context.Context, ref string) (string, error) {
	if id, ok := r.refValue(ref); ok {
		return id, nil
	}
	all, err := r.Refs(ctx, ref)
	return all[ref], err
}

// Branch returns where a branch (refs/heads/...) is, "" when there is none or when it is broken. link is the ref that
// it leads to when it is symbolic, "" when it is a branch of its own.
func (r *Repo) Branch(ctx context.Context, ref string) (commit, link string, err error) {
	if id, ok := r.refValue(ref); ok {
		return id, "", nil
	}
	link, err = r.Run(ctx, r.common, "symbolic-ref", "-q", ref)
	if ExitCode(err) < 0 { // 1: it is not symbolic; 128: it is broken
		return "", "", err
	}
	all, err := r.Refs(ctx, ref) // one that leads nowhere is not among them
	return all[ref], strings.TrimSpace(link), err
}

// Refs returns the refs that equal one of the patterns, lie below it as in a directory, or match it as a glob.
func (r *Repo) Refs(ctx context.Context, patterns ...string) (map[string]string, error) {
	args := append([]string{"for-each-ref", "--format=%(refname) %(objectname)"}, patterns...)
	out, err := r.Run(ctx, r.common, args...)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for line := range strings.Lines(out) {
		if ref, sha, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			all[ref] = sha
		}
	}
	return all, nil
}

// LogMessage is what the logs of refs say of each move by the runtime.
const LogMessage = "muster"

// InTheWay returns the refs whose names keep a branch (refs/heads/...) from being made, with their commits. It removes
// a file in the branch's place that git cannot read as a ref: git would neither read nor replace it.
func InTheWay(ctx context.Context, r *Repo, ref string) (map[string]string, error) {
	found, err := r.Refs(ctx, withDirectories(ref)...)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(found, func(other, _ string) bool { return !excludeEachOther(ref, other) })
	if !r.hasRefFiles() {
		return found, nil
	}
	file := filepath.Join(r.common, filepath.FromSlash(ref))
	data, err := readFile(file)
	text := strings.TrimRight(string(data), "\n")
	if err == nil && (text == "" || !IsID(text)) && !strings.HasPrefix(text, "ref: ") {
		if err := os.Remove(file); err != nil {
			return nil, muster.Errorf(muster.Unavailable, "%s is no ref and cannot be removed: %w", file, err)
		}
	}
	return found, nil
}

// withDirectories returns a ref and those of which it could be below, which ask git for all that can be in its way.
func withDirectories(ref string) (all []string) {
	for ; strings.Count(ref, "/") > 1; ref = path.Dir(ref) {
		all = append(all, ref)
	}
	return all
}

// excludeEachOther reports whether one of two refs has the name of a directory of the other.
func excludeEachOther(a, b string) bool {
	return strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}

// RefUpdate moves one ref from Old to New. Old "": it must not exist yet. New "": it is deleted. New equal to Old: it
// must be at Old; a symbolic ref is replaced by a plain one at that commit, and any other is left as it is. Both "": it
// must not exist.
type RefUpdate struct{ Ref, New, Old string }

// UpdateRefs moves all the refs or none, and syncs them to disk. It waits for another git that holds a lock, longer
// than the age at which a lock is a dead git's: that one it breaks. Once git has begun, the end of ctx does not stop
// it. A symbolic ref is replaced, and what it leads to stays: whoever made the target symbolic would else have a
// landing move another branch. Errors: Stale when a ref is not at its Old (nothing moved), Held when another branch's
// name is in the way, Unavailable.
func (r *Repo) UpdateRefs(ctx context.Context, updates []RefUpdate) error {
	if len(updates) == 0 {
		return nil
	}
	script, err := transactionScript(updates)
	if err != nil {
		return err
	}
	began := time.Now()
	paths := []string{filepath.Join(r.common, packedRefsLock)}
	for _, u := range updates {
		paths = append(paths, refLock(r.common, u.Ref))
	}
	for try := 1; ; try++ {
		failpoint.Hit("refs.begin")
		_, err := r.Do(ctx, Call{Dir: r.common, Stdin: script, Uninterruptible: true,
			Args: []string{"update-ref", "-m", LogMessage, "--no-deref", "--stdin"}})
		if err == nil {
			failpoint.Hit("refs.moved")
			defer failpoint.Hit("refs.end")
			return syncRefs(r.common, updates)
		}
		if !isExit(err) {
			return err
		}
		if err := checkRefs(ctx, r, updates); err != nil {
			return err
		}
		// Every ref is where it should be: another git holds a lock for an instant, or died with it.
		lockErr := clearLocks(ctx, paths, false)
		if held, ok := errors.AsType[*muster.Error](lockErr); ok && held.Code == muster.Held {
			return muster.Errorf(muster.Unavailable, "a ref cannot be moved: %w", err).WithHint("%s", held.Hint)
		}
		if lockErr == nil {
			lockErr = pause(ctx, min(try, 20)) // a lock may also be one that is not in the list, such as HEAD's
		}
		if lockErr != nil {
			return lockErr
		}
		if time.Since(began) > lockTimeout {
			return muster.Errorf(muster.Unavailable, "a ref cannot be moved: %w", err)
		}
	}
}

func transactionScript(updates []RefUpdate) (string, error) {
	script := "start\n"
	for _, u := range updates {
		isRef := strings.HasPrefix(u.Ref, "refs/") && !strings.ContainsAny(u.Ref, " \t\n\x00\"")
		if !isRef || !IsID(u.New) || !IsID(u.Old) {
			return "", muster.Errorf(muster.Invalid, "%q cannot be moved from %q to %q", u.Ref, u.Old, u.New)
		}
		none := strings.Repeat("0", max(len(u.New), len(u.Old))) // git's word for a ref that is not there
		if u.New == "" && u.Old == "" {
			script += "verify " + u.Ref + "\n"
			continue
		}
		// Where both are equal, git writes nothing, unless the ref is symbolic.
		script += fmt.Sprintf("update %s %s %s\n", u.Ref, cmp.Or(u.New, none), cmp.Or(u.Old, none))
	}
	return script + "prepare\ncommit\n", nil
}

// IsID reports whether s is a complete object id, of SHA-1 or SHA-256, or "". An abbreviated one could name another
// object later.
func IsID(s string) bool {
	return (len(s) == 0 || len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// checkRefs finds out why refs did not move. It returns nil when every ref is where it should be, so that another try
// makes sense.
func checkRefs(ctx context.Context, r *Repo, updates []RefUpdate) error {
	var patterns []string
	for _, u := range updates {
		patterns = append(patterns, withDirectories(u.Ref)...)
	}
	now, err := r.Refs(ctx, patterns...)
	if err != nil {
		return err
	}
	for _, u := range updates {
		if now[u.Ref] != u.Old {
			return muster.Errorf(muster.Stale, "%s is at %.7s, not at %.7s", u.Ref, cmp.Or(now[u.Ref], "nothing"),
				cmp.Or(u.Old, "nothing"))
		}
		for ref := range now {
			if u.Old == "" && excludeEachOther(u.Ref, ref) {
				return muster.Errorf(muster.Held, "%s cannot be made: the name of %s is in its way", u.Ref, ref).
					WithHint("git branch -m %s ANOTHER-NAME", text.ShellQuote(strings.TrimPrefix(ref, "refs/heads/")))
			}
		}
	}
	return nil
}

// syncRefs makes the names of moved refs durable. git has synced the files themselves, and a power cut could still lose
// the directory entries.
func syncRefs(common string, updates []RefUpdate) error {
	dirs := map[string]bool{".": true, "reftable": true} // "." has packed-refs
	for _, u := range updates {
		for dir := path.Dir(u.Ref); dir != "."; dir = path.Dir(dir) { // git makes those above that are missing
			dirs[dir] = true
		}
	}
	for dir := range dirs {
		// A directory that a deletion emptied is gone, and only some repositories have a reftable.
		if err := (durable.OS{}).SyncDir(filepath.Join(common, dir)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return muster.Errorf(muster.Unavailable, "%s cannot be synced: %w", filepath.Join(common, dir), err)
		}
	}
	return nil
}
