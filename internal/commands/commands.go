// Package commands finds the slash commands that people have: texts that a user says to an agent by a name.
//
// A command is a Markdown file. Find looks where people keep them for other agents, in the repository and at home, and
// Command.Expand returns the text with the arguments in it. The text is the user's message then, and nothing else:
// nothing here runs anything, and no field of a head grants a tool or chooses a model.
package commands

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"muster/internal/frontmatter"
	"muster/internal/lazyregexp"
	"muster/internal/places"
	"muster/internal/text"
)

// maxShown is how many bytes of a description are shown.
const maxShown = 160

// Command is one command. A command with a Problem is shown and cannot be called.
type Command struct {
	Name        string // without the slash, such as release or frontend:component
	Hint        string // what the arguments are, as its file says
	Description string
	Place       string // of its file, as people read it
	Problem     string

	file  places.File
	names []string // by which it can be called
	// expand returns the text of a command that has no file.
	expand func(ctx context.Context, args string) (string, error)
}

// New returns a command that is in no file. place says where it comes from, and expand returns its text for arguments.
func New(
	name, hint, description, place string, expand func(ctx context.Context, args string) (string, error),
) Command {
	return Command{Name: typed(name), Hint: places.Cut(text.OneLine(hint), maxShown),
		Description: places.Cut(text.OneLine(description), maxShown),
		Place:       text.OneLine(place), names: []string{typed(name)}, expand: expand}
}

// Find returns the commands of a repository and of the user, in the order of places and of names. The names of builtin
// are taken. A command is called as its file is, without the directories above it, where no other one is called so;
// otherwise these directories, or project or user, stand before its name with colons.
func Find(root, home, config string, builtin []string) (all []Command) {
	files := places.Find(places.Of("commands", root, home, config), places.Markdown())
	same, taken := map[string]int{}, map[string]string{}
	for _, f := range files {
		same[nameOf(f)]++
	}
	for _, name := range builtin {
		taken[name] = "/" + name
	}
	for _, f := range files {
		name, above := nameOf(f), namespaceOf(f)
		scope := "project:"
		if f.Place.IsUser {
			scope = "user:"
		}
		names := []string{name, above + name, scope + above + name}
		if above != "" && same[name] > 1 { // which of them is meant cannot be told
			names = names[1:]
		}
		names = slices.Compact(names)
		c := read(f, strings.TrimSuffix(above, ":"))
		i := slices.IndexFunc(names, func(name string) bool { return taken[name] == "" })
		switch {
		case c.Problem != "":
			c.Name = name
		case i < 0:
			c.Name, c.Problem = names[len(names)-1], "another command has its name: "+taken[names[len(names)-1]]
		default:
			c.Name, c.names = names[i], names[i:]
			for _, name := range c.names {
				taken[name] = cmp.Or(taken[name], c.Place)
			}
		}
		all = append(all, c)
	}
	return all
}

// nameOf returns how a file is called. A blank would end the name where it is typed.
func nameOf(f places.File) string { return typed(f.Name()) }

// typed returns a name as it can be typed.
func typed(name string) string { return strings.Join(strings.Fields(text.Clean(name)), "-") }

// namespaceOf returns the directories in which a file lies below its place, each with a colon behind it.
func namespaceOf(f places.File) string {
	dir := path.Dir(strings.TrimPrefix(f.Path, f.Dir+"/"))
	if dir == "." {
		return ""
	}
	return strings.ReplaceAll(typed(dir), "/", ":") + ":"
}

// read returns the command of a file, without its name.
func read(f places.File, above string) Command {
	c := Command{Place: text.OneLine(f.Show()), file: f}
	text, err := f.Text()
	if err != nil {
		c.Problem = "it cannot be read: " + err.Error()
		return c
	}
	head, body := frontmatter.Split(text)
	c.Hint = places.Cut(places.OneLine(hintOf(head)), maxShown)
	c.Description = places.Cut(places.Describe(head, body), maxShown)
	if above != "" {
		c.Description = strings.TrimSpace(c.Description + " (" + above + ")")
	}
	if strings.TrimSpace(body) == "" {
		c.Problem = "it has no text below its front matter"
	}
	return c
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
// has no effect. The file is read again.
func (c Command) Expand(ctx context.Context, args string) (text string, notes []string, err error) {
	if c.expand != nil {
		text, err = c.expand(ctx, args)
		return text, nil, err
	}
	if text, err = c.file.Text(); err != nil {
		return "", nil, err
	}
	head, body := frontmatter.Split(text)
	if model := head.Text("model"); model != "" && model != "inherit" {
		notes = append(notes, c.Place+" names the model "+model+", which is ignored: the lead has its own")
	}
	args = strings.TrimSpace(args)
	words, isUsed := Split(args), false
	text = placeholder().ReplaceAllStringFunc(body, func(mark string) string {
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
	text = strings.TrimSpace(text)
	if args != "" && !isUsed {
		text += "\n\nARGUMENTS: " + args
	}
	// The template counts, and not the arguments: they are quoted, not meant.
	if shellLine().MatchString(body) {
		text += "\n\nWhere this text has !`COMMAND`, run COMMAND with bash first, and go on with what it prints. " +
			"It was not run for you."
	}
	return text, notes, nil
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
