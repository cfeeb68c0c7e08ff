package skills

import (
	"fmt"

	"muster/internal/agentfiles"
	"muster/internal/text"
	"muster/internal/textmatch"
)

// maxList is how many bytes the list has at most that every conversation begins with.
const maxList = 8 << 10

// List returns the names and descriptions of the skills as a model reads them, "" without skills. When they are too
// many for the list, descriptions are shortened, and then left out, and then the rest of the skills is. isWhole says
// that every skill is in the list with its whole description.
func List(all []Skill) (list string, isWhole bool) {
	all = ForModels(all)
	if len(all) == 0 {
		return "", true
	}
	items := make([]agentfiles.Item, len(all))
	for i, s := range all {
		items[i] = agentfiles.Item{Name: s.Name, About: s.Description}
	}
	list, isWhole = agentfiles.Lines(items, maxList)
	if !isWhole {
		list += "There is more than fits here: search_skills finds a skill by words.\n"
	}
	return "<skills>\nA skill is instructions for a kind of work. When one fits what you are about to do, read it " +
		"first: load_skill{name}.\n" + list + "</skills>", isWhole
}

// Search returns the skills that have the most of the words in their names and descriptions, the best first.
func Search(all []Skill, query string) []Skill {
	return textmatch.Search(ForModels(all), query, func(s Skill) (name, about string) { return s.Name, s.Description })
}

// Mark is the beginning of what Render returns.
const Mark = "<skill name="

// Render returns the instructions of a skill as a model reads them, with the names of the files that belong to it.
func (s Skill) Render() string {
	// The marks of the runtime are escaped: whoever wrote the skill is not the runtime.
	body := fmt.Sprintf(Mark+"%q>\n%s\n", text.EscapeTags(s.Name), text.EscapeTags(s.Text()))
	if files := s.Files(); files != "" {
		body += "\n" + text.EscapeTags(files) + "\n"
	}
	return body + "</skill>"
}
