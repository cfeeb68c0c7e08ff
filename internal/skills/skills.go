// Package skills finds the skills that people have: instructions for a kind of work, which an agent reads when it does
// such work.
//
// A skill is a directory with a file SKILL.md, whose head has the name and the description. Find looks where people
// keep them for other agents, in the repository and at home; Skill.Text returns the text below the head. Skills are
// read from the user's checkout, which no member can change. Nothing here runs anything that belongs to a skill.
//
// The files are those of others, read within the bounds of package agentfiles. What cannot be used is in the list with
// the reason.
package skills

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster/internal/agentfiles"
)

// maxListed is how many files of a skill are named.
const maxListed = 40

// Skill is one skill.
type Skill struct {
	agentfiles.File
	// Dir is the directory of the skill, absolute.
	Dir string
}

// Find returns the skills of a repository and of the user, the strongest first: see agentfiles.Find.
func Find(root, home, config string) (all []Skill) {
	kind := agentfiles.Kind{Word: "skill", Dir: "skills", Alone: "SKILL.md", InRoot: true, Check: check}
	for _, f := range agentfiles.Find(kind, root, home, config) {
		all = append(all, Skill{f, filepath.Dir(f.Path)})
	}
	return all
}

// check returns why a file is no skill.
func check(f agentfiles.File) string {
	if f.Description == "" {
		return "it has no description"
	}
	return ""
}

// IsForModels reports whether a model may load the skill. It may not where the head has disable-model-invocation: only
// a person starts such a skill, by its name.
func (s Skill) IsForModels() bool { return !s.Head.Bool("disable-model-invocation", false) }

// IsForPeople reports whether a person can start the skill by its name. user-invocable: false in the head leaves it to
// models.
func (s Skill) IsForPeople() bool {
	return s.Head.Bool("user-invocable", s.Head.Bool("user-invokable", true))
}

// Text returns the instructions of a skill.
func (s Skill) Text() string {
	// Authors write these for the directory of their skill.
	return strings.NewReplacer("${CLAUDE_SKILL_DIR}", s.Dir, "{baseDir}", s.Dir).Replace(s.Body)
}

// Files returns a line with the names of the other files of a skill, "" if there are none.
func (s Skill) Files() string {
	files := s.others()
	if len(files) == 0 {
		return ""
	}
	line := fmt.Sprintf("Files of this skill, in %s: %s", s.Dir, strings.Join(files, ", "))
	if len(files) == maxListed {
		line += "\nThere may be more of them."
	}
	return line
}

// others returns the names of the other files in the directory of the skill and below, at most maxListed of them.
func (s Skill) others() (names []string) {
	_ = fs.WalkDir(os.DirFS(s.Dir), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fs.SkipDir // what cannot be read is left out
		case len(names) == maxListed:
			return fs.SkipAll
		case !d.IsDir() && name != filepath.Base(s.Path):
			names = append(names, name)
		}
		return nil
	})
	return names
}

// Usable returns the skills without a Problem.
func Usable(all []Skill) []Skill { return agentfiles.Usable(all) }

// ForModels returns the skills that a model is offered.
func ForModels(all []Skill) []Skill {
	return slices.DeleteFunc(Usable(all), func(s Skill) bool { return !s.IsForModels() })
}

// Named returns the skill with a name, however it is spelt.
func Named(all []Skill, name string) (Skill, bool) { return agentfiles.Named(all, name) }
