package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"muster"
	"muster/internal/durable"
)

const maxExclude = 1 << 20

// excludes is git's exclude file, .git/info/exclude. It is the user's, counts in all worktrees, and is no part of what
// lands. Git in places sees it as it was when the repository was opened: what a member adds would hide what it makes.
type excludes struct {
	sync.Mutex
	text []byte // as it was, with what Exclude has added
}

func (r *runner) readExclude() ([]byte, error) {
	return durable.ReadBelow(r.common, r.excludeFile(), maxExclude)
}

func (r *runner) excludeFile() string { return filepath.Join(r.common, "info", "exclude") }

// Exclude adds the patterns that are not there yet to .git/info/exclude, which counts in all worktrees. It leaves the
// user's .gitignore alone.
func (r *Repo) Exclude(_ context.Context, patterns []string) error {
	text, err := r.readExclude()
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return muster.Errorf(muster.Unavailable, "git's exclude file cannot be read: %w", err).
			WithHint("muster writes to it: make it a plain file, with no link on the way")
	}
	r.excludes.Lock()
	r.excludes.text = append(slices.Clip(r.excludes.text), missingLines(r.excludes.text, patterns)...)
	r.excludes.Unlock()
	if lines := missingLines(text, patterns); lines != "" {
		if err := appendLines(r.common, r.excludeFile(), lines); err != nil {
			return muster.Errorf(muster.Unavailable, "git's exclude file cannot be written: %w", err)
		}
	}
	return nil
}

// excluded returns what git in places sees of the file.
func (e *excludes) excluded() []byte {
	e.Lock()
	defer e.Unlock()
	return e.text
}

// missingLines returns those of the lines that a text lacks, as they are appended to it.
func missingLines(text []byte, lines []string) (missing string) {
	existing := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		existing[strings.TrimSpace(line)] = true
	}
	for _, line := range lines {
		if !existing[line] {
			missing += line + "\n"
		}
	}
	if missing != "" && len(text) > 0 && text[len(text)-1] != '\n' {
		return "\n" + missing
	}
	return missing
}

// appendLines appends with one write, so that a program that appends at the same time loses nothing.
func appendLines(root, path, lines string) error {
	if err := (durable.OS{Root: root}).Mkdir(filepath.Dir(path), 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	f, err := durable.OpenBelow(root, path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(lines)
	return errors.Join(err, f.Sync(), f.Close())
}
