// Package roles finds the roles that teammates can have: what a role is for, its prompt, its tools and its model.
//
// A role is a Markdown file whose head has the name and the rest, and whose text is the prompt. Find looks where people
// keep such files for other agents, in the repository and at home, and adds the built-in roles that no file replaces.
// A role takes tools away and grants none: without a file a teammate has all of them. Role.Allows decides; tools.go has
// the names that files use for tools.
//
// The files are those of others, read within the bounds of package places. What cannot be used is in the list with the
// reason. Whether the model of a role counts is decided elsewhere: it costs money, and may be the repository's word.
package roles

import (
	"cmp"
	"embed"
	"fmt"
	"slices"
	"strings"

	"muster"
	"muster/internal/frontmatter"
	"muster/internal/places"
	"muster/internal/text"
)

// builtin has the roles that need no file.
//
//go:embed builtin/*.md
var builtin embed.FS

// BuiltIn is the place of a role that comes with muster.
const BuiltIn = "built in"

// arbiter is the role of an agent of the runtime's, which no teammate needs.
const arbiter = "arbiter"

// The limits of a role, in bytes.
const (
	maxName   = 64
	maxPrompt = 32 << 10
	maxField  = 128
	maxList   = 2 << 10 // of what the lead reads of all roles
)

// Role is one role. A role with a Problem is shown to people and is nobody's.
type Role struct {
	Name        string
	Description string
	// Prompt is what the members of the role are told. It is text of whoever wrote the file.
	Prompt string
	// Model, Effort and Color are as the file has them, "" for none. The model "inherit" is none.
	Model, Effort, Color string
	// Place is the file as people read it, or BuiltIn. IsUser says that the file is the user's own, or built in.
	Place   string
	IsUser  bool
	Problem string

	key   string // what is the same for all spellings of its name
	tools access
}

// Places returns where roles are looked for, the strongest first: of two roles with one name the first counts.
func Places(root, home, config string) []places.Place { return places.Of("agents", root, home, config) }

// Find returns the roles of places, in the order of places and of names, and the built-in roles that none of them
// replaces.
func Find(where []places.Place) (all []Role) {
	for _, f := range places.Find(where, places.Markdown()) {
		r := Role{Name: f.Name(), Place: f.Show(), IsUser: f.Place.IsUser}
		if text, err := f.Text(); err != nil {
			r.key, r.Problem = muster.RoleKey(r.Name), "it cannot be read: "+muster.PlainText(err)
		} else {
			r.parse(text)
		}
		if other, isTaken := Named(all, r.Name); isTaken && r.Problem == "" {
			r.Problem = "a role in " + other.Place + " has the same name"
		}
		all = append(all, r)
	}
	for _, name := range []string{"coder", "reviewer", "tester", "explorer", arbiter} {
		if _, isReplaced := Named(all, name); isReplaced {
			continue
		}
		text, err := builtin.ReadFile("builtin/" + name + ".md")
		if err != nil {
			panic(err) // the first test finds it
		}
		r := Role{Name: name, Place: BuiltIn, IsUser: true}
		r.parse(string(text))
		all = append(all, r)
	}
	return all
}

// parse reads what the text of a role's file says.
func (r *Role) parse(text string) {
	head, body := frontmatter.Split(text)
	field := func(name string) string { return places.Cut(head.Text(name), maxField) }
	r.Name = places.Cut(places.OneLine(cmp.Or(head.Text("name"), r.Name)), maxName)
	r.key = muster.RoleKey(r.Name)
	r.Description = withoutExamples(places.Describe(head, body))
	r.Prompt, r.Color, r.Effort = strings.TrimSpace(body), field("color"), strings.ToLower(field("effort"))
	if r.Model = field("model"); strings.EqualFold(r.Model, "inherit") {
		r.Model = ""
	}
	r.tools = newAccess(head)
	switch {
	case r.key == "":
		r.Problem = "its name has no letters"
	case r.key == string(muster.Lead):
		r.Problem = "the lead's role is no file"
	case field("disabled") == "true":
		r.Problem = "it says disabled: true"
	case r.Prompt == "":
		r.Problem = "it has no prompt below its front matter"
	case len(r.Prompt) > maxPrompt:
		r.Problem = fmt.Sprintf("its prompt has more than %d KB", maxPrompt>>10)
	}
}

// withoutExamples returns a description without the conversations that many files have behind it, as examples for a
// model that chooses among agents.
func withoutExamples(text string) string {
	text = places.OneLine(strings.ReplaceAll(text, `\n`, " "))
	for _, mark := range []string{"<example>", "Examples:", "Example:", "Here are some examples"} {
		if before, _, found := strings.Cut(text, mark); found && before != "" {
			text = before
		}
	}
	return strings.TrimSpace(text)
}

// Usable returns the roles that teammates can have.
func Usable(all []Role) []Role {
	return slices.DeleteFunc(slices.Clone(all), func(r Role) bool { return r.Problem != "" })
}

// Named returns the role with a name, however it is spelt.
func Named(all []Role, name string) (Role, bool) {
	key := muster.RoleKey(name)
	i := slices.IndexFunc(all, func(r Role) bool { return r.Problem == "" && r.key == key })
	if i < 0 || key == "" {
		return Role{}, false
	}
	return all[i], true
}

// List returns the names and descriptions of the roles as the lead reads them. When they are too many, descriptions are
// shortened, and then left out, and then the rest of the roles is.
func List(all []Role) string {
	var items []places.Item
	for _, r := range Usable(all) {
		if r.key == arbiter {
			continue // the runtime's alone: nobody has to spawn one
		}
		name := text.EscapeTags(r.Name)
		if !r.Writes() {
			name += " (reads only)"
		}
		items = append(items, places.Item{Name: name, About: text.EscapeTags(r.Description)})
	}
	if len(items) == 0 {
		return ""
	}
	text, _ := places.Lines(items, maxList)
	return "<roles>\nFor spawn_teammate; any other word is a role with all tools. Who reads only takes only tasks " +
		"with its claim_role.\n" + text + "</roles>"
}

// Render returns the prompt of a role as its members read it, between marks that the prompt cannot close.
func (r Role) Render() string {
	text := text.EscapeTags(r.Prompt)
	if text == "" {
		return ""
	}
	return "<role>\n" + text + "\n</role>"
}
