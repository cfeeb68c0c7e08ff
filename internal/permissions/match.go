package permissions

import (
	"path"
	"slices"
	"strings"

	"muster/internal/shellcommands"
)

// truth says how far something is so.
type truth int

// The truths, the weakest first.
const (
	no truth = iota
	perhaps
	yes
)

// maxWords is how many words of a command are compared. What is behind them is not known.
const maxWords = 300

// matchesCommand says how far the rule is for a command. A lenient rule, which denies or asks, is also for other
// spellings: the program by another path, options in another order or together, and operands behind others.
func (r Rule) matchesCommand(tool string, c shellcommands.Command, lenient bool) truth {
	switch {
	case !r.isFor(tool) || r.exact != "":
		return no
	case r.words == nil:
		return yes
	}
	words := c.Words
	if len(words) > maxWords {
		words = append(slices.Clone(words[:maxWords]), shellcommands.Word{Hole: true, Splits: true})
	}
	if !lenient {
		return matchWords(r.words, words, false)
	}
	program := matchProgram(r.words[0], words[0])
	if c.Code != "" && mentions(c.Code, r.words) {
		return perhaps
	}
	if program == no {
		return no
	}
	// Options may stand anywhere, so they are compared by themselves.
	options, operands := splitOptions(r.words[1:])
	t := min(program, hasOptions(r.words[0], options, words[1:]), matchWords(operands, words[1:], true))
	return max(t, min(program, matchWords(r.words[1:], words[1:], false)))
}

// mentions reports whether a code has the words of a rule that are no patterns, in their order. That finds what is
// written plainly. Code that hides a command is not found: the sandbox is for that.
func mentions(code string, words []string) bool {
	found := false
	for _, w := range words {
		if strings.Contains(w, "*") {
			continue
		}
		_, rest, ok := strings.Cut(code, w)
		if !ok {
			return false
		}
		code, found = rest, true
	}
	return found
}

// matchProgram compares the program of a rule with that of a command, by its whole path or its last part. The case does
// not count, because some file systems do not regard it, and nor does .exe.
func matchProgram(pattern string, w shellcommands.Word) truth {
	if pattern == "*" || w.Splits {
		if w.Splits {
			return perhaps
		}
		return yes
	}
	t := matchWord(strings.ToLower(pattern), lower(w))
	if base, ok := w.Base(); ok {
		base = strings.TrimSuffix(strings.ToLower(base), ".exe")
		t = max(t, matchWord(strings.ToLower(pattern), shellcommands.Known(base)))
		if strings.Contains(pattern, "/") { // the same file may have another path
			t = max(t, min(perhaps, matchWord(strings.ToLower(path.Base(pattern)), shellcommands.Known(base))))
		}
	} else if w.Hole { // the hole may have a slash, and only what is behind it is compared then
		behind := shellcommands.Word{Suffix: strings.ToLower(w.Suffix), Hole: true}
		t = max(t, matchWord(strings.ToLower(pattern), behind))
	}
	return t
}

// lower returns a word in small letters.
func lower(w shellcommands.Word) shellcommands.Word {
	w.Prefix, w.Suffix = strings.ToLower(w.Prefix), strings.ToLower(w.Suffix)
	return w
}

// isOption reports whether a word of a rule is an option.
func isOption(s string) bool { return len(s) > 1 && s[0] == '-' }

// splitOptions parts the words of a rule into its options and the rest.
func splitOptions(words []string) (options, operands []string) {
	for _, w := range words {
		if isOption(w) && !strings.Contains(w, "*") {
			options = append(options, w)
		} else {
			operands = append(operands, w)
		}
	}
	return options, operands
}

// sameOptions are options that programs have by two names, by the program: the rest are letters.
var sameOptions = map[string][]string{
	"rm":    {"r R --recursive", "f --force"},
	"cp":    {"r R --recursive", "f --force"},
	"chmod": {"R --recursive"},
	"chown": {"R --recursive"},
	"git":   {"f --force", "n --no-verify", "d --delete", "D --delete"},
	"curl":  {"X --request", "d --data"},
}

// hasOptions says how far a command has all options of a rule, in any order, and short ones together or apart. An
// option of a rule that a command lacks makes another command of it: rm -r is not rm -rf.
func hasOptions(program string, options []string, words []shellcommands.Word) truth {
	result := yes
	for _, option := range options {
		for _, name := range namesOf(option) {
			result = min(result, hasOption(program, name, words))
		}
	}
	return result
}

// namesOf returns the options that an option of a rule is: -rf is two.
func namesOf(option string) (names []string) {
	if strings.HasPrefix(option, "--") || len(option) > 4 { // a long one, also with one dash as programs in Go have it
		return []string{option}
	}
	for _, letter := range option[1:] {
		names = append(names, string(letter))
	}
	return names
}

// hasOption says how far a command has an option: a letter, or a name with its dashes. A letter may stand among others
// behind one dash. A long name may be shortened, as programs of GNU take it, and may have its value behind an =.
func hasOption(program, name string, words []shellcommands.Word) (t truth) {
	names := []string{name}
	for _, same := range sameOptions[program] {
		if list := strings.Fields(same); slices.Contains(list, name) {
			names = append(names, list...)
		}
	}
	for _, w := range words {
		if w.Hole && (w.Splits || w.Prefix == "" || w.Prefix[0] == '-') {
			t = perhaps
		}
		for _, n := range names {
			isLong := strings.HasPrefix(n, "-")
			given, _, _ := strings.Cut(w.Prefix, "=")
			switch {
			case isLong && (given == n || len(given) > 3 && strings.HasPrefix(n, given)), // long ones may be shortened
				!isLong && len(given) > 1 && given[0] == '-' && given[1] != '-' && strings.Contains(given[1:], n):
				return yes
			}
		}
	}
	return t
}

// matchWords says how far the words of a rule match those of a command. A * is any number of words. A lenient rule
// passes over options, perhaps over a word behind one, which may be its value, and over operands where it names a path.
// The table at[i][j] says it for the words from i and from j on. It takes as many steps as the table has cells, however
// many stars the rule has.
func matchWords(pattern []string, words []shellcommands.Word, lenient bool) truth {
	if !lenient && len(pattern) == 1 && pattern[0] == "*" {
		return yes
	}
	next := make([]truth, len(words)+2) // at[i+1]
	next[len(words)] = yes
	for j := len(words) - 1; j >= 0; j-- {
		switch w := words[j]; {
		case lenient && (isOption(w.Prefix) || len(pattern) > 0 && strings.Contains(pattern[len(pattern)-1], "/")):
			next[j] = next[j+1] // more options, and more operands behind a path
		case w.Splits:
			next[j] = min(next[j+1], perhaps) // it may be no word at all
		}
	}
	for i := len(pattern) - 1; i >= 0; i-- {
		row := make([]truth, len(words)+2)
		if pattern[i] == "*" {
			row[len(words)] = next[len(words)]
		}
		for j := len(words) - 1; j >= 0; j-- {
			row[j] = matchAt(pattern[i], words[j], row[j+1], row[j+2], next[j], next[j+1], lenient)
		}
		next = row
	}
	return next[0]
}

// matchAt says how far a rule matches from a place on. rest is so with the word left out, rest2 with two words left
// out, same with the part of the rule left out, and both with both. The word behind an option may be the option's value
// or an operand. Which it is only the program knows, so that both are tried, and the former is only possible.
func matchAt(pattern string, w shellcommands.Word, rest, rest2, same, both truth, lenient bool) truth {
	if pattern == "*" {
		return max(same, rest)
	}
	if w.Splits { // it may be everything
		return perhaps
	}
	if lenient && !isOption(pattern) { // names of hosts and of some files have no case
		pattern, w = strings.ToLower(pattern), lower(w)
	}
	t := min(matchWord(pattern, w), both)
	if w.Globs {
		t = max(t, min(matchWord(pattern, w), perhaps, rest))
	}
	if !lenient {
		return t
	}
	switch {
	case isOption(w.Prefix) && !isOption(pattern):
		t = max(t, rest)
		if !strings.Contains(w.Prefix, "=") && w.Prefix != "--" {
			t = max(t, min(perhaps, rest2))
		}
	case strings.Contains(pattern, "/"):
		t = max(t, rest)
	}
	return t
}

// matchWord says how far a word of a rule, in which * is any text, matches a word. Of a word with a hole its beginning
// and its end are compared: where they differ from the rule's, nothing in the hole can make it match.
func matchWord(pattern string, w shellcommands.Word) truth {
	before, _, isPattern := strings.Cut(pattern, "*")
	if w.IsKnown() {
		if matchStars(pattern, w.Prefix) {
			return yes
		}
		if strings.HasPrefix(pattern, "/") && strings.Contains(w.Prefix, "..") { // where it leads is not known
			return perhaps
		}
		return no
	}
	switch {
	case pattern == "*":
		return yes
	case isPattern: // the word may go on as the rule does
		if n := min(len(before), len(w.Prefix)); before[:n] != w.Prefix[:n] {
			return no
		}
		if after := pattern[len(before):]; after == "*" && strings.HasPrefix(w.Prefix, before) {
			return yes
		}
	case len(pattern) < len(w.Prefix)+len(w.Suffix), !strings.HasPrefix(pattern, w.Prefix),
		!strings.HasSuffix(pattern, w.Suffix):
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

// quote returns words so that a rule with them is for the same words only. It is only compared with other results of
// quote.
func quote(words []shellcommands.Word) string {
	parts := make([]string, len(words))
	for i, w := range words {
		parts[i] = w.Prefix
		if w.Prefix == "" || strings.ContainsAny(w.Prefix, " \t\n'\"*") {
			parts[i] = "'" + strings.ReplaceAll(w.Prefix, "'", `'\''`) + "'"
		}
	}
	return strings.Join(parts, " ")
}
