package shellcommands

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Programs that take texts, and not the names of files: as all of their arguments, as the first one that is no option,
// and as what a here-document has.
var (
	printing  = []string{"echo", "printf"}
	searching = []string{"grep", "egrep", "fgrep", "rg", "ag", "sed", "awk", "gawk"}
	copying   = []string{"cat", "tee"}
)

// What a word is to MapPaths.
const (
	comment  = iota // or another part of a script that is no word
	argument        // it may name files
	words           // a text: what echo prints, what grep looks for, what cat copies, a sentence
	code            // a here-document, of which only the program knows what it is
)

// MapPaths returns a script of bash in which each path that begins with root is replaced by what f makes of it: of root
// and what follows, up to a character that ends a path. Words that are texts stay as they are. So do here-documents,
// and a script that cannot be parsed: the paths there are in others.
func MapPaths(script, root string, f func(path string) string) (mapped string, others []string) {
	if !strings.Contains(script, root) {
		return script, nil
	}
	kinds := slices.Repeat([]int{code}, len(script)) // by offset
	if file, why := parse(script); why == "" {
		kinds = kindsOf(file, script, root)
	}
	var b strings.Builder
	for at := 0; ; {
		i := strings.Index(script[at:], root)
		if i < 0 {
			return b.String() + script[at:], others
		}
		begin, end := at+i, len(script)
		if n := strings.IndexFunc(script[begin+len(root):], endsPath); n >= 0 {
			end = begin + len(root) + n
		}
		path := script[begin:end]
		switch kinds[begin] {
		case argument:
			path = f(path)
		case code:
			others = append(others, path)
		}
		b.WriteString(script[at:begin] + path)
		at = end
	}
}

// kindsOf returns what each character of a script belongs to. Of a word in another word the inner one counts.
func kindsOf(file *syntax.File, script, root string) []int {
	kinds := make([]int, len(script))
	special := map[*syntax.Word]int{}
	for n := range syntax.Preorder(file) {
		switch n := n.(type) {
		case *syntax.Stmt:
			call, _ := n.Cmd.(*syntax.CallExpr)
			for _, r := range n.Redirs {
				special[r.Hdoc] = code
				if call != nil && slices.Contains(copying, program(call.Args)) {
					special[r.Hdoc] = words
				}
			}
		case *syntax.CallExpr:
			for _, w := range textsOf(script, n.Args, root) {
				special[w] = words
			}
		case *syntax.Word:
			kind, isSpecial := special[n]
			if !isSpecial {
				kind = argument
			}
			for i := int(n.Pos().Offset()); i < min(int(n.End().Offset()), len(script)); i++ {
				kinds[i] = kind
			}
		}
	}
	return kinds
}

// textsOf returns those of the arguments of a command that are texts.
func textsOf(script string, args []*syntax.Word, root string) (texts []*syntax.Word) {
	if slices.Contains(printing, program(args)) {
		return args[1:]
	}
	isSearched := slices.Contains(searching, program(args))
	before := ""
	for _, w := range args {
		source := script[w.Pos().Offset():min(int(w.End().Offset()), len(script))]
		isOption := strings.HasPrefix(source, "-") || w == args[0]
		isRun := strings.HasPrefix(before, "-") && strings.HasSuffix(before, "c") // of a shell or python: bash -lc
		isPath := strings.HasPrefix(strings.TrimLeft(source, `"'`), root)
		isSentence := !isPath && strings.ContainsAny(strings.ReplaceAll(source, root, ""), " \t\n")
		if isSearched && !isOption || isSentence && !isRun {
			texts = append(texts, w)
		}
		isSearched = isSearched && isOption
		before = source
	}
	return texts
}

// program returns the name of the program of a command, "" where it is not plain.
func program(args []*syntax.Word) string {
	if len(args) == 0 {
		return ""
	}
	name := args[0].Lit()
	return name[strings.LastIndexByte(name, '/')+1:]
}

// endsPath reports whether a character ends a path in a script.
func endsPath(r rune) bool { return strings.ContainsRune(" \t\r\n;|&<>()`$\"'=,:", r) }
