package shellcommands

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// walker adds what a syntax tree starts.
type walker struct {
	*parser
	depth    int
	possible bool
	exported map[*syntax.Assign]bool // of commands
}

// stdin is what a command reads as its input.
type stdin struct {
	text    string
	isKnown bool // it is a here-document or a here-string without holes
}

// walk visits all nodes below a node. Every word is looked at where it stands, so nothing is left out.
func (w *walker) walk(node syntax.Node) {
	calls := map[*syntax.CallExpr]stdin{}
	w.exported = map[*syntax.Assign]bool{}
	syntax.Walk(node, func(n syntax.Node) bool {
		switch x := n.(type) {
		case *syntax.Stmt:
			in := w.redirects(x.Redirs)
			if call, ok := x.Cmd.(*syntax.CallExpr); ok {
				calls[call] = in
			}
		case *syntax.BinaryCmd:
			w.hasInput = w.hasInput || x.Op == syntax.Pipe || x.Op == syntax.PipeAll
		case *syntax.CallExpr:
			for _, a := range x.Assigns {
				w.exported[a] = len(x.Args) > 0
			}
			w.call(x, calls[x])
		case *syntax.CoprocClause:
			if x.Name != nil { // bash takes it for the program of a simple command
				w.unknown("it has a coprocess with a name")
			}
		case *syntax.DeclClause:
			w.declare(x)
		case *syntax.Assign:
			w.assign(x)
		case *syntax.Word:
			w.word(x)
		case *syntax.ParamExp:
			w.parameter(x)
		case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop:
			w.compute(x)
		case *syntax.BinaryTest:
			w.test(x)
		case *syntax.UnaryTest:
			w.arithmetic = w.arithmetic || x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar
		case *syntax.WordIter:
			w.setVariable(x.Name.Value, Word{}, false, w.depth)
			for _, item := range x.Items {
				w.value(item)
			}
		}
		return true
	})
}

// call adds a simple command. A call without words only assigns variables, and starts nothing.
func (w *walker) call(x *syntax.CallExpr, in stdin) {
	c := Command{Possible: w.possible}
	for _, arg := range x.Args {
		word, _ := newWord(arg)
		c.Words = append(c.Words, word)
	}
	w.add(c, w.depth, in)
}

// redirects notes the files that redirections write, and returns what the last one makes the input. A redirection to a
// descriptor, such as 2>&1, writes no file. Where several redirections set the input, the last one counts, as in bash.
func (w *walker) redirects(list []*syntax.Redirect) (in stdin) {
	for _, r := range list {
		target, _ := newWord(r.Word)
		w.hasInput = w.hasInput || r.Op == syntax.RdrIn || r.Op == syntax.DplIn || r.Op == syntax.Hdoc ||
			r.Op == syntax.DashHdoc || r.Op == syntax.WordHdoc || r.Op == syntax.RdrInOut
		switch r.Op {
		case syntax.RdrOut, syntax.AppOut, syntax.RdrInOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll,
			syntax.AppClob, syntax.RdrAllClob, syntax.AppAllClob:
			w.out.Writes = append(w.out.Writes, target)
		case syntax.DplOut:
			if !target.IsKnown() || strings.Trim(target.Prefix, "0123456789-") != "" {
				w.out.Writes = append(w.out.Writes, target)
			}
		case syntax.Hdoc, syntax.DashHdoc:
			in = document(r)
		case syntax.WordHdoc:
			in = stdin{target.Prefix, target.IsKnown()}
		default:
			in = stdin{}
		}
	}
	return in
}

// document returns the text of a here-document. In a document whose end is quoted nothing is expanded, so that its text
// is just what is written.
func document(r *syntax.Redirect) stdin {
	b := &wordBuilder{}
	isQuoted := len(r.Word.Parts) != 1
	if !isQuoted {
		lit, isLit := r.Word.Parts[0].(*syntax.Lit)
		isQuoted = !isLit || strings.Contains(lit.Value, `\`)
	}
	if r.Hdoc != nil {
		for _, part := range r.Hdoc.Parts {
			if lit, ok := part.(*syntax.Lit); ok && isQuoted {
				b.put(lit.Value)
				continue
			}
			b.quotedPart(part)
		}
	}
	return stdin{b.text.String(), !b.w.Hole}
}

// word notes a quoted text that has a substitution: what is computed with it, or expands it again, runs it. Such a text
// is not run where it stands: awk has $(NF-1) in its programs. So the commands in it are only possible.
func (w *walker) word(x *syntax.Word) {
	known, hasSubstitution := newWord(x)
	if !hasSubstitution {
		return
	}
	w.unsafeText = true
	if w.depth >= maxDepth {
		return
	}
	for _, text := range []string{known.Prefix, known.Suffix} {
		if !strings.ContainsAny(text, "`(") {
			continue
		}
		doc, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Document(strings.NewReader(text))
		if err == nil {
			(&walker{parser: w.parser, depth: w.depth + 1, possible: true}).walk(doc)
		}
	}
}

// parameter notes expansions that may run what a variable holds. An operator @P expands the text once more as a prompt,
// an index is computed, and ${!x} has the index that x names.
func (w *walker) parameter(x *syntax.ParamExp) {
	switch {
	case x.Exp != nil && x.Exp.Op == syntax.OtherParamOps:
		if word, _ := newWord(x.Exp.Word); word.Prefix != "Q" && word.Prefix != "U" && word.Prefix != "L" &&
			word.Prefix != "u" {
			w.unknown("an expansion such as ${x@P} may run commands")
		}
	case x.Exp != nil && (x.Exp.Op == syntax.AssignUnset || x.Exp.Op == syntax.AssignUnsetOrNull):
		if x.Param != nil {
			word, _ := newWord(x.Exp.Word)
			w.setVariable(x.Param.Value, word, false, w.depth)
		}
		w.unsafeText = true
	}
	index, isWord := x.Index.(*syntax.Word)
	isWhole := isWord && (index.Lit() == "@" || index.Lit() == "*")
	if x.Excl && x.Names == 0 && !isWhole || x.Slice != nil || x.Index != nil && !isWhole {
		w.arithmetic = true
	}
}

// compute notes that a computation has variables. Numbers alone are no risk: a text can only come from a variable or
// from a command.
func (w *walker) compute(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		word, isWord := n.(*syntax.Word)
		if isWord && (word.Lit() == "" || strings.Trim(word.Lit(), "0123456789") != "") || isExpansion(n) {
			w.arithmetic = true
		}
		return true
	})
}

// isExpansion reports whether a node expands to a text.
func isExpansion(n syntax.Node) bool {
	switch n.(type) {
	case *syntax.ParamExp, *syntax.CmdSubst:
		return true
	}
	return false
}

// test notes a comparison of numbers, which computes both sides. Other comparisons, as of texts and of files, compute
// nothing.
func (w *walker) test(x *syntax.BinaryTest) {
	switch x.Op {
	case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
		w.compute(x)
		w.arithmetic = true
	}
}
