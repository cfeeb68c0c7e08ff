package shellcommands

import (
	"strings"

	"muster/internal/lazyregexp"
)

// trap adds the script of a trap. A trap with a signal alone, or with a dash, sets the signal back and runs nothing.
func (u *unwrapper) trap(args []Word) {
	args = withoutDashes(args)
	if len(args) > 1 && args[0].Prefix != "-" || len(args) == 1 && !args[0].IsKnown() {
		u.script(args[:1])
	}
}

// withoutDashes returns arguments without the two dashes that end the options.
func withoutDashes(args []Word) []Word {
	if len(args) > 0 && args[0] == Known("--") {
		return args[1:]
	}
	return args
}

// file checks the file that source reads. It is a program of its own like every other script, unless its text comes
// from a device or from another command.
func (u *unwrapper) file(args []Word) {
	if args = withoutDashes(args); len(args) == 0 {
		return
	}
	if f := args[0]; f.Splits || isDevice(f) {
		u.unknown("a script in it is known only when it runs")
	}
	u.next(args, true) // a rule may be for the file
}

// device matches a file that may be a descriptor, such as /dev/stdin or, from within /dev, fd/3 and 3.
var device = lazyregexp.New(`(^|/)([0-9]+|stdin|stdout|stderr)$|^/+dev/|/proc/|^-$`)

// isDevice reports whether a file may be a device, or one of a descriptor: then it is no file that keeps a script.
func isDevice(w Word) bool {
	if w.Hole && !strings.Contains(w.Suffix, "/") {
		return w.Prefix == "" || strings.HasPrefix(w.Prefix, "/")
	}
	return device().MatchString(w.Prefix) || device().MatchString(w.Suffix)
}

// shell adds the script of a shell. It is in the argument behind -c, in a file, or it is what the shell reads. A file
// is a program of its own. What a shell reads is known only from a here-document or a here-string: what a pipe brings
// is made by another program.
func (u *unwrapper) shell(args []Word) {
	fromArgument, fromInput := false, false
	for len(args) > 0 {
		w := args[0]
		if !w.IsKnown() && (w.Splits || w.Prefix == "" || w.Prefix[0] == '-') {
			u.unknown("a script in it is known only when it runs")
			return
		}
		if len(w.Prefix) < 2 || w.Prefix[0] != '-' && w.Prefix[0] != '+' {
			break
		}
		args = args[1:]
		if w.Prefix == "--" {
			break
		}
		if name, isLong := strings.CutPrefix(w.Prefix, "--"); isLong {
			switch name {
			case "rcfile", "init-file":
				u.unknown("a shell in it reads a file first")
				args = args[min(1, len(args)):]
			case "command": // of fish
				fromArgument = true
			}
			continue
		}
		letters := w.Prefix[1:]
		if strings.Contains(letters, "k") {
			u.unknown("a shell in it makes assignments of arguments")
		}
		fromArgument = fromArgument || strings.Contains(letters, "c")
		fromInput = fromInput || strings.Contains(letters, "s")
		if strings.Contains(letters, "i") || strings.Contains(letters, "l") && u.input.isKnown {
			u.unknown("a shell in it is interactive and reads files first")
		}
		values := strings.Count(letters, "o") + strings.Count(letters, "O")
		args = args[min(values, len(args)):]
	}
	switch {
	case fromArgument && len(args) > 0:
		u.starts = true
		u.script(args[:1])
	case len(args) > 0 && !fromInput && !isDevice(args[0]):
		if args[0].Splits {
			u.unknown("a script in it is known only when it runs")
		}
		u.next(args, true) // a rule may be for the file
	case len(args) == 1 && args[0].Prefix == "--version":
	case u.input.isKnown:
		u.starts = true
		u.parser.script(u.input.text, u.depth+1, u.command.Possible)
	default:
		u.unknown("a shell in it reads a script from its input")
	}
}
