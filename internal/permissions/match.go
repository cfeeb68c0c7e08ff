package permissions

import (
	"path"
	"slices"
	"strings"

	"muster/internal/shellcommands"
	"muster/internal/text"
)

// truth says how far something is so.
type truth int

// The truths, the weakest first.
const (
	no truth = iota
	perhaps
	yes
)

// allows says how far a rule that allows is for a command: it is for just its words.
func (r Rule) allows(tool string, c shellcommands.Command) truth {
	switch {
	case !r.isFor(tool) || r.exact != "" || !c.Words[0].IsKnown():
		return no
	case r.words == nil:
		return yes
	}
	var words []operand
	for _, w := range c.Words {
		words = append(words, operand{Word: w, isOpen: true})
	}
	return r.matchOperands(r.words, words)
}

// concerns says how far a rule that denies or asks is for a command of a script. It is also for other spellings: the
// program by another path, options in another order or together, and options before what the rule names.
//
// The rule's words may begin at any word, because the words before it may be a program that starts another one, as in
// sudo git push. A command that only reads starts no other.
//
// A hole may be the program, or the word that the rule has next. Anywhere else it is most likely a file. missing are
// the words of the rule that no text of the script has. If the command has them, a hole may be any word of the rule:
// x=-rf; rm $x y is asked about for a rule for rm -rf, and rm -f "$file" is not.
func (r Rule) concerns(tool string, c shellcommands.Command, missing need) truth {
	switch {
	case !r.isFor(tool) || r.exact != "":
		return no
	case r.words == nil:
		return yes
	}
	var texts []string
	for _, w := range c.Words {
		texts = append(texts, w.Text)
	}
	missing = missing.without(texts)
	isSpelled := len(missing.words)+len(missing.options) == 0
	t := r.matchCommand(c.Words, true, isSpelled)
	if t == yes && c.Possible {
		t = perhaps
	}
	switch {
	case t != no || isReading(c):
		return t
	case c.ReadsScript, isSpelled && r.matchProgram(c.Words[0], true) != yes && hasHole(c):
		return perhaps
	}
	packages := packagesIn(texts)
	for i := 1; i < len(c.Words); i++ {
		words := c.Words[i:]
		base, _ := words[0].Base()
		isHole := strings.Trim(base, shellcommands.Hole) == "" // most likely it is a file
		isProgram := i < packages && !isHole && r.matchProgram(words[0], false) != no
		// A program such as xargs adds words to those that it has.
		if isProgram && (isSpelled || r.matchCommand(words, false, false) != no) || r.isInText(words[0]) {
			return perhaps
		}
	}
	return no
}

// hasHole reports whether a word of a command is known only when it runs.
func hasHole(c shellcommands.Command) bool {
	return slices.ContainsFunc(c.Words, func(w shellcommands.Word) bool { return !w.IsKnown() })
}

// installers take names of packages, which may be those of programs.
var installers = strings.Fields("apk apt apt-get brew cargo dnf npm pip pip3 yum")

// packagesIn returns the index of the word behind which the names of packages stand, as in sudo apt-get -y install, or
// the number of words.
func packagesIn(words []string) int {
	before := ""
	for i, word := range words {
		if (word == "install" || word == "add") && slices.Contains(installers, before) {
			return i
		}
		if !isOption(word) {
			before = word
		}
	}
	return len(words)
}

// isInText reports whether a text of several words has a command of the rule. It may be a script, as in ssh HOST 'git
// push' and --exec='git push'. Texts with backquotes are for people.
func (r Rule) isInText(w shellcommands.Word) bool {
	text := w.Text
	if name, value, ok := strings.Cut(text, "="); ok && !strings.ContainsAny(name, " \t\n") {
		text = value
	} else if isOption(text) { // as in env -S'git push'
		text = text[2:]
	}
	if !strings.ContainsAny(text, " \t\n") || strings.Contains(text, "`") {
		return false
	}
	return slices.ContainsFunc(shellcommands.Parse(text).Commands, func(c shellcommands.Command) bool {
		return c.Words[0].Text == r.words[0] && r.matchCommand(c.Words, false, false) != no
	})
}

// need is what of a rule's words was not found yet.
type need struct {
	words   []string
	options [][]string
}

// without returns what of the need some texts do not have.
func (n need) without(texts []string) need {
	isFound := func(word string) bool {
		return word == "*" || slices.ContainsFunc(texts, func(text string) bool {
			text = strings.ToLower(text)
			return matchStars(word, text) || matchStars(word, path.Base(text))
		})
	}
	hasOption := func(names []string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return isOption(text) && hasName(names, text) })
	}
	return need{
		words:   slices.DeleteFunc(slices.Clone(n.words), isFound),
		options: slices.DeleteFunc(slices.Clone(n.options), hasOption),
	}
}

// matchCommand says how far some words are a command of the rule. isFirst says that they are not the arguments of
// another one, and isSpelled that a hole may be any word of the rule.
func (r Rule) matchCommand(words []shellcommands.Word, isFirst, isSpelled bool) truth {
	const most = 300 // words that are compared, so that a command of many words takes no longer than its square
	if len(words) > most {
		words = append(words[:most:most], shellcommands.Word{Text: shellcommands.Hole, Splits: true})
	}
	if _, isKnown := words[0].Base(); isFirst && words[0].Splits && (isSpelled || !isKnown && len(words) == 1) {
		return perhaps // it may be a whole command
	}
	t := r.matchProgram(words[0], isFirst)
	for _, names := range r.options {
		t = min(t, hasOption(names, words[1:], isSpelled))
	}
	if t == no {
		return no
	}
	return min(t, r.matchOperands(r.operands, r.newOperands(words[1:], isFirst, isSpelled)))
}

// matchProgram compares the program of the rule with a word, by its whole path or its last part. The case does not
// count, because some file systems do not regard it, and nor does .exe. A hole in a relative path is for a program of
// the project, and among the arguments of another program such a path is most likely a file.
func (r Rule) matchProgram(w shellcommands.Word, isFirst bool) truth {
	pattern, text := strings.ToLower(r.words[0]), strings.TrimSuffix(strings.ToLower(w.Text), ".exe")
	base, isKnown := shellcommands.Word{Text: text}.Base()
	isRelative := strings.Contains(text, "/") && text[0] != '/'
	hasPath := strings.Contains(pattern, "/")
	switch {
	case pattern == "*" && !isFirst:
		return no
	case !isKnown && !isRelative:
		return min(perhaps, matchWord(path.Base(pattern), shellcommands.Word{Text: base}))
	case matchStars(pattern, text):
		return yes
	case !isKnown, isRelative && !isFirst && !hasPath:
		return no
	case matchStars(pattern, base):
		return yes
	case hasPath && matchStars(path.Base(pattern), base): // the same file may have another path
		return perhaps
	}
	return no
}

// operand is a word of a command that is no option, or the value of one.
type operand struct {
	shellcommands.Word
	isValue truth // of an option
	isOpen  bool  // a hole in it may be any text
}

// newOperands returns the operands in the arguments of a command, in small letters: names of hosts and of some files
// have no case. A word behind an option may be its value. Only the program knows. A word that begins with a hole may be
// an option.
func (r Rule) newOperands(args []shellcommands.Word, isFirst, isSpelled bool) (operands []operand) {
	mayBeValue := false
	for _, w := range args {
		o := operand{Word: w, isOpen: isFirst && (isSpelled || !mayBeValue)}
		mayBeOption := strings.HasPrefix(w.Text, shellcommands.Hole)
		switch _, value, hasValue := strings.Cut(w.Text, "="); {
		case isOption(w.Text) && !hasValue:
			mayBeValue = w.Text != "--" && !hasAny(r.options, w.Text)
			continue
		case isOption(w.Text):
			o.Text, o.isValue, o.isOpen = value, yes, isFirst && isSpelled
		case mayBeValue || mayBeOption:
			o.isValue = perhaps
		}
		mayBeValue = mayBeOption
		o.Text = strings.ToLower(o.Text)
		operands = append(operands, o)
	}
	return operands
}

// matchOperands says how far the words of a pattern match operands. A * is any number of them. One that may be the
// value of an option can be left out, and any can where a rule that denies or asks names a path.
//
// Each row of the table is for a word of the pattern, from the last one on. In it, row[j] says how far this word and
// those behind it match the operands from j on, and next is the row of the word behind it.
func (r Rule) matchOperands(pattern []string, operands []operand) truth {
	leftOut := func(word string, o operand) truth {
		switch {
		case word == "*", r.Action != Allow && strings.Contains(word, "/"):
			return yes
		case o.Splits:
			return max(perhaps, o.isValue)
		}
		return o.isValue
	}
	next := make([]truth, len(operands)+1)
	next[len(operands)] = yes
	for j := len(operands) - 1; j >= 0 && len(pattern) > 0; j-- {
		next[j] = min(next[j+1], leftOut(pattern[len(pattern)-1], operands[j]))
	}
	for i := len(pattern) - 1; i >= 0; i-- {
		word, row := pattern[i], make([]truth, len(operands)+1)
		if word == "*" {
			row[len(operands)] = next[len(operands)]
		}
		for j := len(operands) - 1; j >= 0; j-- {
			o, is := operands[j], no
			if word == "*" || o.IsKnown() || o.isOpen {
				is = matchWord(word, o.Word)
			}
			row[j] = max(min(is, next[j+1]), min(leftOut(word, o), row[j+1]))
			if word == "*" || o.Splits { // it may be no operand, or several
				row[j] = max(row[j], min(is, next[j]))
			}
		}
		next = row
	}
	return next[0]
}

// matchWord says how far a word of a rule, in which * is any text, matches a word. Of a word with a hole its beginning
// and its end are compared: where they differ from the rule's, nothing in the hole can make it match.
func matchWord(pattern string, w shellcommands.Word) truth {
	if w.IsKnown() {
		if matchStars(pattern, w.Text) {
			return yes
		}
		if strings.HasPrefix(pattern, "/") && strings.Contains(w.Text, "..") { // where it leads is not known
			return perhaps
		}
		return no
	}
	before, _, isPattern := strings.Cut(pattern, "*")
	prefix, suffix := w.Ends()
	switch {
	case pattern == "*":
		return yes
	case isPattern: // the word may go on as the rule does
		if n := min(len(before), len(prefix)); before[:n] != prefix[:n] {
			return no
		}
		if after := pattern[len(before):]; after == "*" && strings.HasPrefix(prefix, before) {
			return yes
		}
	case len(pattern) < len(prefix)+len(suffix),
		!strings.HasPrefix(pattern, prefix), !strings.HasSuffix(pattern, suffix):
		return no
	}
	return perhaps
}

// matchStars reports whether a text matches a pattern in which each * is any text. The parts between the stars are
// looked for from the left, each as early as it can stand, which is enough.
func matchStars(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	if !strings.HasPrefix(text, parts[0]) {
		return false
	}
	text = text[len(parts[0]):]
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return strings.HasSuffix(text, last)
}

// isOption reports whether a word is an option.
func isOption(s string) bool { return len(s) > 1 && s[0] == '-' }

// sameOptions are options that programs have by two names, by the program: the rest are letters.
var sameOptions = map[string][]string{
	"rm":    {"r R --recursive", "f --force"},
	"cp":    {"r R --recursive", "f --force"},
	"chmod": {"R --recursive"},
	"chown": {"R --recursive"},
	"git":   {"f --force", "n --no-verify", "d --delete", "D --delete"},
	"curl":  {"X --request", "d --data"},
}

// optionsOf returns the options that a word of a rule is, each with its names: -rf is two. A name is a letter, or a
// word with its dashes, also with one dash as programs in Go have it.
func optionsOf(program, word string) (options [][]string) {
	names := []string{word}
	if !strings.HasPrefix(word, "--") && len(word) <= 4 {
		names = strings.Split(word[1:], "")
	}
	for _, name := range names {
		all := []string{name}
		for _, same := range sameOptions[program] {
			if list := strings.Fields(same); slices.Contains(list, name) {
				all = append(all, list...)
			}
		}
		options = append(options, all)
	}
	return options
}

// hasOption says how far some words have an option, by one of its names. If isSpelled, a hole may be it.
func hasOption(names []string, words []shellcommands.Word, isSpelled bool) (t truth) {
	for _, w := range words {
		given, _, _ := strings.Cut(w.Text, "=")
		switch {
		case isOption(given) && hasName(names, given):
			return yes
		case isOption(given) && strings.Contains(given, shellcommands.Hole),
			isSpelled && strings.HasPrefix(given, shellcommands.Hole):
			t = perhaps
		}
	}
	return t
}

// hasName reports whether an option of a command has one of some names. A letter may stand among others behind one
// dash, and a long name may be shortened, as programs of GNU take it.
func hasName(names []string, given string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		if strings.HasPrefix(name, "-") {
			return matchStars(name, given) || len(given) > 3 && strings.HasPrefix(name, given)
		}
		return given[1] != '-' && strings.Contains(given[1:], name)
	})
}

// hasAny reports whether an option of a command is one of some options.
func hasAny(options [][]string, given string) bool {
	return slices.ContainsFunc(options, func(names []string) bool { return hasName(names, given) })
}

// quote returns words so that a rule with them is for the same words only. It is only compared with other results of
// quote.
func quote(words []shellcommands.Word) string {
	parts := make([]string, len(words))
	for i, w := range words {
		parts[i] = text.ShellQuote(w.Text)
	}
	return strings.Join(parts, " ")
}
