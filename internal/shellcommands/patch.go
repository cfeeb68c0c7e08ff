package shellcommands

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// cutDir splits a script that begins with a change of the directory, as in "cd DIR && make", into the directory and the
// rest. ok is false for any other script, and where the directory is known only when the script runs.
func cutDir(text string) (dir, rest string, ok bool) {
	file, why := parse(text)
	if why != "" || len(file.Stmts) == 0 {
		return "", "", false
	}
	first, next := file.Stmts[0], (*syntax.Stmt)(nil)
	if len(file.Stmts) > 1 {
		next = file.Stmts[1]
	}
	isAnd := true
	for {
		list, isList := first.Cmd.(*syntax.BinaryCmd)
		if !isList || !isPlain(first) {
			break
		}
		if first, next = list.X, list.Y; list.Op != syntax.AndStmt && list.Op != syntax.OrStmt {
			next = nil // a pipe
		}
		isAnd = list.Op == syntax.AndStmt
	}
	words := plainWords(first)
	if next == nil || !isAnd || len(first.Redirs) > 0 || len(words) != 2 || words[0] != "cd" {
		return "", "", false
	}
	return words[1], text[next.Pos().Offset():], true
}

// Patch returns the patch of a script that does nothing but pass it to apply_patch, in a here-document or as its
// argument, in the directory to which the script changes before ("" for none). Models of OpenAI write it so. Nothing in
// the patch is expanded, as in their own program.
func Patch(text string) (dir, patch string, ok bool) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if at, rest, ok := cutDir(text); ok {
		dir, text = at, rest
	}
	file, why := parse(text)
	if why != "" || len(file.Stmts) != 1 {
		return "", "", false
	}
	s := file.Stmts[0]
	words := plainWords(s)
	if len(words) == 0 || !slices.Contains([]string{"apply_patch", "applypatch"}, words[0]) {
		return "", "", false
	}
	switch {
	case len(words) == 2 && len(s.Redirs) == 0:
		return dir, words[1], true
	case len(words) == 1 && len(s.Redirs) == 1 && s.Redirs[0].Op == syntax.Hdoc && s.Redirs[0].Hdoc != nil:
		doc := s.Redirs[0].Hdoc
		raw := text[doc.Pos().Offset():min(doc.End().Offset(), uint(len(text)))]
		return dir, strings.TrimSuffix(raw, newWord(s.Redirs[0].Word).Text), true
	}
	return "", "", false
}

// isPlain reports whether a statement is neither negated nor in the background.
func isPlain(s *syntax.Stmt) bool { return !s.Negated && !s.Background && !s.Coprocess }

// plainWords returns the words of a simple command, or nil if the statement is none or a word is not known.
func plainWords(s *syntax.Stmt) (words []string) {
	call, isCall := s.Cmd.(*syntax.CallExpr)
	if !isCall || !isPlain(s) || len(call.Assigns) > 0 {
		return nil
	}
	for _, arg := range call.Args {
		word := newArgument(arg)
		if !word.IsKnown() || word.Splits {
			return nil
		}
		words = append(words, word.Text)
	}
	return words
}
