package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"muster"
	"muster/internal/durable"
)

// maxExclude is how large the exclude file may be, in bytes.
const maxExclude = 1 << 20

// excludes is git's exclude file, .git/info/exclude. It is the user's, counts in all worktrees, and is no part of what
// lands.
type excludes struct {
	dir    string   // the git directory that all worktrees share
	global string   // the user's file for all repositories; "" is none
	known  sync.Map // the lines when the repository was opened, and those of Exclude
}

// open notes the lines that are there now.
func (e *excludes) open(common, global string) {
	e.dir, e.global = common, global
	for _, line := range e.lines() {
		e.known.Store(line, true)
	}
}

// Exclude adds the patterns that are not there yet to .git/info/exclude, which counts in all worktrees. It leaves the
// user's .gitignore alone.
func (e *excludes) Exclude(_ context.Context, patterns []string) error {
	path := e.ExcludeFile()
	text, err := durable.ReadBelow(e.dir, path, maxExclude)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return muster.Errorf(muster.Unavailable, "git's exclude file cannot be read: %w", err).
			WithHint("muster writes to it: make it a plain file, with no link on the way")
	}
	for _, p := range patterns {
		e.known.Store(p, true)
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
	if err := appendLines(e.dir, path, lines); err != nil {
		return muster.Errorf(muster.Unavailable, "git's exclude file cannot be written: %w", err)
	}
	return nil
}

// ExcludeFile returns the path of git's exclude file, which is the user's and counts in all worktrees.
func (e *excludes) ExcludeFile() string { return filepath.Join(e.dir, "info", "exclude") }

// lines returns the lines of the exclude file, and of the user's for all repositories. One that cannot be read has
// none: git does not see it either.
func (e *excludes) lines() []string {
	text, _ := durable.ReadBelow(e.dir, e.ExcludeFile(), maxExclude)
	global, _ := filepath.EvalSymlinks(e.global) // a link in many homes
	shared, _ := durable.ReadRegular(global, maxExclude)
	return strings.Split(string(text)+"\n"+string(shared), "\n")
}

// AddedExcludes returns the patterns that have come into the two files since the repository was opened, without those
// that Exclude has added.
func (e *excludes) AddedExcludes() []string {
	var added []string
	for _, line := range e.lines() {
		_, isKnown := e.known.Load(line)
		if !isKnown && strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
			added = append(added, line)
		}
	}
	return added
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
