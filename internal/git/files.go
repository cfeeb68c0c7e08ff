package git

import (
	"context"
	"os"
	"time"

	"muster"
)

// The functions below work on a directory without opening its repository: the caller has no Repo, or there is none yet.

// ListFiles returns the files at or below dir that git tracks or would track, relative to dir. ok is false outside of
// a working tree, and where git knows of none, as in an ignored directory.
func ListFiles(ctx context.Context, dir string) (files []string, ok bool) {
	r := runner{env: cleanEnv(os.Environ())}
	out, err := r.Do(ctx, Call{Dir: dir, Upward: true, Args: []string{"ls-files", "-z", "--cached", "--others",
		"--exclude-standard", "--deduplicate"}})
	if err != nil || out == "" {
		return nil, false
	}
	return SplitNUL(out), true
}

// IsTracked reports whether git tracks the file of that name in dir. What git cannot tell counts as no.
func IsTracked(ctx context.Context, dir, name string) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r := runner{env: cleanEnv(os.Environ())}
	_, err := r.Do(ctx, Call{Dir: dir, Upward: true, Args: []string{"ls-files", "--error-unmatch", name}})
	return err == nil
}

// Init makes a repository of the files in dir, with one commit on the branch main.
func Init(ctx context.Context, dir, message string) error {
	r := runner{env: append(cleanEnv(os.Environ()), identityEnv(ownName, ownEmail)...)}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"add", "."}, {"commit", "-q", "--no-verify", "-m", message},
	} {
		if _, err := r.Run(ctx, dir, args...); err != nil {
			return muster.Errorf(muster.Unavailable, "the repository %s cannot be made: %w", dir, err)
		}
	}
	return nil
}
