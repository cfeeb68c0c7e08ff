package agent

import (
	"context"
	"fmt"
	"strings"

	"muster/internal/prompt"
	"muster/internal/skills"
	"muster/llm"
	"muster/llm/repair"
	"muster/tool"
)

// maxFound is how many skills a search shows.
const maxFound = 20

// skillInput is the input of load_skill.
type skillInput struct {
	Name string `json:"name" jsonschema:"as the list of skills has it"`
}

// searchInput is the input of search_skills.
type searchInput struct {
	Query string `json:"query" jsonschema:"words that its name or description may have"`
}

// SkillTools returns the tools that read skills: load_skill, and search_skills where the list that the agent was given
// does not have all of them. There are none without skills.
func SkillTools(all []skills.Skill) (list []llm.Tool) {
	all, usable := skills.ForModels(all), skills.Usable(all)
	if len(all) == 0 {
		return nil
	}
	load := func(_ context.Context, in skillInput) (llm.Result, error) {
		if s, ok := skills.Named(usable, in.Name); ok && !s.IsForModels() {
			return llm.ErrorResult("Only the user starts the skill %q.", s.Name), nil
		}
		return loadSkill(all, in.Name)
	}
	list = append(list, tool.New("load_skill", prompt.Tool("load_skill"), load, tool.ReadOnly(), tool.Lasting()))
	if _, isWhole := skills.List(all); !isWhole {
		search := func(_ context.Context, in searchInput) (llm.Result, error) {
			return searchSkills(all, in.Query), nil
		}
		list = append(list, tool.New("search_skills", prompt.Tool("search_skills"), search, tool.ReadOnly()))
	}
	return list
}

func loadSkill(all []skills.Skill, name string) (llm.Result, error) {
	s, ok := skills.Named(all, name)
	if !ok {
		var names []string
		for _, s := range all {
			names = append(names, s.Name)
		}
		names = repair.Nearest(name, names)
		return llm.ErrorResult("There is no skill %q. There are: %s.", name,
			strings.Join(names[:min(len(names), maxFound)], ", ")), nil
	}
	return tool.Text(s.Render()), nil
}

func searchSkills(all []skills.Skill, query string) llm.Result {
	found := skills.Search(all, query)
	if len(found) == 0 {
		return tool.Text("No skill has these words.")
	}
	var b strings.Builder
	for _, s := range found[:min(len(found), maxFound)] {
		fmt.Fprintf(&b, "- %s: %s\n", s.Name, s.Description)
	}
	if len(found) > maxFound {
		fmt.Fprintf(&b, "and %d more: use more words\n", len(found)-maxFound)
	}
	return tool.Text(b.String())
}
