package skills

import (
	"fmt"
	"slices"
	"strings"

	"muster/internal/mailbox"
	"muster/internal/places"
)

// The limits of the list that every conversation begins with, in bytes.
const (
	maxList  = 8 << 10
	minShown = 60 // of a description
)

// List returns the names and descriptions of the skills as a model reads them, "" without skills. When they are too
// many for the list, descriptions are shortened, and then left out, and then the rest of the skills is. isWhole says
// that every skill is in the list with its whole description.
func List(all []Skill) (text string, isWhole bool) {
	all = Usable(all)
	if len(all) == 0 {
		return "", true
	}
	text, isWhole = lines(all)
	if !isWhole {
		text += "There is more than fits here: search_skills finds a skill by words.\n"
	}
	return "<skills>\nA skill is instructions for a kind of work. When one fits what you are about to do, read it " +
		"first: load_skill{name}.\n" + text + "</skills>", isWhole
}

// lines returns a line for each skill, as far as there is room.
func lines(all []Skill) (text string, isWhole bool) {
	longest, size := places.MaxDescription, 0
	for _, s := range all {
		size += len(s.line(places.MaxDescription))
	}
	if isWhole = size <= maxList; !isWhole {
		longest = max(maxList/len(all)-maxName/2, 0)
	}
	var b strings.Builder
	for i, s := range all {
		line := s.line(longest)
		if b.Len()+len(line) > maxList {
			fmt.Fprintf(&b, "and %d more\n", len(all)-i)
			return b.String(), false
		}
		b.WriteString(line)
	}
	return b.String(), isWhole
}

// line returns the line of a skill, with so many bytes of its description at most.
func (s Skill) line(longest int) string {
	name := "- " + mailbox.Escape(s.Name)
	if longest < minShown {
		return name + "\n"
	}
	return name + ": " + mailbox.Escape(places.Cut(s.Description, longest)) + "\n"
}

// Search returns the skills that have the most of the words in their names and descriptions, the best first.
func Search(all []Skill, query string) []Skill {
	words := strings.FieldsFunc(strings.ToLower(query), func(r rune) bool { return strings.ContainsRune(" ,-_./:", r) })
	score := func(s Skill) (n int) {
		name, about := strings.ToLower(s.Name), strings.ToLower(s.Description)
		for _, w := range words {
			switch {
			case strings.Contains(name, w):
				n += 3
			case strings.Contains(about, w):
				n++
			}
		}
		return n
	}
	found := slices.DeleteFunc(Usable(all), func(s Skill) bool { return score(s) == 0 })
	slices.SortStableFunc(found, func(a, b Skill) int { return score(b) - score(a) })
	return found
}

// Mark is the beginning of what Render returns.
const Mark = "<skill name="

// Render returns the instructions of a skill as a model reads them, with the names of the files that belong to it.
func (s Skill) Render() (string, error) {
	text, files, err := s.Body()
	if err != nil {
		return "", err
	}
	// The marks of the runtime are escaped: whoever wrote the skill is not the runtime.
	text = fmt.Sprintf(Mark+"%q>\n%s\n", s.Name, mailbox.Escape(text))
	if len(files) > 0 {
		text += fmt.Sprintf("\nFiles of this skill, in %s: %s\n", s.Dir, mailbox.Escape(strings.Join(files, ", ")))
		if len(files) == maxListed {
			text += "There may be more of them.\n"
		}
	}
	return text + "</skill>", nil
}
