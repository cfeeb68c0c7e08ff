package git

import (
	"context"
	"os"
	"path/filepath"

	"muster"
)

// NewScratch makes a repository in dir, which must be empty, that has a commit of the repository r checked out, and a
// branch at the commit. It reads the objects of r where they are, and neither its refs, its config nor its hooks: what
// is done in dir changes nothing of r. Errors: NotFound when r has no such commit.
func NewScratch(ctx context.Context, r *Repo, dir, commit, branch string) error {
	if !IsID(commit) {
		return muster.Errorf(muster.Invalid, "%.80q is no commit", commit)
	}
	if _, err := r.Run(ctx, r.CommonDir(), "cat-file", "-e", commit+"^{commit}"); isExit(err) {
		return muster.Errorf(muster.NotFound, "this repository has no commit %.12s", commit)
	} else if err != nil {
		return err
	}
	format := "sha1"
	if len(commit) > 40 {
		format = "sha256"
	}
	there := runner{env: append(cleanEnv(os.Environ()), identityEnv(ownName, ownEmail)...)}
	_, err := there.Run(ctx, dir, "init", "-q", "--template=", "--object-format="+format, "-b", "scratch")
	info := filepath.Join(dir, ".git", "objects", "info")
	if err == nil {
		err = os.MkdirAll(info, 0o700)
	}
	if err == nil {
		objects := filepath.Join(r.CommonDir(), "objects") + "\n"
		err = os.WriteFile(filepath.Join(info, "alternates"), []byte(objects), 0o600)
	}
	for _, args := range [][]string{
		{"update-ref", "refs/heads/scratch", commit}, {"branch", "--no-track", "--", branch, commit},
		{"reset", "-q", "--hard", commit},
	} {
		if err == nil {
			_, err = there.Run(ctx, dir, args...)
		}
	}
	if err != nil {
		return muster.Errorf(muster.Unavailable, "the scratch repository cannot be made: %w", err)
	}
	return nil
}
