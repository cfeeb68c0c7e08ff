package permissions

import (
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/text/unicode/norm"

	"muster"
	"muster/internal/shellcommands"
)

// Rule is a rule of a policy. A rule is made by ParseRule alone, so that each was checked.
type Rule struct {
	Action Action
	// Text is the rule as it was written, and File where.
	Text, File string

	tools []string // patterns of names
	words []string // of the command; nil is every one
	exact string   // the whole command, in a grant
	path  string   // a pattern of files; "" is every one

	// The words behind the program, for a rule that denies or asks: the options, each with its names, and the rest in
	// small letters.
	options  [][]string
	operands []string
}

// fileTools and commandTools are the tools for files that write, and those that run commands.
var (
	fileTools    = []string{"write_file", "edit_file", "apply_patch"}
	commandTools = []string{"bash", "worktree_run"}
	readTools    = []string{"read_file", "grep"} // grep prints what files have
)

// ParseRule reads a rule: a tool, as in write_file, or a tool with what it is about, as in bash(git push *) and
// write_file(docs/**). Names of Claude Code's tools are understood, and so is its Bash(git push:*). A rule for one of
// the tools that write files is for all of them.
func ParseRule(a Action, text, file string) (Rule, error) {
	r := Rule{Action: a, Text: strings.TrimSpace(text), File: file}
	name, about, hasAbout := strings.Cut(strings.TrimSuffix(r.Text, ")"), "(")
	if name = strings.TrimSpace(name); name == "" || hasAbout != strings.HasSuffix(r.Text, ")") ||
		strings.ContainsAny(name, " )") {
		return r, muster.Errorf(muster.Invalid,
			"%q is no rule: write tool or tool(what), such as bash(git push *)", text)
	}
	switch strings.ToLower(name) {
	case "bash", "worktree_run":
		r.tools = commandTools
	case "write", "edit", "multiedit", "notebookedit", "write_file", "edit_file", "apply_patch":
		r.tools = fileTools
	case "read", "read_file":
		r.tools = readTools
	case "grep", "glob":
		r.tools = []string{strings.ToLower(name)}
	case "webfetch", "websearch":
		return r, muster.Errorf(muster.Invalid, "%q is for a tool that muster does not have", text)
	default:
		r.tools = []string{name}
		if strings.HasPrefix(name, "mcp__") && strings.Count(name, "__") == 1 { // a server means all of its tools
			r.tools = []string{name + "__*"}
		}
	}
	if _, err := path.Match(r.tools[0], ""); err != nil {
		return r, muster.Errorf(muster.Invalid, "%q is no rule: its name of a tool is no pattern", text)
	}
	switch about = strings.TrimSpace(about); {
	case hasAbout && about == "":
		return r, muster.Errorf(muster.Invalid, "%q is no rule: between the parentheses is nothing", text)
	case !hasAbout, about == "*", about == "**":
		if slices.Equal(r.tools, readTools) {
			r.tools = readTools[:1]
		}
		return r, nil
	case slices.Equal(r.tools, commandTools):
		r.parseCommand(about)
		return r, nil
	}
	if rest, isBelowHome := strings.CutPrefix(about, "~/"); isBelowHome { // a member has another home
		about = "**/" + rest
	}
	r.path = norm.NFC.String(strings.TrimLeft(strings.TrimPrefix(about, "./"), "/"))
	if strings.HasSuffix(r.path, "/") {
		r.path += "**"
	}
	if !doublestar.ValidatePattern(r.path) {
		return r, muster.Errorf(muster.Invalid, "%q is no rule: %s is no pattern of files", text, about)
	}
	return r, nil
}

// parseCommand reads the pattern of a command. Its words are those of the shell, so that quotes stand for what they do
// there, and a * within a word is any text of it. The older form with a colon, as in git push:*, means the same as one
// with a blank.
func (r *Rule) parseCommand(about string) {
	if exact, isExact := strings.CutPrefix(about, "= "); isExact {
		r.exact = exact
		return
	}
	if prefix, ok := strings.CutSuffix(about, ":*"); ok {
		about = prefix + " *"
	}
	for word := range strings.FieldsSeq(about) {
		r.words = append(r.words, strings.Trim(word, `'"`))
	}
	for i, word := range r.words {
		switch {
		case i == 0 && word != "*", word == "--":
		case isOption(word):
			r.options = append(r.options, optionsOf(r.words[0], word)...)
		default:
			r.operands = append(r.operands, strings.ToLower(word))
		}
	}
}

// String returns the rule as people read it, with the file that has it.
func (r Rule) String() string {
	s := r.Action.String() + " " + r.Text
	if r.File != "" {
		s += " of " + r.File
	}
	return s
}

// isFor reports whether the rule is for a tool.
func (r Rule) isFor(tool string) bool {
	return slices.ContainsFunc(r.tools, func(pattern string) bool {
		ok, err := path.Match(pattern, tool)
		return ok && err == nil
	})
}

// isWhole reports whether the rule is for every call of its tools.
func (r Rule) isWhole() bool { return r.words == nil && r.exact == "" && r.path == "" }

// matchesPath says how far the rule is for a call about a file; "" is none.
func (r Rule) matchesPath(tool, file string) truth {
	if !r.isFor(tool) || r.words != nil || r.exact != "" {
		return no
	}
	if r.path == "" || file != "" && r.hasPath(file) {
		return yes
	}
	return no
}

// hasPath reports whether the rule's pattern matches a file. One without a slash matches files of the name in every
// directory. Rules that deny or ask regard no case, because some file systems do not. No rule regards the normal form
// of Unicode, because the tools find a file by each. The file is made clean before, so that a/../b is b. Links are
// followed by who makes the call.
func (r Rule) hasPath(file string) bool {
	pattern := r.path
	file = norm.NFC.String(strings.TrimPrefix(path.Clean("/"+file), "/"))
	if r.Action != Allow {
		pattern, file = strings.ToLower(pattern), strings.ToLower(file)
	}
	if !strings.Contains(pattern, "/") {
		pattern = "**/" + pattern
	}
	ok, err := doublestar.Match(pattern, file)
	return ok && err == nil
}

// missingIn returns which words of the rule some texts do not have.
func (r Rule) missingIn(texts []string) need {
	if r.words == nil {
		return need{}
	}
	words := append([]string{strings.ToLower(r.words[0])}, r.operands...)
	return need{words: words, options: r.options}.without(texts)
}

// isNamedIn reports whether some texts have one of the rule's files or its directory.
func (r Rule) isNamedIn(texts []string) bool {
	directory, _, _ := strings.Cut(strings.ToLower(r.path), "*")
	directory = strings.Trim(directory, "/")
	return r.path != "" && slices.ContainsFunc(texts, func(text string) bool {
		return r.hasPath(text) || directory != "" && strings.Contains(strings.ToLower(text), directory)
	})
}

// matchesTarget says how far the rule is for a file that a redirection writes. moves says that the shell may have
// changed its directory, and isNamed that the script names the rule's directory: then it may have gone there, and what
// is not known may be in there.
func (r Rule) matchesTarget(w shellcommands.Word, moves, isNamed bool) truth {
	file := strings.ToLower(norm.NFC.String(path.Clean(w.Text)))
	isBelow, _ := doublestar.Match("**/"+strings.ToLower(r.path), file)
	hasName, _ := doublestar.Match(strings.ToLower(path.Base(r.path)), path.Base(file))
	switch {
	case !r.isFor("write_file"):
		return no
	case r.path == "", w.IsKnown() && !strings.HasPrefix(file, "..") && r.hasPath(w.Text):
		return yes
	case isBelow, isNamed && (moves && hasName || !w.IsKnown()):
		return perhaps
	}
	return no
}

// mayBeWritten says whether a command names a file of the rule that it may write, as its argument or as the value of an
// option. What a command does with a file is not known, so a match is only possible. An argument that is known only
// when it runs is passed over: nearly every script has one.
func (r Rule) mayBeWritten(c shellcommands.Command) truth {
	if r.path == "" || !r.isFor("write_file") {
		return no
	}
	for _, w := range c.Words[1:] {
		prefix, suffix := w.Ends()
		_, value, _ := strings.Cut(prefix, "=")
		if !w.IsKnown() && prefix != "" {
			prefix += "x" // something in the directory
		}
		isFile := func(name string) bool { return name != "" && r.hasPath(name) }
		if isFile(prefix) || isFile(value) || isFile(suffix) {
			return perhaps
		}
	}
	return no
}

// showers are programs that only read, and that print nothing of what is in the files that they are given.
var showers = strings.Fields("echo printf true false test [ cd pwd ls stat du df which type basename dirname " +
	"realpath readlink pgrep hash uname id whoami printenv tree find")

// searchers are programs whose first operand is no file.
var searchers = strings.Fields("grep egrep fgrep rg sed jq")

// mayBeReadBy says how far a command reads a file of the rule that it names.
func (r Rule) mayBeReadBy(c shellcommands.Command) truth {
	if r.path == "" || !r.isFor("read_file") || c.Starts {
		return no
	}
	is := perhaps
	if isReading(c) {
		if is = yes; slices.Contains(showers, c.Words[0].Text) {
			return no
		}
	}
	operands := c.Words[1:]
	if slices.Contains(searchers, c.Words[0].Text) { // the first operand is what is searched for
		if i := slices.IndexFunc(operands, func(w shellcommands.Word) bool { return !isOption(w.Text) }); i >= 0 {
			operands = operands[i+1:]
		}
	}
	for _, w := range operands {
		if !w.IsKnown() {
			continue
		}
		for _, mark := range []string{"", "=", ":", "@"} { // --file=NAME, HEAD:NAME, @NAME
			if _, name, found := strings.Cut(w.Text, mark); found && name != "" && r.hasPath(name) {
				return is
			}
		}
	}
	return no
}

// mayMatchCommand says how far the rule may be for a command that is not known.
func (r Rule) mayMatchCommand(tool string) truth {
	switch {
	case !r.isFor(tool):
		return no
	case r.isWhole():
		return yes
	}
	return perhaps
}
