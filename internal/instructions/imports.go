package instructions

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	gtext "github.com/yuin/goldmark/text"

	"muster/internal/agentfiles"
	"muster/internal/durable"
	"muster/internal/lazyregexp"
	"muster/internal/secrets"
	"muster/internal/text"
)

const (
	maxDepth   = 4   // imports on the way to a file, as Claude Code has it
	maxPointer = 300 // bytes of a file that only names the file to read
)

// errDeep is the error for an import in a file that is the last of a chain.
var errDeep = errors.New("imports go 4 files deep")

// imports returns the files that a file imports, as a model reads them.
func (r *reader) imports(at source, body string) (texts []string) {
	named := mentions(body)
	if at.depth == 0 && len(body) <= maxPointer {
		named = append(named, pointers(body)...)
	}
	for _, name := range named {
		texts = append(texts, r.imported(at, name)...)
	}
	return texts
}

// imported returns the file that another one names, and what it imports.
func (r *reader) imported(by source, name string) []string {
	var at opened
	var content, full string
	err := agentfiles.ErrOutside // ~ without a home
	for _, full = range r.candidates(by, name) {
		if at, content, err = r.open(full); !isMissing(err) {
			break
		}
	}
	switch {
	case errors.Is(err, errSeen), errors.Is(err, durable.ErrNotRegular):
		return nil // a directory is no import
	case err == nil && by.depth == maxDepth:
		err = errDeep
	case err == nil && holdsKeys(full, content):
		err = errKeys
	case isMissing(err) && !isPath(name):
		return nil
	case isMissing(err):
		err = errors.New("there is no such file")
	}
	if err == nil {
		return r.add(source{full, at.real, r.show(full), by.depth + 1}, content, at.size)
	}
	r.leave("%s, which %s imports, is not read: %v", text.OneLine(trimmed(name)), by.show, cause(err))
	return nil
}

// holdsKeys reports whether a file has what looks like a key.
func holdsKeys(name, content string) bool { return len(secrets.Keys(name, []byte(content))) > 0 }

func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG)
}

// candidates returns the paths that a name in a file may stand for: relative to the file, to the file that it is a link
// to, and to the directory of all files.
func (r *reader) candidates(by source, name string) (all []string) {
	spelt := []string{name}
	if before, _, ok := strings.Cut(name, "#"); ok {
		spelt = append(spelt, before)
	}
	spelt = append(spelt, trimmed(name))
	for _, name := range spelt {
		name = filepath.FromSlash(name)
		rest, ofHome := strings.CutPrefix(name, "~"+string(filepath.Separator))
		switch {
		case name == "":
		case ofHome && r.userHome != "":
			all = append(all, filepath.Join(r.userHome, rest))
		case filepath.IsAbs(name):
			all = append(all, filepath.Clean(name))
		case !ofHome:
			for _, dir := range []string{filepath.Dir(by.name), filepath.Dir(by.real), r.bases[0]} {
				all = append(all, filepath.Join(dir, name))
			}
		}
	}
	return all
}

// trimmed returns a name without what a sentence has behind it.
func trimmed(name string) string { return strings.TrimRight(name, ".,;:!?)]}'\"*_`>") }

// isPath reports whether a name that stands for no file was meant to: a word with an @ may also be a person, a package
// or a decorator.
func isPath(name string) bool {
	name = trimmed(name)
	if before, _, ok := strings.Cut(name, "#"); ok {
		name = before
	}
	return agentfiles.IsDocument(name) ||
		slices.Contains([]string{".json", ".yaml", ".yml", ".toml"}, strings.ToLower(path.Ext(name))) ||
		slices.ContainsFunc([]string{"./", "../", "~/"}, func(p string) bool { return strings.HasPrefix(name, p) })
}

// mention matches an import. A blank in its path has a backslash before it.
var mention = lazyregexp.New(`(?:^|[\s(])@((?:\\ |[^\s\\])+)`)

// mentions returns the paths that a Markdown text imports: words with an @ before them, outside of code and comments.
func mentions(body string) (names []string) {
	for _, m := range mention().FindAllStringSubmatch(withoutCode(body), -1) {
		name := strings.ReplaceAll(m[1], `\ `, " ")
		first, _ := utf8.DecodeRuneInString(name)
		if unicode.IsLetter(first) || unicode.IsDigit(first) || strings.ContainsRune("._~/-", first) {
			names = append(names, name)
		}
	}
	return slices.Compact(names)
}

// withoutCode returns a Markdown text with blanks in the place of code and comments.
func withoutCode(body string) string {
	if !strings.Contains(body, "@") {
		return ""
	}
	masked := []byte(body)
	blank := func(s gtext.Segment) {
		for i := s.Start; i < s.Stop && i < len(masked); i++ {
			if masked[i] != '\n' {
				masked[i] = ' '
			}
		}
	}
	lines := func(n ast.Node) {
		for i := range n.Lines().Len() {
			blank(n.Lines().At(i))
		}
	}
	root := goldmark.DefaultParser().Parse(gtext.NewReader([]byte(body)))
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function returns no error
		switch n := n.(type) {
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			lines(n)
		case *ast.CodeSpan:
			for c := n.FirstChild(); c != nil; c = c.NextSibling() {
				if t, ok := c.(*ast.Text); ok {
					blank(t.Segment)
				}
			}
		case *ast.HTMLBlock:
			if n.HTMLBlockType == ast.HTMLBlockType2 {
				lines(n)
				blank(n.ClosureLine)
			}
		case *ast.RawHTML:
			for i := range n.Segments.Len() {
				blank(n.Segments.At(i))
			}
		}
		return ast.WalkContinue, nil
	})
	return string(masked)
}

// pointer matches the name of a document.
var pointer = lazyregexp.New(`[\p{L}\p{N}_./~-]+\.(?:mdc|mdx|md|txt)\b`)

// ofAgents are parts of the names of files that tell agents what to do.
var ofAgents = []string{"agent", "claude", "gemini", "copilot", "instruction", "rule", "guideline", "convention"}

// pointers returns the files of instructions that a short text sends its reader to, such as "See CLAUDE.md". Where git
// makes no symbolic links, a link is a file whose text is the path.
func pointers(body string) (names []string) {
	if name := strings.TrimSpace(body); !strings.ContainsAny(name, " \t\n@") && agentfiles.IsDocument(name) {
		return []string{name}
	}
	for _, name := range pointer().FindAllString(body, -1) {
		base := strings.ToLower(path.Base(name))
		if slices.ContainsFunc(ofAgents, func(word string) bool { return strings.Contains(base, word) }) {
			names = append(names, name)
		}
	}
	return names
}
