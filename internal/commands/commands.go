// Package commands finds the slash commands that people have: texts that a user says to an agent by a name.
//
// A command is a Markdown file, or a skill that people may start. Find looks where people keep them for other agents,
// in the repository and at home, and Command.Expand returns the text with the arguments in it. The text is the user's
// message then, and nothing else: nothing here runs anything, and no field of a head grants a tool or chooses a model.
package commands

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"muster/internal/agentfiles"
	"muster/internal/frontmatter"
	"muster/internal/lazyregexp"
	"muster/internal/skills"
	"muster/internal/text"
)

// maxShown is how many bytes of a description are shown.
const maxShown = 160

// Command is one command. Its Name has no slash, such as release or frontend:component.
type Command struct {
	agentfiles.File
	Hint string // what the arguments are, as its file says

	names []string // by which it can be called
	also  []string // other names of a skill
	skill *skills.Skill
	// expand returns the text of a command that has no file.
	expand func(ctx context.Context, args string) (string, error)
}

// New returns a command that is in no file. place says where it comes from, and expand returns its text for arguments.
func New(
	name, hint, description, place string, expand func(ctx context.Context, args string) (string, error),
) Command {
	c := Command{Hint: text.CutBytes(text.OneLine(hint), maxShown), names: []string{typed(name)}, expand: expand}
	c.Name, c.Place = typed(name), text.OneLine(place)
	c.Description = text.CutBytes(text.OneLine(description), maxShown)
	return c
}

// Find returns the commands of a repository and of the user, the strongest first: see agentfiles.Find. Skills come
// before commands. The names of builtin are taken. A command is called as its file is, without the directories above
// it, where no other one is called so; otherwise these directories, or project or user, stand before its name with
// colons.
func Find(root, home, config string, builtin []string) (all []Command) {
	same, taken := map[string]int{}, map[string]string{}
	for _, s := range skills.Usable(skills.Find(root, home, config)) {
		if s.IsForPeople() {
			all = append(all, newSkill(s))
		}
	}
	for _, f := range agentfiles.Find(agentfiles.Kind{Dir: "commands"}, root, home, config) {
		c := newCommand(f)
		all = append(all, c)
		same[c.Name]++
	}
	for _, name := range builtin {
		taken[name] = "/" + name
	}
	for i := range all {
		all[i].take(same, taken)
	}
	return all
}

// newCommand returns the command of a file, with the name of the file.
func newCommand(f agentfiles.File) Command {
	c := Command{File: f, Hint: text.CutBytes(hintOf(f.Head), maxShown)}
	c.Name, c.Description = typed(path.Base(f.Below)), text.CutBytes(c.Description, maxShown)
	if above := strings.TrimSuffix(c.namespace(), ":"); above != "" && c.Problem == "" {
		c.Description = strings.TrimSpace(c.Description + " (" + above + ")")
	}
	return c
}

// take gives the command the names by which it can be called. same says how many files have a name, and taken which
// commands have names already.
func (c *Command) take(same map[string]int, taken map[string]string) {
	if c.Problem != "" {
		return
	}
	name, above, scope := c.Name, c.namespace(), "project:"
	if c.IsUser {
		scope = "user:"
	}
	names := []string{name, above + name, scope + above + name}
	if above != "" && same[name] > 1 { // which of them is meant cannot be told
		names = names[1:]
	}
	for _, other := range c.also {
		if taken[other] == "" && other != name {
			names = append(names, other, scope+other)
		}
	}
	names = slices.Compact(names)
	i := slices.IndexFunc(names, func(name string) bool { return taken[name] == "" })
	if i < 0 {
		c.Name = names[len(names)-1]
		c.Problem = "another command has its name: " + taken[c.Name]
		return
	}
	c.Name, c.names = names[i], names[i:]
	for _, name := range c.names {
		taken[name] = cmp.Or(taken[name], c.Place)
	}
}

// typed returns a name as it can be typed: a blank would end it there.
func typed(name string) string { return strings.ReplaceAll(text.OneLine(name), " ", "-") }

// namespace returns the directories in which the file lies below that of all commands, each with a colon behind it.
func (c *Command) namespace() string {
	dir, _ := path.Split(c.Below)
	return strings.ReplaceAll(typed(dir), "/", ":")
}

// hintOf returns the hint of a head. People write it in brackets, which YAML takes for a list.
func hintOf(head frontmatter.Fields) string {
	if _, isList := head["argument-hint"].([]any); isList {
		return "[" + head.Text("argument-hint") + "]"
	}
	return head.Text("argument-hint")
}

// Named returns the command with a name, which may have its directories, and project or user, before it.
func Named(all []Command, name string) (Command, bool) {
	i := slices.IndexFunc(all, func(c Command) bool { return c.Problem == "" && slices.Contains(c.names, name) })
	if i < 0 {
		return Command{}, false
	}
	return all[i], true
}

// placeholder matches what stands for arguments: all of them, or one by its number.
var placeholder = lazyregexp.New(`\$(ARGUMENTS\b|[0-9]+)`)

// shellLine matches what other agents run as a command of the shell, and put its output there.
var shellLine = lazyregexp.New("!`[^`\n]+`")

// Expand returns what the user says by a command with these arguments, and a line about each field of its head that
// has no effect.
func (c Command) Expand(ctx context.Context, args string) (said string, notes []string, err error) {
	if c.expand != nil {
		said, err = c.expand(ctx, args)
		return said, nil, err
	}
	if model := c.Head.Text("model"); model != "" && model != "inherit" {
		notes = append(notes, c.Place+" names the model "+model+", which is ignored: the lead has its own")
	}
	args = strings.TrimSpace(args)
	if c.skill != nil {
		said, more := expandSkill(*c.skill, args)
		return c.withShell(said), append(notes, more...), nil
	}
	words, isUsed := Split(args), false
	said = placeholder().ReplaceAllStringFunc(c.Body, func(mark string) string {
		switch n := strings.TrimPrefix(mark, "$"); {
		case n == "ARGUMENTS":
			isUsed = true
			return args
		case len(n) > 1 || n == "0": // a price, or an argument of a command line
			return mark
		default:
			isUsed = true
			if i := int(n[0] - '1'); i < len(words) {
				return words[i]
			}
			return ""
		}
	})
	said = strings.TrimSpace(said)
	if args != "" && !isUsed {
		said += "\n\nARGUMENTS: " + args
	}
	return c.withShell(said), notes, nil
}

// withShell has the lead run what other agents run before they read the text. The template counts, and not the
// arguments: they are quoted, not meant.
func (c Command) withShell(said string) string {
	if shellLine().MatchString(c.Body) {
		said += "\n\nWhere this text has !`COMMAND`, run COMMAND with bash first, and go on with what it prints. " +
			"It was not run for you."
	}
	return said
}

// Split returns the arguments in a text: words, or what stands between quotation marks.
func Split(text string) (words []string) {
	var word strings.Builder
	var quote rune
	isWord := false
	for _, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\'') && !isWord:
			quote, isWord = r, true
		case quote == 0 && strings.ContainsRune(" \t\n", r):
			if isWord {
				words = append(words, word.String())
			}
			word.Reset()
			isWord = false
		default:
			word.WriteRune(r)
			isWord = true
		}
	}
	if isWord {
		words = append(words, word.String())
	}
	return words
}
