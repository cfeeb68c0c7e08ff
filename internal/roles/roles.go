// Package roles finds the roles that teammates can have: what a role is for, its prompt, its tools and its model.
//
// A role is a Markdown file whose head has the name and the rest, and whose text is the prompt. Find looks where people
// keep such files for other agents, in the repository and at home, and adds the built-in roles that no file replaces.
// A role takes tools away and grants none: without a file a teammate has all of them. Role.Allows decides; tools.go has
// the names that files use for tools.
//
// The files are those of others, read within the bounds of package agentfiles. What cannot be used is in the list with
// the reason. Whether the model of a role counts is decided elsewhere: it costs money, and the repository may name it.
package roles

import (
	"embed"
	"fmt"
	"strings"

	"muster"
	"muster/internal/agentfiles"
	"muster/internal/text"
)

// builtin has the roles that need no file.
//
//go:embed builtin/*.md
var builtin embed.FS

// BuiltIn is the place of a role that comes with muster.
const BuiltIn = "built in"

// The limits of a role, in bytes.
const (
	maxPrompt = 32 << 10
	maxField  = 128
	maxList   = 2 << 10 // of what the lead reads of all roles
)

// Role is one role.
type Role struct {
	agentfiles.File // its Body is what the members of the role are told
	// Model, Effort and Color are as the file has them, "" for none. The model "inherit" is none.
	Model, Effort, Color string

	tools access
}

// Find returns the roles of a repository and of the user, the strongest first (see agentfiles.Find), and the built-in
// roles that none of them replaces.
func Find(root, home, config string) (all []Role) {
	kind := agentfiles.Kind{Word: "role", Dir: "agents", Check: check}
	for _, f := range agentfiles.Find(kind, root, home, config) {
		all = append(all, newRole(f))
	}
	for _, name := range []string{"coder", "reviewer", "tester", "explorer"} {
		if _, isReplaced := Named(all, name); isReplaced {
			continue
		}
		content, err := builtin.ReadFile("builtin/" + name + ".md")
		if err != nil {
			panic(err) // the first test finds it
		}
		all = append(all, newRole(agentfiles.New(name, BuiltIn, string(content))))
	}
	return all
}

// check returns why a file is no role.
func check(f agentfiles.File) string {
	switch {
	case muster.RoleKey(f.Name) == string(muster.Lead):
		return "the lead's role is no file"
	case f.Head.Bool("disabled", false):
		return "it says disabled: true"
	case len(f.Body) > maxPrompt:
		return fmt.Sprintf("its prompt has more than %d KB", maxPrompt>>10)
	}
	return ""
}

// newRole returns the role of a file.
func newRole(f agentfiles.File) Role {
	field := func(name string) string { return text.CutBytes(f.Head.Text(name), maxField) }
	r := Role{File: f, Model: field("model"), Effort: strings.ToLower(field("effort")), Color: field("color"),
		tools: newAccess(f.Head)}
	r.Description = withoutExamples(r.Description)
	if strings.EqualFold(r.Model, "inherit") {
		r.Model = ""
	}
	return r
}

// withoutExamples returns a description without the conversations that many files have behind it, as examples for a
// model that chooses among agents.
func withoutExamples(s string) string {
	s = text.OneLine(strings.ReplaceAll(s, `\n`, " "))
	for _, mark := range []string{"<example>", "Examples:", "Example:", "Here are some examples"} {
		if before, _, found := strings.Cut(s, mark); found && before != "" {
			s = before
		}
	}
	return strings.TrimSpace(s)
}

// Usable returns the roles that teammates can have.
func Usable(all []Role) []Role { return agentfiles.Usable(all) }

// Named returns the role with a name, however it is spelt.
func Named(all []Role, name string) (Role, bool) { return agentfiles.Named(all, name) }

// List returns the names and descriptions of the roles that have files, as the lead reads them; the tool spawn_teammate
// names the built-in ones. When they are too many, descriptions are shortened, and then left out, and then the rest of
// the roles is.
func List(all []Role) string {
	var items []agentfiles.Item
	for _, r := range Usable(all) {
		if r.Place == BuiltIn {
			continue
		}
		name := r.Name
		if !r.Writes() {
			name += " (reads only)"
		}
		items = append(items, agentfiles.Item{Name: name, About: r.Description})
	}
	if len(items) == 0 {
		return ""
	}
	list, _ := agentfiles.Lines(items, maxList)
	return "<roles>\nMore roles for spawn_teammate. A role that only reads takes only tasks with its claim_role.\n" +
		list + "</roles>"
}

// Render returns the prompt of a role as its members read it, between marks that the prompt cannot close.
func (r Role) Render() string {
	if r.Body == "" {
		return ""
	}
	return "<role>\n" + text.EscapeTags(r.Body) + "\n</role>"
}
