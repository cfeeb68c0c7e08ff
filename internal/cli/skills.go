package cli

import (
	"github.com/spf13/cobra"

	"muster"
	"muster/internal/editdist"
	"muster/internal/skills"
	"muster/internal/view"
	"muster/team"
)

// skillFields are a skill as --json prints it.
type skillFields struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Place       string `json:"place"`
	Only        string `json:"only,omitempty"`
	Problem     string `json:"problem,omitempty"`
}

// skillText is the text of a skill as --json prints it.
type skillText struct {
	Name  string `json:"name"`
	Place string `json:"place"`
	Text  string `json:"text"`
}

// newSkillsCommand returns muster skills. It starts nothing that belongs to a skill.
func newSkillsCommand(a *App) *cobra.Command {
	return &cobra.Command{Use: "skills [NAME]", Short: "the skills that members can load, and where they come from",
		Args: namedArgs("[NAME]"),
		Long: "A skill is a directory with a file SKILL.md. They are found in skills, .agents/skills and\n" +
			".claude/skills, in the repository and in your home, and in the directory of your settings.\n" +
			"With NAME, its text is shown. In the conversation /NAME hands it to the lead.",
		RunE: func(c *cobra.Command, args []string) error {
			root, err := team.FindRoot(c.Context(), a.workDir())
			if err != nil {
				return err
			}
			all := skills.Find(root, a.env("HOME"), userDir(a))
			if len(args) == 0 {
				return a.print(skillList(all), func(s view.Screen) string {
					if len(all) == 0 {
						return "No skills here. One is a directory with a SKILL.md, such as .claude/skills/NAME.\n"
					}
					return skillTable(all).Draw(s)
				})
			}
			s, ok := skills.Named(all, args[0])
			if !ok {
				var names []string
				for _, s := range all {
					names = append(names, s.Name)
				}
				return muster.Errorf(muster.NotFound, "there is no skill %q that can be used%s", args[0],
					editdist.Suggest(args[0], names)).
					WithHint("see all:  muster skills")
			}
			return a.print(skillText{s.Name, s.Place, s.Text()}, func(view.Screen) string { return s.Text() + "\n" })
		}}
}

func skillList(all []skills.Skill) []skillFields {
	list := []skillFields{}
	for _, s := range all {
		list = append(list, skillFields{s.Name, s.Description, s.Place, skillOnly(s), s.Problem})
	}
	return list
}

// skillOnly says who can start a skill that not everybody can.
func skillOnly(s skills.Skill) string {
	switch {
	case !s.IsForModels() && !s.IsForPeople():
		return "nobody"
	case !s.IsForModels():
		return "people"
	case !s.IsForPeople():
		return "models"
	}
	return ""
}

func skillTable(all []skills.Skill) view.Table {
	t := view.Table{Wide: 1, Titles: []string{"SKILL", "WHAT IT IS FOR", "PLACE"}}
	for _, s := range all {
		about := s.Description
		if s.Problem != "" {
			about = "not used: " + s.Problem
		} else if only := skillOnly(s); only != "" {
			about = "(for " + only + " only) " + about
		}
		t.Row(s.Name, about, s.Place)
	}
	return t
}
