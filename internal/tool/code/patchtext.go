package code

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"muster/internal/shellcommands"
	"muster/llm"
)

// patchFile is what a patch does to one file: it adds it, deletes it, or changes it and perhaps moves it.
type patchFile struct {
	path, to       string // to is "" where it stays
	isAdd, isGone  bool
	isDiff         bool // of a unified diff, whose names may have a/ or b/ before them
	hunks          []hunk
	content        strings.Builder // of a new file
	isMissingFinal bool            // a unified diff says that a new file does not end with a newline
}

// hunk replaces lines by others. headers are lines that come before them in the file, from the outermost.
type hunk struct {
	headers  []string
	old, new strings.Builder
}

// patchLines returns the lines of a patch, without what models put around it: a fence, the command of a shell, or
// another layer of escapes.
func patchLines(text string) []string {
	var unescaped string
	if !strings.Contains(text, "\n") && json.Unmarshal([]byte(`"`+text+`"`), &unescaped) == nil {
		text = unescaped
	}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	isLine := func(keyword string) func(string) bool {
		return func(line string) bool { k, _ := cutMarker(line); return k == keyword }
	}
	if begin := slices.IndexFunc(lines, isLine("*** Begin Patch")); begin >= 0 {
		lines = lines[begin+1:]
		end := slices.IndexFunc(lines, isLine("*** End Patch"))
		if end >= 0 && !slices.ContainsFunc(lines[end:], isLine("*** Begin Patch")) {
			lines = lines[:end]
		}
	}
	return lines
}

// parsePatch reads a patch in the format of Codex, or a unified diff.
func parsePatch(text string) (files []*patchFile, err error) {
	var at *patchFile
	var oldName string // of a unified diff
	isNamed := -1      // the line that names a file of a unified diff which the patch has named before
	lines := patchLines(text)
	for n, line := range lines {
		keyword, rest := cutMarker(line)
		switch {
		case keyword == "*** Begin Patch" || keyword == "*** End Patch" || keyword == "*** End of File" || n == isNamed:
		case keyword == "*** Add File:", keyword == "*** Delete File:", keyword == "*** Update File:":
			at = &patchFile{path: rest, isAdd: keyword == "*** Add File:", isGone: keyword == "*** Delete File:"}
			files = append(files, at)
		case keyword == "*** Move to:" && at != nil:
			at.to = rest
		case isDiffStart(lines, n) && at != nil && at.isUntouched(diffName(line[4:])):
			isNamed = n + 1
		case isDiffStart(lines, n):
			oldName, at = diffName(line[4:]), nil
		case strings.HasPrefix(line, "+++ ") && at == nil && oldName != "":
			name := diffName(line[4:])
			at = &patchFile{path: oldName, isAdd: oldName == "/dev/null", isGone: name == "/dev/null",
				isDiff: true}
			if at.isAdd {
				at.path = name
			} else if !at.isGone && bareName(name) != bareName(oldName) {
				at.to = name
			}
			files = append(files, at)
		case at == nil:
			if strings.TrimSpace(line) != "" && !isDiffHeader(line) {
				return nil, fmt.Errorf("line %d of the patch belongs to no file: begin with *** Update File: PATH", n+1)
			}
		default:
			if err := at.addLine(line); err != nil {
				return nil, fmt.Errorf("line %d of the patch: %w", n+1, err)
			}
		}
	}
	if len(files) == 0 {
		return nil, errors.New("the patch changes nothing: it needs *** Update File: PATH, or Add or Delete")
	}
	return files, nil
}

// PatchPaths returns the paths that a patch names, for apply_patch; those of a unified diff with and without the a/ or
// b/ before them. A patch that cannot be read has none.
func PatchPaths(patch string) (paths []string) {
	files, err := parsePatch(patch)
	if err != nil {
		return nil
	}
	for _, f := range files {
		for _, p := range []string{f.path, f.to} {
			if p != "" {
				paths = append(paths, p)
			}
			if f.isDiff && bareName(p) != p {
				paths = append(paths, bareName(p))
			}
		}
	}
	return paths
}

// AsPatch returns the call of apply_patch that a call of bash means whose command does nothing but pass a patch to it.
// Other calls are returned as they are.
func AsPatch(c llm.Call) llm.Call {
	if c.Name != "bash" || !bytes.Contains(c.Input, []byte("*** Begin Patch")) {
		return c
	}
	var in bashInput
	if json.Unmarshal(c.Input, &in) != nil {
		return c
	}
	patch, ok := patchOf(in.Command, in.Workdir)
	if !ok {
		return c
	}
	input, err := json.Marshal(patchInput{Input: patch})
	if err != nil {
		return c
	}
	c.Name, c.Input = "apply_patch", input
	return c
}

// patchOf returns the patch of a command that does nothing but pass it to apply_patch, with its paths relative to where
// the working directory is, and not to the directory in which the command runs.
func patchOf(command, workdir string) (patch string, ok bool) {
	if !strings.Contains(command, "*** Begin Patch") {
		return "", false
	}
	dir, patch, ok := shellcommands.Patch(command)
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(workdir, dir)
	}
	if dir == "" || !ok {
		return patch, ok
	}
	lines := strings.Split(patch, "\n")
	for i, line := range lines {
		keyword, rest := cutMarker(line)
		if rest != "" && !filepath.IsAbs(rest) {
			lines[i] = keyword + " " + filepath.ToSlash(filepath.Join(dir, rest))
		}
	}
	return strings.Join(lines, "\n"), true
}

// MapPatchPaths returns a patch with each of its absolute paths as f returns it.
func MapPatchPaths(patch string, f func(path string) string) string {
	lines := strings.Split(patch, "\n")
	for i, line := range lines {
		isHead := strings.HasPrefix(line, "***") || strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "+++ ")
		if at := strings.Index(line, "/"); isHead && at > 0 && line[at-1] == ' ' {
			path, rest, _ := strings.Cut(line[at:], "\t")
			bare := strings.TrimRight(path, " *\r")
			if to := f(bare); to != bare {
				lines[i] = line[:at] + to + path[len(bare):]
				if rest != "" {
					lines[i] += "\t" + rest
				}
			}
		}
	}
	return strings.Join(lines, "\n")
}

// cutMarker returns the keyword of a line such as "*** Add File: name" and what follows it, or "". Its case, the colon,
// and blanks or stars around it may differ.
func cutMarker(line string) (keyword, rest string) {
	line, ok := strings.CutPrefix(line, "***") // a space before it makes it a line of context
	if !ok {
		return "", ""
	}
	line = strings.TrimSpace(line)
	for _, k := range []string{"Begin Patch", "End Patch", "End of File"} {
		if strings.EqualFold(strings.TrimRight(line, " *"), k) {
			return "*** " + k, ""
		}
	}
	for _, k := range []string{"Add File", "Delete File", "Update File", "Move to"} {
		if len(line) <= len(k) || !strings.EqualFold(line[:len(k)], k) || line[len(k)] != ':' && line[len(k)] != ' ' {
			continue
		}
		name := strings.TrimSpace(strings.TrimPrefix(line[len(k):], ":"))
		if bare := strings.Trim(name, "`\"'"); len(bare) == len(name)-2 {
			name = bare
		}
		return "*** " + k + ":", name
	}
	return "", ""
}

// isUntouched reports whether the file has this name, and is to be changed by lines that are still to come.
func (f *patchFile) isUntouched(name string) bool {
	return !f.isAdd && !f.isGone && len(f.hunks) == 0 && bareName(name) == bareName(f.path)
}

// isDiffStart reports whether line n and the one after it begin a file of a unified diff, and are no lines of a hunk.
func isDiffStart(lines []string, n int) bool {
	return strings.HasPrefix(lines[n], "--- ") && n+1 < len(lines) && strings.HasPrefix(lines[n+1], "+++ ") &&
		(n+2 >= len(lines) || strings.HasPrefix(lines[n+2], "@@"))
}

// isDiffHeader reports whether a line may stand before a file of a unified diff.
func isDiffHeader(line string) bool {
	starts := []string{"diff ", "index ", "new file mode", "deleted file mode", "similarity ", "rename ", "old mode",
		"new mode", "```"}
	return slices.ContainsFunc(starts, func(start string) bool { return strings.HasPrefix(line, start) })
}

// diffName returns the name in a line of a unified diff, without the time that may follow a tab.
func diffName(s string) string {
	name, _, _ := strings.Cut(s, "\t")
	return strings.TrimSpace(name)
}

// bareName returns a name without the a/ or b/ that git puts before it.
func bareName(name string) string {
	if len(name) > 2 && (name[:2] == "a/" || name[:2] == "b/") {
		return name[2:]
	}
	return name
}

// addLine adds a line of the patch to the file.
func (f *patchFile) addLine(line string) error {
	isHeader := strings.HasPrefix(line, "@@")
	switch {
	case f.isGone, isDiffHeader(line):
		return nil // a unified diff shows what it deletes
	case strings.HasPrefix(line, `\ No newline`):
		f.isMissingFinal = f.isAdd
		return nil
	case f.isAdd && isHeader:
		return nil
	case f.isAdd:
		body, ok := strings.CutPrefix(line, "+")
		if !ok && line != "" {
			return errors.New("each line of a new file begins with +")
		}
		f.content.WriteString(body + "\n")
		return nil
	case isHeader:
		f.addHeader(line)
		return nil
	}
	if len(f.hunks) == 0 {
		f.hunks = append(f.hunks, hunk{})
	}
	h := &f.hunks[len(f.hunks)-1]
	switch {
	case line == "":
		h.old.WriteString("\n")
		h.new.WriteString("\n")
	case line[0] == ' ':
		h.old.WriteString(line[1:] + "\n")
		h.new.WriteString(line[1:] + "\n")
	case line[0] == '-':
		h.old.WriteString(line[1:] + "\n")
	case line[0] == '+':
		h.new.WriteString(line[1:] + "\n")
	default: // a line of context without the space before it: if it is none, it does not fit
		h.old.WriteString(line + "\n")
		h.new.WriteString(line + "\n")
	}
	return nil
}

// addHeader begins a hunk, or adds a header to one that has no lines yet. The line numbers of a unified diff say
// nothing: models count badly.
func (f *patchFile) addHeader(line string) {
	header := strings.TrimSpace(strings.TrimPrefix(line, "@@"))
	if strings.HasPrefix(header, "-") && strings.Contains(header, "@@") {
		header = ""
	}
	header = strings.TrimSpace(strings.TrimSuffix(header, "@@"))
	last := len(f.hunks) - 1
	if last < 0 || f.hunks[last].old.Len()+f.hunks[last].new.Len() > 0 {
		f.hunks = append(f.hunks, hunk{})
		last++
	}
	if header != "" {
		f.hunks[last].headers = append(f.hunks[last].headers, header)
	}
}
