package shellcommands

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// harmless are variables of the environment that change no program into another one.
var harmless = strings.Fields("CGO_ENABLED GOOS GOARCH GOMAXPROCS GORACE NODE_ENV CI LANG LC_ALL LC_CTYPE TZ " +
	"NO_COLOR FORCE_COLOR CLICOLOR DEBUG VERBOSE RUST_BACKTRACE RUST_LOG PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE " +
	"PYTHONHASHSEED GIT_TERMINAL_PROMPT TERM COLUMNS LINES")

// running are variables whose text bash runs, or reads as a file to run, whenever it likes.
var running = strings.Fields("BASH_ENV ENV PROMPT_COMMAND PS0 PS1 PS2 PS3 PS4 BASH_ALIASES BASH_CMDS SHELLOPTS " +
	"BASHOPTS")

// setVariable notes what an assignment may change. exported says that it is for a program.
//
// A variable can change three things. Bash itself may run what it holds, so that nothing is known any more. A program
// may run it, so that its text is a script too. And a name may stand for another program, as with PATH: then what is
// denied is still found by its name, and nothing is allowed by its name.
func (p *parser) setVariable(name string, value Word, exported bool, depth int) {
	isUpper := name == strings.ToUpper(name)
	switch {
	case slices.Contains(running, name), strings.HasPrefix(name, "BASH_FUNC_"), strings.HasPrefix(name, "GIT_CONFIG"),
		name == "GIT_EXEC_PATH":
		p.unknown("it sets " + name + ", which may run commands")
	case !value.IsKnown():
		if exported && runsValue(name) {
			p.unknown("it sets " + name + ", which is a command")
		}
		p.unsafeText = true
	case exported && depth < maxDepth:
		// The programs for which it is meant may run it: GIT_SSH_COMMAND, PAGER and others.
		p.script(value.Prefix, depth+1, !runsValue(name))
		if _, option, ok := strings.Cut(value.Prefix, "="); ok { // options, as in MAKEFLAGS
			p.script(option, depth+1, true)
		}
	}
	if (exported || isUpper) && !slices.Contains(harmless, name) && strings.Trim(name, "_0123456789") != "" {
		p.changed("it sets " + name)
	}
}

// runsValue reports whether programs run what a variable holds, by its name. There are too many of them for a list, and
// their names end in few ways.
func runsValue(name string) bool {
	for _, end := range []string{"EDITOR", "PAGER", "VISUAL", "BROWSER", "_COMMAND", "_SSH", "ASKPASS", "_DIFF",
		"LESSOPEN",
		"LESSCLOSE"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// assign notes an assignment. A variable of the shell may have been exported before: then its name is in capitals.
func (w *walker) assign(x *syntax.Assign) {
	if x.Naked || x.Name == nil {
		return
	}
	if x.Index != nil {
		w.arithmetic = true
	}
	value, _ := newWord(x.Value)
	if x.Value != nil && len(x.Value.Parts) == 1 {
		if _, isNumber := x.Value.Parts[0].(*syntax.ArithmExp); isNumber { // to compute with it runs nothing
			value = Word{}
		}
	}
	if x.Append { // what is put together from parts is not known
		w.unsafeText = true
	}
	w.setVariable(x.Name.Value, value, w.exported[x] || x.Name.Value == strings.ToUpper(x.Name.Value), w.depth)
	if x.Array != nil {
		for _, e := range x.Array.Elems {
			if e.Index != nil {
				w.arithmetic = true
			}
			w.value(e.Value)
		}
	}
}

// value notes a value that a variable gets.
func (w *walker) value(x *syntax.Word) {
	if word, hasSubstitution := newWord(x); hasSubstitution || word.Splits {
		w.unsafeText = true
	}
}

// declare notes what declare, export and their like set. An argument that is an assignment only when it runs, as in
// declare "$x=1", can set any variable.
func (w *walker) declare(x *syntax.DeclClause) {
	c := Command{Possible: w.possible, Words: []Word{Known(x.Variant.Value)}}
	for _, a := range x.Args {
		word := Word{}
		switch {
		case !a.Naked:
			value, _ := newWord(a.Value)
			w.setVariable(a.Name.Value, value, true, w.depth)
			word = Word{Prefix: a.Name.Value + "=" + value.Prefix, Suffix: value.Suffix, Hole: value.Hole ||
				a.Array != nil}
		case a.Name != nil:
			word = Known(a.Name.Value)
		default:
			word, _ = newWord(a.Value)
		}
		isOption := word.IsKnown() && strings.HasPrefix(word.Prefix, "-")
		switch {
		case isOption && strings.Contains(word.Prefix, "n"):
			w.unknown("a variable in it stands for another one")
		case isOption && strings.Contains(word.Prefix, "i"): // integers are computed
			w.arithmetic = true
		case a.Naked && a.Name == nil && !isOption: // the text is an assignment only when it runs
			w.arithmetic, w.unsafeText = true, true
			if name, _, _ := strings.Cut(word.Prefix, "="); !word.IsKnown() && name == word.Prefix {
				w.unknown("what it declares is known only when it runs")
			} else {
				w.setVariable(strings.TrimSuffix(name, "+"), Word{Hole: true}, true, w.depth)
			}
		}
		c.Words = append(c.Words, word)
	}
	w.add(c, w.depth, stdin{})
}
