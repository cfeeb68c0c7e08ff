package config

import (
	"errors"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"muster"
	"muster/internal/editdist"
)

// file takes over the settings in a file; one that does not exist has none. name is what errors call it; may says what
// the file must not decide.
func (l *loader) file(path, name, source string, may func(Setting, string) error) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return muster.Errorf(muster.Invalid, "%s cannot be read: %w", name, err)
	}
	data = muster.Unmarked(data)
	if at := invalid(data); at > 0 {
		return muster.Errorf(muster.Invalid, "%s:%d: this line is not UTF-8", name, at)
	}
	f, err := parser.ParseBytes(data, 0)
	if err != nil {
		return broken(name, err)
	}
	if len(f.Docs) > 1 {
		return muster.Errorf(muster.Invalid, "%s: there are %d documents in it (separated by ---), and only one is read", name, len(f.Docs))
	}
	for _, doc := range f.Docs {
		if err := l.mapping(doc.Body, "", name, source, may); err != nil {
			return err
		}
	}
	return nil
}

// mapping takes over the settings of a mapping; prefix is the level it stands on.
func (l *loader) mapping(n ast.Node, prefix, name, source string, may func(Setting, string) error) error {
	switch n := n.(type) {
	case nil, *ast.NullNode, *ast.CommentGroupNode:
		return nil
	case *ast.MappingNode:
		for _, v := range n.Values {
			if err := l.entry(v, prefix, name, source, may); err != nil {
				return err
			}
		}
		return nil
	case *ast.MappingValueNode:
		return l.entry(n, prefix, name, source, may)
	}
	return misplaced(name, n, "settings are expected here, each as name: value")
}

func (l *loader) entry(n *ast.MappingValueNode, prefix, name, source string, may func(Setting, string) error) error {
	key := prefix + n.Key.GetToken().Value
	s, ok := find(func(s Setting) bool { return s.Name == key })
	if !ok {
		if _, above := find(func(s Setting) bool { return strings.HasPrefix(s.Name, key+".") }); above {
			return l.mapping(n.Value, key+".", name, source, may)
		}
		return misplaced(name, n.Key, "there is no setting "+quote(key)+like(key, names()))
	}
	text, ok := scalar(n.Value)
	if !ok {
		return misplaced(name, n.Value, key+" is one value, not a list or a mapping")
	}
	if text == "" && n.Value.Type() == ast.NullType {
		return nil // a name with nothing after it leaves the setting as it is
	}
	if err := may(s, text); err != nil {
		l.refused = misplaced(name, n.Value, err.Error())
	}
	if err := l.set(s, text, source); err != nil {
		return misplaced(name, n.Value, err.Error())
	}
	return nil
}

// scalar is the text of a value, as it was written.
func scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.NullNode:
		return "", true
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return strings.TrimRight(n.Value.Value, "\n"), true
	case *ast.IntegerNode, *ast.BoolNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}

func names() (ns []string) {
	for _, s := range Table() {
		ns = append(ns, s.Name)
	}
	return ns
}

// misplaced is an error at a node's place.
func misplaced(name string, n ast.Node, what string) error {
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 {
		n = m.Values[0].Key // a mapping's own token is a colon in it
	}
	p := n.GetToken().Position
	return muster.Errorf(muster.Invalid, "%s:%d:%d: %s", name, p.Line, p.Column, what)
}

// broken is what the YAML library found, as one sentence.
func broken(name string, err error) error {
	var e yaml.Error
	if errors.As(err, &e) && e.GetToken() != nil {
		p := e.GetToken().Position
		return muster.Errorf(muster.Invalid, "%s:%d:%d: %s", name, p.Line, p.Column, e.GetMessage())
	}
	return muster.Errorf(muster.Invalid, "%s cannot be read: %v", name, err)
}

// invalid is the first line that is not UTF-8, or 0.
func invalid(data []byte) int {
	if utf8.Valid(data) {
		return 0
	}
	for i, line := range strings.Split(string(data), "\n") {
		if !utf8.ValidString(line) {
			return i + 1
		}
	}
	return 0
}

// like is a guess at what was meant, ready to append, or "".
func like(word string, all []string) string {
	best, at := "", 3
	for _, w := range all {
		if d := editdist.Distance(word, w); d < at {
			best, at = w, d
		}
	}
	if best == "" {
		return ""
	}
	return " (did you mean " + best + "?)"
}
