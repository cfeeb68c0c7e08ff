package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

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
