package permissions

import (
	"slices"
	"strings"

	"muster/internal/lazyregexp"
	"muster/internal/shellcommands"
)

// readers are programs that only read, by their names, each with the options that make it write or run something.
var readers = map[string]string{
	"cat": "", "ls": "", "head": "", "tail": "", "wc": "", "grep": "", "egrep": "", "fgrep": "", "pwd": "",
	"echo":   "",
	"printf": "-v", "true": "", "false": "", "test": "", "[": "", "cd": "", "cut": "", "tr": "", "stat": "", "du": "",
	"df": "", "which": "", "type": "", "cmp": "", "basename": "", "dirname": "", "realpath": "", "readlink": "",
	"nl": "", "pgrep": "", "hash": "-p",
	"od": "", "hexdump": "", "uname": "", "id": "", "whoami": "", "printenv": "", "sha256sum": "", "md5sum": "",
	"jq":   "",
	"diff": "--output", "tree": "-o", "rg": "--pre --hostname-bin", "tac": "", "comm": "", "join": "",
	"find": "-delete -fprint -fprint0 -fprintf -fls -exec -execdir -ok -okdir",
	"file": "-C --compile -m --magic-file", "sort": "-o --output -T --compress-program -S",
}

// gitReaders are commands of git that only read.
var gitReaders = strings.Fields("status log diff show blame ls-files ls-tree rev-parse rev-list cat-file grep " +
	"shortlog describe merge-base name-rev for-each-ref show-ref count-objects whatchanged diff-tree diff-index " +
	"check-ignore")

// gitWrites are options by which these write or run something.
var gitWrites = []string{"--output", "--open-files-in-pager", "-O", "--ext-diff", "--textconv", "--filters", "-o"}

// printedLines matches a script of sed that prints lines by their numbers, as models read files.
var printedLines = lazyregexp.New(`^[0-9,$;p]+$`)

// isReading reports whether a command is known to read only. A program in a path of its own is not known. The list is
// short on purpose: what is not in it is refused in the mode plan, which does no harm.
func isReading(c shellcommands.Command) bool {
	if c.Starts {
		return true // what it starts is looked at
	}
	name, args := c.Words[0].Text, c.Words[1:]
	writes, isReader := readers[name]
	forbidden := strings.Fields(writes)
	switch {
	case name == "git":
		if len(args) == 0 || !slices.Contains(gitReaders, args[0].Text) {
			return false
		}
		forbidden = gitWrites
	case name == "command": // it says what a name stands for
		return len(args) > 0 && (args[0].Text == "-v" || args[0].Text == "-V")
	case name == "sed": // it prints lines
		return len(args) > 1 && args[0].Text == "-n" && printedLines().MatchString(args[1].Text) &&
			!slices.ContainsFunc(args[2:], func(w shellcommands.Word) bool { return !w.IsKnown() || isOption(w.Text) })
	case name == "go":
		return len(args) > 0 && slices.Contains([]string{"doc", "version"}, args[0].Text)
	case !isReader:
		return false
	}
	if len(forbidden) == 0 {
		return true
	}
	return !slices.ContainsFunc(args, func(w shellcommands.Word) bool {
		prefix, _ := w.Ends()
		if w.Splits || prefix == "" && !w.IsKnown() {
			return true // it may be such an option
		}
		given, _, _ := strings.Cut(prefix, "=")
		return slices.ContainsFunc(forbidden, func(f string) bool {
			isShort := len(f) == 2
			return strings.HasPrefix(prefix, f) || isShort && isOption(prefix) && prefix[1] != '-' &&
				strings.Contains(prefix, f[1:]) || len(given) > 3 && strings.HasPrefix(f, given)
		})
	})
}
