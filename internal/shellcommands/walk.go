package shellcommands

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// walker adds what the nodes of a syntax tree start. Each node is visited, a statement before what is in it.
type walker struct {
	*parser
	depth      int
	isPossible bool
	skipped    map[*syntax.Word]bool // here-documents, and options of programs
}

// input is what a command reads as its input.
type input struct {
	text    string
	isKnown bool // it is the text of a here-document or a here-string
}

func (w *walker) visit(n syntax.Node) {
	switch x := n.(type) {
	case *syntax.Stmt:
		w.statement(x)
	case *syntax.BinaryCmd:
		w.hasInput = w.hasInput || x.Op == syntax.Pipe || x.Op == syntax.PipeAll
	case *syntax.ProcSubst:
		w.hasInput = true
	case *syntax.CoprocClause:
		if x.Name != nil { // bash takes it for the program of a simple command
			w.unknown("it has a coprocess with a name")
		}
	case *syntax.Assign:
		if x.Name != nil {
			w.setVariable(x.Name.Value, false)
		}
	case *syntax.WordIter:
		w.setVariable(x.Name.Value, false)
	case *syntax.ParamExp:
		if x.Param != nil && x.Exp != nil && (x.Exp.Op == syntax.AssignUnset || x.Exp.Op == syntax.AssignUnsetOrNull) {
			w.setVariable(x.Param.Value, false)
		}
	case *syntax.Redirect:
		w.skipped[x.Hdoc] = true
	case *syntax.Word:
		if !w.skipped[x] {
			w.out.Texts = append(w.out.Texts, strings.FieldsFunc(newWord(x).Text, isSeparator)...)
		}
	}
}

// isSeparator reports whether a character stands between texts.
func isSeparator(c rune) bool { return strings.ContainsRune(" \t\n'\"`$(){}[]<>|&;,:=!\\"+Hole, c) }

// statement adds a simple command, and notes what its redirections write.
func (w *walker) statement(s *syntax.Stmt) {
	in := w.redirects(s.Redirs)
	var words []Word
	switch x := s.Cmd.(type) {
	case *syntax.CallExpr:
		environment := []Word{{Text: "env"}}
		for _, a := range x.Assigns {
			w.setVariable(a.Name.Value, len(x.Args) > 0)
			environment = append(environment, assignment(a))
		}
		if len(x.Assigns) > 0 && len(x.Args) > 0 { // a program may run what is in a variable, such as GIT_PAGER
			w.out.Commands = append(w.out.Commands, Command{Words: environment, Possible: true})
		}
		for _, arg := range x.Args {
			words = append(words, newArgument(arg))
		}
		passesOn := slices.ContainsFunc(words, func(word Word) bool { return w.passOn[word.Text] })
		for _, arg := range x.Args {
			w.skipped[arg] = !passesOn && isOption(newWord(arg).Text)
		}
	case *syntax.DeclClause: // export and its like
		words = []Word{{Text: x.Variant.Value}}
		for _, a := range x.Args {
			words = append(words, assignment(a))
		}
	}
	if len(words) > 0 {
		w.add(words, in)
	}
}

// assignment returns an assignment as a word. An option of export and its like has no name.
func assignment(a *syntax.Assign) Word {
	word := newWord(a.Value)
	if a.Name != nil {
		word.Text = a.Name.Value + "=" + word.Text
	}
	return word
}

// redirects notes the files that redirections write, and returns what they make the input. A redirection to a
// descriptor, such as 2>&1, writes no file, and one of another descriptor, such as 3<<< a, leaves the input.
func (w *walker) redirects(list []*syntax.Redirect) (in input) {
	for _, r := range list {
		target := newWord(r.Word)
		isInput := r.N == nil || strings.Trim(r.N.Value, "0") == ""
		switch r.Op {
		case syntax.RdrOut, syntax.AppOut, syntax.RdrInOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll,
			syntax.AppClob, syntax.RdrAllClob, syntax.AppAllClob:
			w.out.Writes = append(w.out.Writes, target)
		case syntax.DplOut:
			if strings.Trim(target.Text, "0123456789-") != "" {
				w.out.Writes = append(w.out.Writes, target)
			}
		case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
			w.hasInput = true
			if !isInput {
				break
			}
			in = input{text: target.Text, isKnown: true}
			if r.Op != syntax.WordHdoc {
				in.text = document(r)
			}
		default:
			in = input{}
		}
	}
	return in
}

// add adds a command, and the commands of the script that its words give to a shell or to eval. Where a later word is
// the shell, as in sudo sh -c and find -exec sh -c, they are only possible.
func (w *walker) add(words []Word, in input) {
	at, builtin := len(w.out.Commands), 0
	w.out.Commands = append(w.out.Commands, Command{Words: words, Possible: w.isPossible})
	for builtin < len(words)-1 && (words[builtin].Text == "builtin" || words[builtin].Text == "command" ||
		builtin > 0 && isOption(words[builtin].Text)) {
		builtin++
	}
	for i, word := range words {
		name, args := word.Text, words[i+1:]
		if base, ok := word.Base(); ok && (i == 0 || strings.HasPrefix(name, "/")) {
			name = base
		}
		text, isScript, isPlain := "", false, false
		switch {
		case slices.Contains(shells, name), i == builtin && (name == "source" || name == "."):
			text, isScript, isPlain = w.shell(words, i, in)
		case i != builtin:
		case name == "eval":
			text, isScript, isPlain = join(args), true, true
		case name == "trap":
			if args = args[countOptions(args):]; len(args) > 1 {
				text, isScript = args[0].Text, true
			}
		case name == "alias" && strings.Contains(join(args), "="):
			w.unknown("it sets an alias")
		}
		if isScript {
			w.out.Commands[at].Starts = isPlain && i == 0 && !w.isPossible
			w.script(text, w.depth+1, w.isPossible || i > 0)
			return
		}
	}
}

// shells run a script in an argument, in a file or from their input.
var shells = strings.Fields("sh bash dash zsh ksh ash fish")

// shell returns the script that the shell at i of some words runs: the argument behind -c, or its here-document. A
// script in a file is a program of its own. isPlain reports whether the shell does nothing else.
func (w *walker) shell(words []Word, i int, in input) (text string, isScript, isPlain bool) {
	args := words[i+1:]
	if i > 0 { // find ends a command by one of these
		isEnd := func(w Word) bool { return w.Text == ";" || w.Text == "+" }
		if end := slices.IndexFunc(args, isEnd); end >= 0 {
			args = args[:end]
		}
	}
	n := countOptions(args)
	hasText, readsInput := false, len(args) == n
	isPlain = n == 0 || n == 1 && strings.Trim(args[0].Text, "-celsux") == ""
	for _, option := range args[:n] {
		switch letters := option.Text; {
		case letters == "--version", letters == "--help":
			return "", false, false
		case isOption(letters) && !strings.HasPrefix(letters, "--"):
			hasText = hasText || strings.Contains(letters, "c")
			readsInput = readsInput || strings.Contains(letters, "s")
		}
	}
	args = args[n:]
	name := ""
	if len(args) > 0 {
		name = path.Clean(args[0].Text)
	}
	isInput := slices.Contains([]string{"", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"}, name)
	isDescriptor := strings.HasPrefix(name, "/dev/") || strings.HasPrefix(name, "/proc/")
	switch {
	case hasText && len(args) > 0 && i > 0: // xargs and find put what they find in the place of {}
		return strings.ReplaceAll(args[0].Text, "{}", Hole), true, isPlain
	case hasText && len(args) > 0:
		return args[0].Text, true, isPlain
	case hasText, readsInput, isInput, isDescriptor:
		if in.isKnown && !hasText && (readsInput || isInput) {
			return in.text, true, isPlain
		}
		if i == 0 {
			w.unknown("a shell in it reads a script from its input")
		}
		isNamedByXargs := words[0].Text == "xargs" && !readsFile(words[1:i]) // it adds the names of scripts
		w.out.Commands[len(w.out.Commands)-1].ReadsScript = hasText || isDescriptor || !isNamedByXargs
	}
	return "", false, false
}

// readsFile reports whether one of some options of xargs is -a, with which it leaves its input to what it starts.
func readsFile(options []Word) bool {
	return slices.ContainsFunc(options, func(w Word) bool {
		return strings.HasPrefix(w.Text, "--a") ||
			isOption(w.Text) && !strings.HasPrefix(w.Text, "--") && strings.Contains(w.Text, "a")
	})
}

// countOptions returns how many of some words are options of a shell, with the values of -o and -O.
func countOptions(words []Word) (n int) {
	for n < len(words) && isOption(words[n].Text) {
		if text := words[n].Text; text[1:] != "" && text[1] != '-' && strings.ContainsAny(text, "oO") {
			n++
		}
		n++
	}
	return min(n, len(words))
}

// isOption reports whether a shell takes a word for an option.
func isOption(text string) bool { return strings.HasPrefix(text, "-") || strings.HasPrefix(text, "+") }
