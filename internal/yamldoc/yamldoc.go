// Package yamldoc reads a YAML file that people write and says in one sentence where and why it is wrong. Settings and
// scripts are such files. What may be in a file is not decided here.
//
// Parse returns the tree of a file, Entries and Scalar what a node of it holds, Place where a node begins, and Error
// the library's error in our own form. A file holds one document: with several, it would depend on the reader which of
// them counts.
package yamldoc

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"muster"
	"muster/internal/text"
)

// Parse returns the root of the only document in data, or nil if there is none. name is the file's name in errors.
// Errors are Invalid, with the line where it is known.
func Parse(name string, data []byte) (ast.Node, error) {
	data = muster.TrimBOM(data)
	if line := text.BadLine(data); line > 0 {
		return nil, muster.Errorf(muster.Invalid, "%s:%d: this line is not UTF-8", name, line)
	}
	tokens := lexer.Tokenize(string(data))
	if at := tooDeep(tokens); at != nil {
		return nil, muster.Errorf(muster.Invalid,
			"%s:%d:%d: lists and mappings lie deeper in each other than %d levels",
			name, at.Position.Line, at.Position.Column, maxDepth)
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, Error(name, err, "")
	}
	switch len(file.Docs) {
	case 0:
		return nil, nil
	case 1:
		return file.Docs[0].Body, nil
	}
	return nil, muster.Errorf(muster.Invalid,
		"%s: there are %d documents in it (separated by ---), and only one is read", name, len(file.Docs))
}

// maxDepth is how deep lists and mappings may lie in each other. The parser takes time and memory by the square of the
// depth and more.
const maxDepth = 64

// tooDeep returns the first token that lies deeper than maxDepth, or nil. In a flow the brackets count, elsewhere the
// columns at which lines and list entries begin.
func tooDeep(tokens token.Tokens) *token.Token {
	flow, line := 0, 0
	var columns []int // of what the token lies in, outside of a flow
	for _, t := range tokens {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow--
		}
		isFirst := t.Position.Line != line
		line = t.Position.Line
		if flow == 0 && (isFirst || t.Type == token.SequenceEntryType || t.Type == token.MappingKeyType) {
			for len(columns) > 0 && columns[len(columns)-1] >= t.Position.Column {
				columns = columns[:len(columns)-1]
			}
			columns = append(columns, t.Position.Column)
		}
		if max(flow, 0)+len(columns) > maxDepth {
			return t
		}
	}
	return nil
}

// Error returns an error of the YAML library as one sentence with its place, because the library's own text has several
// lines. what replaces the library's message unless it is empty.
func Error(name string, err error, what string) *muster.Error {
	var e yaml.Error
	if !errors.As(err, &e) || e.GetToken() == nil {
		return muster.Errorf(muster.Invalid, "%s cannot be read: %w", name, err)
	}
	at := e.GetToken().Position
	return muster.Errorf(muster.Invalid, "%s:%d:%d: %s", name, at.Line, at.Column, cmp.Or(what, plain(e.GetMessage())))
}

// plain puts the commonest messages of the library, which speak of its tokens, into words.
func plain(message string) string {
	switch {
	case strings.HasPrefix(message, "sequence end token ']'"):
		return "a [ has no ] that ends it"
	case strings.HasPrefix(message, "could not find flow map"):
		return "a { has no } that ends it"
	case strings.HasPrefix(message, "could not find end character of"):
		return "a quotation mark has no other that ends it"
	case strings.HasPrefix(message, "mapping value is not allowed"):
		return "a key is not expected here: it is indented too far, or a value with a colon lacks quotation marks"
	case strings.HasPrefix(message, "non-map value is specified"):
		return "this line is no name: value"
	case strings.HasPrefix(message, "found character '\t'"):
		return "a tab stands where only blanks may: indent with blanks"
	}
	return message
}

// Place returns where a node begins. The token of a mapping is a colon inside it, so its first key counts. The place of
// nil is the beginning of the file.
func Place(n ast.Node) (line, column int) {
	switch n := n.(type) {
	case nil:
		return 1, 1
	case *ast.MappingNode:
		if len(n.Values) > 0 {
			return Place(n.Values[0])
		}
	case *ast.MappingValueNode:
		return Place(n.Key)
	}
	at := n.GetToken().Position
	return at.Line, at.Column
}

// ErrorAt returns an error that begins with the place of a node.
func ErrorAt(name string, n ast.Node, format string, args ...any) *muster.Error {
	line, column := Place(n)
	return muster.Errorf(muster.Invalid, "%s:%d:%d: %s", name, line, column, fmt.Sprintf(format, args...))
}

// Entries returns the entries of a mapping, and nil for any other node.
func Entries(n ast.Node) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	return nil
}

// Scalar returns the text of a single value as it was written; ok is false for a list or a mapping.
func Scalar(n ast.Node) (text string, ok bool) {
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
