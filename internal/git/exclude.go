package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"muster"
)

// Exclude adds the patterns that are not there yet to .git/info/exclude, which holds for all worktrees. The user's
// .gitignore is left alone.
func (r *Repo) Exclude(_ context.Context, patterns []string) error {
	path := filepath.Join(r.common, "info", "exclude")
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return muster.Errorf(muster.Unavailable, "git's exclude file cannot be read: %w", err)
	}
	there := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		there[strings.TrimSpace(line)] = true
	}
	var add strings.Builder
	for _, p := range patterns {
		if !there[p] {
			there[p] = true
			add.WriteString(p + "\n")
		}
	}
	if add.Len() == 0 {
		return nil
	}
	lines := add.String()
	if len(text) > 0 && text[len(text)-1] != '\n' {
		lines = "\n" + lines
	}
	if err := appendLines(path, lines); err != nil {
		return muster.Errorf(muster.Unavailable, "git's exclude file cannot be written: %w", err)
	}
	return nil
}

// appendLines writes in one piece at the end: whoever writes there at the same time loses nothing.
func appendLines(path, lines string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(lines)
	if serr := f.Sync(); err == nil {
		err = serr
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
