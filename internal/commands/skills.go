package commands

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"muster/internal/lazyregexp"
	"muster/internal/skills"
	"muster/internal/text"
)

// newSkill returns the command that starts a skill. It is called as the skill is, or as its directory.
func newSkill(s skills.Skill) Command {
	c := Command{File: s.File, Hint: text.CutBytes(hintOf(s.Head), maxShown), skill: &s}
	c.Name, c.Description, c.Below = typed(s.Name), text.CutBytes(s.Description, maxShown), ""
	c.also = []string{strings.ToLower(c.Name), typed(filepath.Base(s.Dir))}
	return c
}

// expandSkill returns what the user says by a skill, and a line about each field of its head that has no effect.
func expandSkill(s skills.Skill, args string) (said string, notes []string) {
	a := arguments{all: args, words: Split(args), names: s.Head.List("arguments")}
	said, isUsed := a.put(s.Text())
	if args != "" && !isUsed {
		said += "\n\nARGUMENTS: " + args
	}
	said = "Do what the skill " + s.Name + " says:\n\n" + strings.TrimSpace(said)
	if files := s.Files(); files != "" {
		said += "\n\n" + files
	}
	if kind := s.Head.Text("context"); kind != "" {
		notes = append(notes, s.Place+" has the context "+kind+", which is ignored: the lead does it itself")
	}
	return said, notes
}

// arguments are those of a skill.
type arguments struct {
	all   string
	words []string
	names []string // that the head gives to the words
}

// argument matches what may stand for arguments. A backslash before it takes its meaning away.
var argument = lazyregexp.New(`\\?\$(?:ARGUMENTS\b(?:\[[0-9]+\])?|[0-9]+|[A-Za-z_][A-Za-z0-9_-]*)`)

// put returns a text with the arguments in their places. A number without an argument stays as it is.
func (a arguments) put(body string) (said string, isUsed bool) {
	said = argument().ReplaceAllStringFunc(body, func(mark string) string {
		name, isEscaped := strings.CutPrefix(mark, `\`)
		value, isPlaceholder, hasValue := a.value(strings.TrimPrefix(name, "$"))
		switch {
		case isEscaped && isPlaceholder:
			return name
		case isEscaped || !hasValue:
			return mark
		}
		isUsed = true
		return value
	})
	return said, isUsed
}

// value returns what a name stands for: all arguments, the one with a number, which begins at 0, or the one with a name
// of the head, which is empty if there are fewer.
func (a arguments) value(name string) (value string, isPlaceholder, hasValue bool) {
	if name == "ARGUMENTS" {
		return a.all, true, true
	}
	n, isNamed := slices.Index(a.names, name), true
	if n < 0 {
		digits := strings.TrimSuffix(strings.TrimPrefix(name, "ARGUMENTS["), "]")
		number, err := strconv.ParseUint(digits, 10, 16)
		if err != nil {
			return "", false, false
		}
		n, isNamed = int(number), false
	}
	if n < len(a.words) {
		return a.words[n], true, true
	}
	return "", true, isNamed
}
