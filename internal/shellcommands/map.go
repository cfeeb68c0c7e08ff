package shellcommands

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"muster/internal/lazyregexp"
)

// MapPaths returns a script of bash in which the words that are paths below root are other paths: f gets such a path,
// and returns what stands for root in it. A word is a path as a whole, or behind NAME=, --option= or an option of one
// letter. All else stays as it is: what is printed, searched for or stored, sentences, code of other languages, and a
// script that cannot be parsed. others are the paths of root there that a program may open all the same.
func MapPaths(script, root string, f func(path string) (newRoot string, ok bool)) (mapped string, others []string) {
	file, why := parse(script)
	if why != "" {
		return script, pathsIn(script, root)
	}
	m := &mapper{script: script, root: root, f: f, roles: map[*syntax.Word]role{}}
	for n := range syntax.Preorder(file) {
		m.visit(n)
	}
	slices.SortFunc(m.edits, func(a, b edit) int { return a.at - b.at })
	var b strings.Builder
	at := 0
	for _, e := range m.edits {
		b.WriteString(script[at:e.at] + e.text)
		at = e.at + e.length
	}
	return b.String() + script[at:], m.others
}

// role is what a word is to its program.
type role int

const (
	file        role = iota // it may name a file
	words                   // it is printed, searched for or stored
	code                    // it is run, or the program alone knows what it is
	shellScript             // it is a script of the shell
)

// edit replaces a part of a script.
type edit struct {
	at, length int
	text       string
}

type mapper struct {
	script, root string
	f            func(path string) (newRoot string, ok bool)
	roles        map[*syntax.Word]role
	edits        []edit
	others       []string
}

func (m *mapper) visit(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.BinaryCmd:
		isPipe := n.Op == syntax.Pipe || n.Op == syntax.PipeAll
		call, isCall := n.X.Cmd.(*syntax.CallExpr)
		if isPipe && isCall && slices.Contains(printing, m.program(call.Args)) {
			for _, w := range call.Args { // another program gets what is printed
				m.roles[w] = code
			}
		}
	case *syntax.CallExpr:
		if len(n.Args) > 0 {
			if _, isKnown := m.roles[n.Args[0]]; !isKnown {
				m.setRoles(n.Args)
			}
		}
	case *syntax.Stmt:
		call, _ := n.Cmd.(*syntax.CallExpr)
		isCopied := call != nil && slices.Contains([]string{"cat", "tee"}, m.program(call.Args))
		for _, r := range n.Redirs {
			at := code
			if isCopied {
				at = words
			}
			if r.Hdoc != nil {
				m.roles[r.Hdoc] = at
			} else if r.Op == syntax.WordHdoc {
				m.roles[r.Word] = at
			}
		}
	case *syntax.Word:
		m.word(n)
	}
}

func (m *mapper) source(w *syntax.Word) string {
	return m.script[w.Pos().Offset():min(int(w.End().Offset()), len(m.script))]
}

// word maps a word, or notes its paths.
func (m *mapper) word(w *syntax.Word) {
	source, at := m.source(w), int(w.Pos().Offset())
	switch r := m.roles[w]; {
	case r == words:
	case r == shellScript && isQuoted(source):
		inner, others := MapPaths(source[1:len(source)-1], m.root, m.f)
		m.edits = append(m.edits, edit{at + 1, len(source) - 2, inner})
		m.others = append(m.others, others...)
	case r == file:
		if i, rest, ok := cutPath(source, m.root); ok {
			if newRoot, ok := m.f(m.root + rest); ok {
				m.edits = append(m.edits, edit{at + i, len(m.root), newRoot})
				return
			}
		}
		fallthrough
	default:
		m.note(w.Parts)
		if value := newWord(w).Text; !strings.Contains(source, m.root) {
			m.others = append(m.others, pathsIn(value, m.root)...) // with escaped characters
		}
	}
}

// note adds the paths in parts of a word to the others. What a command there names is looked at by itself.
func (m *mapper) note(parts []syntax.WordPart) {
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
		case *syntax.DblQuoted:
			m.note(p.Parts)
		default:
			from, to := int(p.Pos().Offset()), min(int(p.End().Offset()), len(m.script))
			before := max(from-1, 0) // it tells whether a path begins here
			m.others = append(m.others, pathsIn(m.script[before:to], m.root)...)
		}
	}
}

// isQuoted reports whether a word is one text in quotes in which nothing is expanded or escaped.
func isQuoted(source string) bool {
	n := len(source)
	if n < 2 || source[0] != source[n-1] {
		return false
	}
	inner := source[1 : n-1]
	return source[0] == '\'' && !strings.Contains(inner, "'") ||
		source[0] == '"' && !strings.ContainsAny(inner, "\"$`\\")
}

var pathPrefix = lazyregexp.New(`^(--?[\w-]+=|-[A-Za-z]|[A-Za-z_]\w*=)?["']?$`)

// cutPath returns where root begins in the source of a word that is a path, and what follows in it, without quotes.
func cutPath(source, root string) (at int, rest string, ok bool) {
	at = strings.Index(source, root)
	if at < 0 || !pathPrefix().MatchString(source[:at]) {
		return 0, "", false
	}
	rest = source[at+len(root):]
	if rest != "" && !strings.ContainsRune(`/"'`, rune(rest[0])) {
		return 0, "", false
	}
	return at, strings.NewReplacer(`"`, "", `'`, "").Replace(rest), true
}

// inPath matches a text that ends within a path.
var inPath = lazyregexp.New(`[\w.~/})*-]$`)

// pathsIn returns the paths of root in a text.
func pathsIn(text, root string) (paths []string) {
	for {
		i := strings.Index(text, root)
		if i < 0 {
			return paths
		}
		path := text[i:]
		if n := strings.IndexAny(path[len(root):], " \t\r\n;|&<>()`$\"'=,:"); n >= 0 {
			path = path[:len(root)+n]
		}
		if !inPath().MatchString(text[:i]) {
			paths = append(paths, path)
		}
		text = text[i+len(root):]
	}
}
