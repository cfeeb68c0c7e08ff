package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"muster"
)

// Exclude adds the patterns that are not there yet to .git/info/exclude, which counts in all worktrees. It leaves the
// user's .gitignore alone.
func (r *Repo) Exclude(_ context.Context, patterns []string) error {
	path := filepath.Join(r.common, "info", "exclude")
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return muster.Errorf(muster.Unavailable, "git's exclude file cannot be read: %w", err)
	}
	existing := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		existing[strings.TrimSpace(line)] = true
	}
	lines := ""
	for _, p := range patterns {
		if !existing[p] {
			lines += p + "\n"
		}
	}
	if lines == "" {
		return nil
	}
	if len(text) > 0 && text[len(text)-1] != '\n' {
		lines = "\n" + lines
	}
	if err := appendLines(path, lines); err != nil {
		return muster.Errorf(muster.Unavailable, "git's exclude file cannot be written: %w", err)
	}
	return nil
}

// appendLines appends with one write, so that a program that appends at the same time loses nothing.
func appendLines(path, lines string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(lines)
	return errors.Join(err, f.Sync(), f.Close())
}

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
