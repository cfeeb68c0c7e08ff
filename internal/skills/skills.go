// Package skills finds the skills that people have: instructions for a kind of work, which an agent reads when it does
// such work.
//
// A skill is a directory with a file SKILL.md, whose head has the name and the description. Find looks where people
// keep them for other agents, in the repository and at home; Skill.Body returns the text below the head. Skills are
// read from the user's checkout, which no member can change. Nothing here runs anything that belongs to a skill.
//
// Files of others are read: no link leads out of the repository, or out of the user's home, and everything is bounded.
// What cannot be used is in the list with the reason.
package skills

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/frontmatter"
	"muster/internal/places"
)

// The limits of what is read.
const (
	maxName   = 64 // bytes
	maxListed = 40 // files of a skill that are named
)

// Skill is one skill. A skill with a Problem is shown to people and to no model.
type Skill struct {
	Name        string
	Description string
	// Dir is the directory of the skill, absolute. Place is how people read it: relative to the repository, or below ~.
	Dir, Place string
	Problem    string

	file places.File
}

// Places returns where skills are looked for, the strongest first: of two skills with one name the first counts. home
// and config are the directories of the user and of the user's settings; "" is none.
func Places(root, home, config string) []places.Place {
	all := places.Of("skills", root, home, config)
	all[0].Dirs = append([]string{"skills"}, all[0].Dirs...)
	return all
}

// Find returns the skills of places, in the order of places and of names.
func Find(where []places.Place) (all []Skill) {
	byName := map[string]Skill{}
	isSkill := func(name string) bool { return strings.EqualFold(name, "SKILL.md") }
	for _, f := range places.Find(where, places.Pick{IsWanted: isSkill, OwnsDirectory: true}) {
		s := read(f)
		if other, isTaken := byName[key(s.Name)]; isTaken && s.Problem == "" {
			s.Problem = "a skill in " + other.Place + " has the same name"
		}
		if s.Problem == "" {
			byName[key(s.Name)] = s
		}
		all = append(all, s)
	}
	return all
}

// read returns the skill of a file.
func read(f places.File) Skill {
	dir := path.Dir(f.Path)
	s := Skill{Name: path.Base(dir), Dir: filepath.Join(f.Place.Base, filepath.FromSlash(dir)),
		Place: path.Dir(f.Show()), file: f}
	text, err := f.Text()
	if err != nil {
		s.Problem = "it cannot be read: " + muster.PlainText(err)
		return s
	}
	head, body := frontmatter.Split(text)
	s.Name = places.Cut(places.OneLine(cmp.Or(head.Text("name"), s.Name)), maxName)
	s.Description = places.Describe(head, body)
	switch {
	case strings.TrimSpace(body) == "":
		s.Problem = "it has no text below its front matter"
	case s.Description == "":
		s.Problem = "it has no description"
	}
	return s
}

// Body returns the instructions of a skill, and the names of the other files in its directory.
func (s Skill) Body() (text string, files []string, err error) {
	if text, err = s.file.Text(); err != nil {
		return "", nil, fmt.Errorf("%s: %w", s.file.Show(), err)
	}
	root, err := os.OpenRoot(s.file.Place.Base)
	if err != nil {
		return "", nil, err
	}
	defer root.Close()
	_, text = frontmatter.Split(text)
	// Authors write these for the directory of their skill.
	text = strings.NewReplacer("${CLAUDE_SKILL_DIR}", s.Dir, "{baseDir}", s.Dir).Replace(text)
	dir := path.Dir(s.file.Path)
	_ = fs.WalkDir(root.FS(), dir, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fs.SkipDir
		case len(files) >= maxListed:
			return fs.SkipAll
		case !e.IsDir() && name != s.file.Path:
			files = append(files, strings.TrimPrefix(name, dir+"/"))
		}
		return nil
	})
	return strings.TrimSpace(text), files, nil
}

// Usable returns the skills that a model can be offered.
func Usable(all []Skill) []Skill {
	return slices.DeleteFunc(slices.Clone(all), func(s Skill) bool { return s.Problem != "" })
}

// Named returns the skill with a name, in whatever case and with blanks for dashes.
func Named(all []Skill, name string) (Skill, bool) {
	i := slices.IndexFunc(all, func(s Skill) bool { return s.Problem == "" && key(s.Name) == key(name) })
	if i < 0 {
		return Skill{}, false
	}
	return all[i], true
}

// key returns what is the same for two spellings of a name.
func key(name string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == '_' {
			return '-'
		}
		return r
	}, strings.ToLower(strings.TrimSpace(name)))
}
