package shellcommands

import (
	"strings"
)

// redefining are builtins that give names another meaning, or run what a variable holds.
var redefining = strings.Fields("alias hash enable bind complete compgen mapfile readarray read printf unset test [ " +
	"let set shopt getopts wait fc")

// redefine notes what a builtin may change. Those that take names of variables compute the index in a name, as in read
// "a[$(x)]".
func (u *unwrapper) redefine(name string, args []Word) {
	has := func(letter byte) bool { return hasLetter(args, letter) }
	text, isKnown := join(args)
	switch name {
	case "alias":
		if !isKnown || strings.Contains(text, "=") {
			u.unknown("it sets an alias")
		}
	case "shopt":
		if !isKnown || strings.Contains(text, "expand_aliases") {
			u.unknown("it may use aliases")
		}
	case "hash", "enable":
		if has('p') || has('f') {
			u.unknown(name + " gives a name another meaning")
		}
	case "bind", "complete", "compgen", "fc":
		u.unknown(name + " may run commands")
	case "mapfile", "readarray":
		if u.setVariables(args); has('C') || !isKnown {
			u.unknown(name + " may run commands")
		}
	case "let":
		u.arithmetic = true
		u.unsafeText = u.unsafeText || !isKnown
	default: // names of variables may have an index, which is computed
		names := name == "read" || name == "getopts" || name == "wait" || name == "printf" && has('v')
		if names {
			u.setVariables(args)
		}
		u.unsafeText = u.unsafeText || name == "set" && !isKnown
		switch {
		case strings.Contains(text, "[") && name != "printf" || !isKnown && name != "printf" && name != "set":
			u.arithmetic = true
		case name == "printf" && names || (name == "test" || name == "[") && strings.Contains(text, "-v"):
			u.arithmetic = true
		case name == "set" && (has('k') || strings.Contains(text, "keyword")):
			u.unknown("set -k makes assignments of arguments")
		}
	}
}

// hasLetter reports whether a builtin may have an option with a letter, perhaps together with others in one word. Some
// options have a value, so that others may stand behind it. What is known only when it runs may be an option where only
// options stand before it.
func hasLetter(args []Word, letter byte) bool {
	onlyOptions := true
	for _, w := range args {
		switch {
		case w == Known("--"):
			return false
		case w.mayBeOption():
			if onlyOptions {
				return true
			}
		case len(w.Prefix) < 2 || w.Prefix[0] != '-':
			onlyOptions = false
		case strings.IndexByte(w.Prefix, letter) > 0:
			return true
		}
	}
	return false
}

// setVariables notes that a builtin sets the variables that its arguments name, also those of an array. An argument
// that is no name, such as an option or a file, is taken for one all the same, and changes nothing then. The text comes
// from elsewhere, so that it may hold a substitution.
func (u *unwrapper) setVariables(args []Word) {
	u.unsafeText = true
	for _, w := range args {
		name, _, _ := strings.Cut(w.Prefix, "[")
		u.setVariable(name, Word{Hole: true}, false, u.depth)
	}
}
