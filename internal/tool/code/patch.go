package code

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode"

	"muster"
	"muster/internal/text"
	"muster/internal/textmatch"
)

// patchInput is the input of apply_patch.
type patchInput struct {
	Input string `json:"input" jsonschema:"from *** Begin Patch to *** End Patch"`
}

// stagedFile is a file as a patch found it, and as it leaves it. Nothing is written before all of the patch fits.
type stagedFile struct {
	confinedPath
	info          fs.FileInfo // nil if there was none
	before, after string
	form          charset
	content       string      // after, as it is written
	isGone        bool        // there is to be none
	from          *stagedFile // the file of the disk that was moved here; nil: none was
}

// staging holds the files of a patch in the order in which they are written.
type staging struct {
	tools toolset
	files []*stagedFile
}

// patch applies a patch. The files are written only when all of it fits; if one then cannot be written, those before
// it get their content back.
func (t toolset) patch(ctx context.Context, in patchInput) (string, error) {
	files, err := parsePatch(in.Input)
	if err != nil {
		return "", fmt.Errorf("%w. Nothing is changed", err)
	}
	s := &staging{tools: t}
	defer s.close()
	var said strings.Builder
	for _, f := range files {
		text, err := s.apply(ctx, f)
		if err != nil {
			return "", fmt.Errorf("%w\nNothing is changed", err)
		}
		said.WriteString(text)
	}
	for _, f := range s.files {
		switch {
		case f.info == nil || !t.seen.hasChanged(f.confinedPath, f.before):
		case f.isGone:
			if err := t.seen.refuse(f.confinedPath, f.before, "deleting"); err != nil {
				return "", fmt.Errorf("%w\nNothing is changed", err)
			}
		case f.after != f.before:
			said.WriteString(changedNote(f.show))
		}
	}
	for _, f := range s.files {
		if f.content, err = f.encode(); err != nil {
			return "", fmt.Errorf("%s is not changed: %w\nNothing is changed", f.show, err)
		}
	}
	if err := noteChanges(ctx, s.changes()...); err != nil {
		return "", err
	}
	for i, f := range s.files {
		if err := f.write(); err != nil {
			for _, done := range slices.Backward(s.files[:i]) {
				_ = done.restore() // the first error is the one to report
			}
			return "", f.explain(err)
		}
	}
	for _, f := range s.files {
		if !f.isGone {
			t.seen.noteText(f.confinedPath, f.after)
			said.WriteString(t.newSyntaxErrors(ctx, f.confinedPath, f.before, f.after))
		}
	}
	return said.String(), nil
}

// close closes the directories of the files.
func (s *staging) close() {
	for _, f := range s.files {
		_ = f.root.Close()
	}
}

// changes returns what the patch changes. A file that is moved to where none was is one change.
func (s *staging) changes() (all []FileChange) {
	movedFrom, isMoved := map[*stagedFile]*stagedFile{}, map[*stagedFile]bool{}
	for _, f := range s.files {
		if from := f.from; from != nil && from.isGone && !isMoved[from] && f.info == nil && !f.isGone {
			movedFrom[f], isMoved[from] = from, true
		}
	}
	for _, f := range s.files {
		c := FileChange{Path: f.show, Before: f.before, After: f.after, IsNew: f.info == nil, IsGone: f.isGone}
		switch from := movedFrom[f]; {
		case isMoved[f] || f.isGone && f.info == nil:
			continue
		case f.isGone:
			c.After = ""
		case from != nil:
			c.From, c.Before, c.IsNew = from.show, from.before, false
		}
		if c.IsNew || c.IsGone || c.From != "" || c.Before != c.After {
			all = append(all, c)
		}
	}
	return all
}

// file returns the staged file of a path, which it reads if the patch has not used it before. One that does not exist
// is gone.
func (s *staging) file(ctx context.Context, path string) (*stagedFile, error) {
	at, err := s.tools.open(ctx, path, true)
	if err != nil {
		return nil, err
	}
	for _, f := range s.files {
		if f.rel == at.rel {
			return f, at.root.Close()
		}
	}
	f := &stagedFile{confinedPath: at}
	s.files = append(s.files, f)
	f.before, f.form, f.info, err = s.tools.readText(ctx, at)
	if errors.Is(err, muster.ErrNotFound) {
		f.isGone, err = true, nil
	}
	f.after = f.before
	return f, err
}

// existing returns the staged file of a path that must exist. A unified diff puts a/ before it.
func (s *staging) existing(ctx context.Context, path string, isDiff bool) (*stagedFile, error) {
	f, err := s.file(ctx, path)
	if err == nil && f.isGone && isDiff && bareName(path) != path {
		f, err = s.file(ctx, bareName(path))
	}
	if err == nil && f.isGone {
		_, err = f.stat()
		if err == nil {
			err = fmt.Errorf("the patch has deleted %s before", path)
		}
	}
	return f, err
}

// apply changes the staged files as a part of a patch says, and returns what the model reads.
func (s *staging) apply(ctx context.Context, p *patchFile) (string, error) {
	if p.isAdd {
		return s.add(ctx, p)
	}
	f, err := s.existing(ctx, p.path, p.isDiff)
	if err != nil {
		return "", err
	}
	if p.isGone {
		f.isGone = true
		return fmt.Sprintf("Deleted %s.\n", f.show), nil
	}
	before := f.after
	after, err := applyHunks(f.show, before, p.hunks)
	if err != nil {
		return "", err
	}
	said := ""
	if after != before {
		said = describeChange(fmt.Sprintf("Edited %s:\n", f.show), before, after)
	}
	if p.to == "" || p.to == p.path {
		if said == "" {
			return "", fmt.Errorf("the patch changes nothing in %s", f.show)
		}
		f.after = after
		return said, nil
	}
	to := p.to
	if f.show != p.path {
		to = bareName(to)
	}
	target, err := s.file(ctx, to)
	if err != nil {
		return "", err
	}
	if !target.isGone {
		return "", fmt.Errorf("%s is there already, and the patch would move %s to it", to, f.show)
	}
	target.after, target.isGone, f.isGone = after, false, true
	if target.from = f; f.info == nil { // it was moved before, or made by this patch
		target.from = f.from
	}
	f.from = nil
	if target.form == (charset{}) {
		target.form = f.form
	}
	return said + fmt.Sprintf("Moved %s to %s.\n", f.show, target.show), nil
}

// add stages a new file.
func (s *staging) add(ctx context.Context, p *patchFile) (string, error) {
	path := p.path
	if p.isDiff {
		path = bareName(path)
	}
	f, err := s.file(ctx, path)
	if err != nil {
		return "", err
	}
	if !f.isGone {
		return "", fmt.Errorf("%s is there already: use *** Update File: to change it", f.show)
	}
	f.isGone, f.after = false, p.content.String()
	if p.isMissingFinal {
		f.after = strings.TrimSuffix(f.after, "\n")
	}
	return fmt.Sprintf("Made %s: %s.\n", f.show, text.Count(countLines(f.after), "line")), nil
}

// applyHunks changes a text by the hunks of a patch, each behind the one before it.
func applyHunks(name, text string, hunks []hunk) (string, error) {
	from := 0
	for i := range hunks {
		h := &hunks[i]
		after, end, err := h.apply(text, from)
		if err != nil && from > 0 && errors.Is(err, textmatch.ErrMissing) {
			after, end, err = h.apply(text, 0) // models do not always keep the order
		}
		_, isHeader := errors.AsType[missingHeader](err)
		switch {
		case errors.Is(err, textmatch.ErrMissing) && !isHeader:
			err = explainMissing(name, text, h.old.String())
			return "", fmt.Errorf("change %d of %s does not fit: %w", i+1, name, err)
		case err != nil:
			return "", fmt.Errorf("change %d of %s does not fit: %w", i+1, name, err)
		}
		text, from = after, end
	}
	return text, nil
}

// apply changes a text from byte from on, and returns where the change ends.
func (h *hunk) apply(text string, from int) (after string, end int, err error) {
	old, new := h.old.String(), h.new.String()
	switch {
	case old == new:
		return text, from, nil
	case strings.TrimSpace(old) == "" && text == "":
		return new, len(new), nil
	case strings.TrimSpace(old) == "":
		return "", 0, errors.New("it has no line that tells where: give lines of context that begin with a space")
	}
	for _, header := range h.headers {
		at := lineWith(text[from:], header)
		if at < 0 {
			return "", 0, missingHeader(header)
		}
		from += at
	}
	rest, places, err := textmatch.ReplaceLines(text[from:], old, new)
	if len(places) > 1 && len(h.headers) > 0 {
		// The block that the header begins has the place that is meant.
		to := from + blockEnd(text[from:])
		rest, places, err = textmatch.ReplaceLines(text[from:to], old, new)
		rest += text[to:]
	}
	switch {
	case errors.Is(err, textmatch.ErrIndent):
		return "", 0, errors.New("its lines are there with another indentation: give them as they are")
	case errors.Is(err, textmatch.ErrTooMany):
		return "", 0, errors.New("the file is too large: use edit_file")
	case err != nil:
		return "", 0, err
	case len(places) > 1:
		var starts []int
		for _, p := range places {
			starts = append(starts, from+p.Start)
		}
		return "", 0, fmt.Errorf("its lines are there %d times (lines %s): give more context",
			len(places), lineNumbers(text, starts))
	}
	return text[:from] + rest, from + places[0].Start + len(places[0].New), nil
}

// missingHeader is the error of a change whose header is no line of the file.
type missingHeader string

// Error says which header.
func (h missingHeader) Error() string {
	return fmt.Sprintf("there is no line %q, which stands behind its @@", string(h))
}

// Is makes it a kind of textmatch.ErrMissing.
func (missingHeader) Is(target error) bool { return target == textmatch.ErrMissing }

// lineWith returns the byte at which the first line begins that is the header, or else the only one that begins as it
// does, up to the end of a word. It is -1 if there is none. Blanks at the ends do not count.
func lineWith(text, header string) int {
	at, similar, count := 0, -1, 0
	for line := range strings.Lines(text) {
		rest, begins := strings.CutPrefix(strings.TrimSpace(line), header)
		switch {
		case begins && rest == "":
			return at
		case begins && strings.IndexFunc(rest, isWordRune) != 0:
			similar = at
			count++
		}
		at += len(line)
	}
	if count != 1 {
		return -1
	}
	return similar
}

// isWordRune reports whether a rune goes on with a word.
func isWordRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// blockEnd returns where the block ends that the first line begins: before the next line that is not deeper.
func blockEnd(text string) int {
	depth := func(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }
	at, first := 0, -1
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			if first < 0 {
				first = depth(line)
			} else if depth(line) <= first && strings.Trim(line, " \t\r\n{}()[];,") != "" {
				return at
			}
		}
		at += len(line)
	}
	return at
}

// encode returns the bytes of the file as the patch leaves it.
func (f *stagedFile) encode() (string, error) {
	before := f.before
	switch {
	case f.isGone:
		return "", nil
	case f.info == nil:
		before = f.after // of which nothing is replaced
	}
	return f.form.encode(before, f.after)
}

// write puts the file on the disk as the patch leaves it.
func (f *stagedFile) write() error {
	switch {
	case f.isGone && f.info == nil, !f.isGone && f.info != nil && f.after == f.before:
		return nil
	case f.isGone:
		return f.root.Remove(f.rel)
	}
	return f.replace(f.content, f.info)
}

// restore puts the file back as the patch found it.
func (f *stagedFile) restore() error {
	if f.info == nil {
		if f.isGone {
			return nil
		}
		return f.root.Remove(f.rel)
	}
	content, err := f.form.encode(f.before, f.before)
	if err != nil {
		return err
	}
	return f.replace(content, f.info)
}
