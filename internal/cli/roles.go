package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/config"
	"muster/internal/editdist"
	"muster/internal/roles"
	"muster/internal/text"
	"muster/internal/trust"
	"muster/internal/view"
	"muster/internal/workspace"
	"muster/llm"
	"muster/team"
)

// roleFields are a role as --json prints it.
type roleFields struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tools       []string `json:"tools"`
	Missing     []string `json:"missing,omitempty"`
	Model       string   `json:"model,omitempty"`
	Effort      string   `json:"effort,omitempty"`
	Color       string   `json:"color,omitempty"`
	Place       string   `json:"place"`
	Problem     string   `json:"problem,omitempty"`
	Prompt      string   `json:"prompt,omitempty"`
}

func newRolesCommand(a *App) *cobra.Command {
	return &cobra.Command{Use: "roles [NAME]", Short: "the roles that teammates can have, and where they come from",
		Args: namedArgs("[NAME]"),
		Long: "A role is a Markdown file in .agents/agents or .claude/agents, in the repository and in your home,\n" +
			"or in agents in the directory of your settings. Some are built in, until a file has the name of one.\n" +
			"With NAME, its tools and its prompt are shown.",
		RunE: func(c *cobra.Command, args []string) error {
			root, err := team.FindRoot(c.Context(), a.workDir())
			if err != nil {
				return err
			}
			all := findRoles(a, root)
			if len(args) == 0 {
				return a.print(roleList(all), roleTable(all).Draw)
			}
			r, ok := roles.Named(all, args[0])
			if !ok {
				return muster.Errorf(muster.NotFound, "there is no role %q that can be used%s", args[0],
					nearRole(all, args[0])).
					WithHint("see all:  muster roles")
			}
			// Only one role has its prompt: those of all would fill the screen.
			fields := roleList([]roles.Role{r})[0]
			fields.Prompt = r.Body
			return a.print(fields, func(view.Screen) string { return roleText(r) })
		}}
}

// nearRole asks whether a role is meant whose name is like a mistyped one.
func nearRole(all []roles.Role, name string) string {
	var names []string
	for _, r := range roles.Usable(all) {
		names = append(names, r.Name)
	}
	return editdist.Suggest(name, names)
}

// noteUnknownRole says what a role is that no file describes. Any word may be a role, and some are typing errors.
func noteUnknownRole(a *App, root, name string) {
	// It is no error: tasks can ask for a role of any name, and a team may divide its work by such words.
	all := findRoles(a, root)
	if _, ok := roles.Named(all, name); !ok {
		explain(a.Stderr, fmt.Sprintf("no file describes the role %q%s: who has it has all tools, and no instructions "+
			"of a role", text.OneLine(name), nearRole(all, name)), "those that are described:  muster roles")
	}
}

// findRoles returns the roles of a repository and of the user.
func findRoles(a *App, root string) []roles.Role { return roles.Find(root, a.env("HOME"), userDir(a)) }

func roleList(all []roles.Role) []roleFields {
	list := []roleFields{}
	for _, r := range all {
		tools, _ := r.Tools()
		list = append(list, roleFields{Name: r.Name, Description: r.Description, Tools: tools, Missing: r.Missing(),
			Model: r.Model, Effort: r.Effort, Color: r.Color, Place: r.Place, Problem: r.Problem})
	}
	return list
}

func roleTable(all []roles.Role) view.Table {
	t := view.Table{Wide: 1, Titles: []string{"ROLE", "WHAT IT IS FOR", "TOOLS", "MODEL", "PLACE"}}
	for _, r := range all {
		if r.Problem != "" {
			t.Row(r.Name, "not used: "+r.Problem, "", "", r.Place)
			continue
		}
		t.Row(r.Name, r.Description, toolsText(r), r.Model, r.Place)
	}
	return t
}

func toolsText(r roles.Role) string {
	names, all := r.Tools()
	switch {
	case all:
		return "all"
	case len(names) == 0:
		return "none"
	}
	return strings.Join(names, ", ")
}

func roleText(r roles.Role) string {
	var b strings.Builder
	line := func(name, prompt string) {
		if prompt != "" {
			b.WriteString(name + ": " + text.OneLine(prompt) + "\n")
		}
	}
	// What a role does not say is left out.
	line("for", r.Description)
	line("tools", toolsText(r)+map[bool]string{false: " (reads only)"}[r.Writes()])
	line("not in muster", strings.Join(r.Missing(), ", "))
	line("model", r.Model)
	line("effort", r.Effort)
	line("color", r.Color)
	line("place", r.Place)
	return b.String() + "\n" + r.Body + "\n"
}

// roleFile is what a role's file says about the model of its members, as far as it counts.
type roleFile struct {
	model, effort string
	isUser        bool   // the user has named the model, and with it a server
	note          string // why its model does not count; "" where there is nothing to say
}

// readRoleFiles returns what the files of roles say about models, by the keys of the roles. The kinds of subagents are
// in settings only.
func readRoleFiles(a *App, w *workspace.Workspace, s config.Settings) (map[string]roleFile, error) {
	trusted, err := w.Trust().Get()
	if err != nil {
		return nil, err
	}
	files := map[string]roleFile{}
	for _, r := range roles.Usable(findRoles(a, w.Root())) {
		key := muster.RoleKey(r.Name)
		if key == "explore" || key == "work" {
			continue
		}
		f := roleFile{isUser: r.IsUser}
		err := checkRoleModel(a, s.Endpoints, r)
		for _, item := range roleItems(a, s.Endpoints, r) {
			switch {
			case !r.IsUser && !trusted.TrustsItem(item): // it is said at the beginning of a run
			case item.Name == "effort":
				f.effort = item.Text
			default:
				f.model = item.Text
				_, err = a.model(w, f.model, f.settings(s)) // its script may be gone
			}
		}
		if err != nil {
			f.model = ""
			f.note = "the role " + r.Name + " (" + r.Place + ") asks for the model " + text.OneLine(r.Model) +
				", which its members do not get: " + muster.PlainText(err)
		}
		files[key] = f
	}
	return files, nil
}

func (f roleFile) settings(s config.Settings) config.Settings {
	if f.isUser && f.model != "" {
		s.UserModel = f.model
	}
	return s
}

func checkRoleModel(a *App, endpoints config.Endpoints, r roles.Role) error {
	switch {
	case r.Model == "":
		return nil
	case !strings.Contains(r.Model, "/") || endpoints.CheckModel(r.Model) != nil:
		return muster.Errorf(muster.Invalid, "muster has no model of this name (name one as PROVIDER/MODEL, or set "+
			"roles.%s.model)", muster.RoleKey(r.Name))
	case !r.IsUser && serverOf(a, r.Model) != "":
		return muster.Errorf(muster.Invalid, "a repository may not choose a server or a script")
	}
	return nil
}

// roleItems returns what a role's file asks for that costs money. In a repository's file it counts when it is trusted.
func roleItems(a *App, endpoints config.Endpoints, r roles.Role) (items []trust.Item) {
	if r.Model != "" && checkRoleModel(a, endpoints, r) == nil {
		items = append(items, trust.Item{Name: "model", File: r.Place, Text: r.Model})
	}
	if r.Effort != "" && config.IsEffort(r.Effort) {
		items = append(items, trust.Item{Name: "effort", File: r.Place, Text: r.Effort})
	}
	return items
}

func repositoryRoleItems(a *App, root string) (items []trust.Item) {
	endpoints := config.ReadEndpoints(a.configOptions(""))
	for _, r := range roles.Usable(findRoles(a, root)) {
		if !r.IsUser {
			items = append(items, roleItems(a, endpoints, r)...)
		}
	}
	return items
}

// openModel returns the model with a name.
type openModel func(w *workspace.Workspace, name string, s config.Settings) (llm.Model, error)

// role returns what the settings and the role's file say of a role. The settings are stronger.
func role(
	open openModel, w *workspace.Workspace, s config.Settings, files map[string]roleFile, name string,
) team.Role {
	r, file := s.Role(name), files[muster.RoleKey(name)]
	role := team.Role{Model: cmp.Or(r.Model, file.model), MaxTokens: r.MaxTokens, Fallback: r.Fallback}
	if r.Model == "" {
		role.Note, s = file.note, file.settings(s)
	}
	if r.Effort = cmp.Or(r.Effort, file.effort); r.Effort != "" || r.MaxTokens > 0 || role.Model != r.Model {
		s.Effort, s.Limits.MaxTokens = cmp.Or(r.Effort, s.Effort), cmp.Or(r.MaxTokens, s.Limits.MaxTokens)
		role.Open = func(name string) (llm.Model, error) { return open(w, cmp.Or(name, s.Model), s) }
	}
	return role
}
