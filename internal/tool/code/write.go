package code

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"muster"
	"muster/internal/text"
)

// writeInput is the input of write_file.
type writeInput struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

// write replaces a file or makes a new one.
func (t toolset) write(ctx context.Context, in writeInput) (string, error) {
	at, err := t.open(ctx, in.Path, true)
	if err != nil {
		return "", err
	}
	defer at.root.Close()
	verb, kept := "Wrote", ""
	old, err := at.stat()
	switch {
	case errors.Is(err, muster.ErrNotFound):
		verb = "Made"
	case err != nil:
		return "", err
	}
	// What cannot be read as text had no errors of syntax that count.
	before, form, was, err := t.readText(ctx, at)
	switch {
	case errors.Is(err, errNoText):
		return "", fmt.Errorf("%s is not text, so it is not replaced by text: if you mean that, delete it first (bash)",
			at.show)
	case was != nil:
		if err := t.seen.refuse(at, before, "writing"); err != nil {
			return "", err
		}
		in.Content, kept = withLineEnds(before, in.Content)
	default:
		before = in.Content // of which nothing is replaced
	}
	content, err := form.encode(before, in.Content)
	if err != nil {
		return "", fmt.Errorf("%s is not written: %w", at.show, err)
	}
	if was == nil {
		before = ""
	}
	change := FileChange{Path: at.show, Before: before, After: in.Content, IsNew: old == nil,
		IsUnread: old != nil && was == nil}
	if err := noteChanges(ctx, change); err != nil {
		return "", err
	}
	if err := at.replace(content, old); err != nil {
		return "", at.explain(err)
	}
	t.seen.noteText(at, in.Content)
	if form.name != "" {
		kept = fmt.Sprintf(" (%s)", form.name) + kept
	}
	return fmt.Sprintf("%s %s: %s%s.", verb, at.show, text.Count(countLines(in.Content), "line"), kept) +
		t.newSyntaxErrors(ctx, at, before, in.Content), nil
}

// withLineEnds returns content with the line ends of the text that it replaces, and what the model reads of that. Where
// one of the two has both kinds, it stays as it is.
func withLineEnds(before, content string) (string, string) {
	was, is := strings.Count(before, "\n"), strings.Count(content, "\n")
	wasCRLF, isCRLF := strings.Count(before, "\r\n"), strings.Count(content, "\r\n")
	switch {
	case was > 0 && is > 0 && wasCRLF == was && isCRLF == 0:
		return strings.ReplaceAll(content, "\n", "\r\n"), ", which end with CRLF as before"
	case was > 0 && is > 0 && wasCRLF == 0 && isCRLF == is:
		return strings.ReplaceAll(content, "\r\n", "\n"), ", which end with LF as before"
	}
	return content, ""
}

// replace writes content to the file. old describes the file, whose mode is kept. It is nil if there is
// none: then the missing directories are made, too. The content goes to a temporary file first, and its
// rename puts it in place: who reads the file meanwhile sees all of the old content or all of the new, also
// if this process is killed.
func (s confinedPath) replace(content string, old fs.FileInfo) (err error) {
	dir := filepath.Dir(s.rel)
	if old == nil {
		if err := s.root.MkdirAll(dir, 0o777); err != nil {
			return err
		}
	}
	// The temporary file is in the same directory, because a rename across file systems fails. Its random
	// name keeps two writes at the same time apart.
	temp := filepath.Join(dir, ".write-"+rand.Text())
	f, err := s.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = s.root.Remove(temp) // the first error is the one to report
		}
	}()
	_, err = f.WriteString(content)
	if old != nil {
		err = errors.Join(err, f.Chmod(old.Mode().Perm()))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return s.root.Rename(temp, s.rel)
}
