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
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"muster/internal/frontmatter"
	"muster/internal/safetext"
)

// The limits of what is read.
const (
	maxSkills      = 500
	maxEntries     = 5000 // of directories that are looked at in each place
	maxDepth       = 4    // of a skill below its place
	maxFile        = 256 << 10
	maxName        = 64   // bytes
	maxDescription = 1024 // bytes
	maxListed      = 40   // files of a skill that are named
)

// Skill is one skill. A skill with a Problem is shown to people and to no model.
type Skill struct {
	Name        string
	Description string
	// Dir is the directory of the skill, absolute. Place is how people read it: relative to the repository, or below ~.
	Dir, Place string
	Problem    string

	base, file string // the directory that no link leads out of, and the file relative to it
}

// Place is where skills are looked for: directories below a base that no link leads out of.
type Place struct {
	Base string // absolute
	Show string // stands for Base in what people read: "" for the repository, "~" for the user's home
	Dirs []string
}

// Places returns where skills are looked for, the strongest first: of two skills with one name the first counts. home
// and config are the directories of the user and of the user's settings; "" is none.
func Places(root, home, config string) []Place {
	places := []Place{{Base: root, Dirs: []string{"skills", ".agents/skills", ".claude/skills"}}}
	if config != "" {
		places = append(places, Place{Base: config, Show: config, Dirs: []string{"skills"}})
	}
	if home != "" {
		places = append(places, Place{Base: home, Show: "~", Dirs: []string{".agents/skills", ".claude/skills"}})
	}
	return places
}

// Find returns the skills of places, in the order of places and of names.
func Find(places []Place) (all []Skill) {
	byName, seen := map[string]Skill{}, map[string]bool{}
	for _, p := range places {
		root, err := os.OpenRoot(p.Base)
		if err != nil {
			continue // there is no such directory
		}
		for _, dir := range p.Dirs {
			for _, file := range findFiles(root, dir) {
				// Two places are often one, by a link.
				real, err := filepath.EvalSymlinks(filepath.Join(p.Base, file))
				if err == nil && seen[real] || len(all) == maxSkills {
					continue
				}
				seen[real] = true
				s := p.read(root, file)
				if other, isTaken := byName[key(s.Name)]; isTaken && s.Problem == "" {
					s.Problem = "a skill in " + other.Place + " has the same name"
				}
				if s.Problem == "" {
					byName[key(s.Name)] = s
				}
				all = append(all, s)
			}
		}
		_ = root.Close()
	}
	return all
}

// findFiles returns the files SKILL.md below a directory, in order.
func findFiles(root *os.Root, dir string) (files []string) {
	entries := 0
	var walk func(dir string, depth int)
	walk = func(dir string, depth int) {
		f, err := root.Open(filepath.FromSlash(dir))
		if err != nil {
			return
		}
		list, err := f.ReadDir(maxEntries - entries)
		_ = f.Close()
		if entries += len(list); err != nil && !errors.Is(err, io.EOF) || entries >= maxEntries {
			return
		}
		isLink := func(e fs.DirEntry) int {
			if e.Type()&fs.ModeSymlink != 0 {
				return 1
			}
			return 0
		}
		slices.SortFunc(list, func(a, b fs.DirEntry) int { // links last: what they lead to has a name of its own
			return cmp.Or(isLink(a)-isLink(b), strings.Compare(a.Name(), b.Name()))
		})
		for _, e := range list {
			if strings.EqualFold(e.Name(), "SKILL.md") {
				files = append(files, path.Join(dir, e.Name()))
				return // what lies below belongs to this skill
			}
		}
		for _, e := range list {
			isDir := e.IsDir() || e.Type()&fs.ModeSymlink != 0 // opening a link to anything else fails
			if isDir && depth < maxDepth && e.Name() != "node_modules" && e.Name() != ".git" {
				walk(path.Join(dir, e.Name()), depth+1)
			}
		}
	}
	walk(dir, 0)
	return files
}

// read returns the skill of a file.
func (p Place) read(root *os.Root, file string) Skill {
	dir := path.Dir(file)
	s := Skill{Name: path.Base(dir), Dir: filepath.Join(p.Base, filepath.FromSlash(dir)), Place: path.Join(p.Show, dir),
		base: p.Base, file: file}
	text, err := readText(root, file)
	if err != nil {
		s.Problem = "it cannot be read: " + reason(err)
		return s
	}
	head, body := frontmatter.Split(text)
	s.Name = cut(oneLine(cmp.Or(head.Text("name"), s.Name)), maxName)
	s.Description = cut(oneLine(cmp.Or(head.Text("description"), firstSentence(body))), maxDescription)
	switch {
	case strings.TrimSpace(body) == "":
		s.Problem = "there is nothing below its head"
	case s.Description == "":
		s.Problem = "it has no description"
	}
	return s
}

// errNotText is the error for a file that is binary.
var errNotText = errors.New("it is not text")

// readText returns a file as text that can be shown.
func readText(root *os.Root, file string) (string, error) {
	// A pipe is opened without waiting, and refused.
	f, err := root.OpenFile(filepath.FromSlash(file), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return "", errors.New("it is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return "", err
	case len(data) > maxFile:
		return "", fmt.Errorf("it has more than %d KB", maxFile>>10)
	case bytes.IndexByte(data, 0) >= 0:
		return "", errNotText
	}
	return safetext.Clean(strings.ToValidUTF8(string(data), "")), nil
}

// reason returns an error without the paths of this machine.
func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// Body returns the instructions of a skill, and the names of the other files in its directory.
func (s Skill) Body() (text string, files []string, err error) {
	root, err := os.OpenRoot(s.base)
	if err != nil {
		return "", nil, err
	}
	defer root.Close()
	if text, err = readText(root, s.file); err != nil {
		return "", nil, fmt.Errorf("%s/SKILL.md: %s", s.Place, reason(err))
	}
	_, text = frontmatter.Split(text)
	// Authors write these for the directory of their skill.
	text = strings.NewReplacer("${CLAUDE_SKILL_DIR}", s.Dir, "{baseDir}", s.Dir).Replace(text)
	dir := path.Dir(s.file)
	_ = fs.WalkDir(root.FS(), dir, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fs.SkipDir
		case len(files) >= maxListed:
			return fs.SkipAll
		case !e.IsDir() && name != s.file:
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

// firstSentence returns the first sentence of a Markdown text that is no heading.
func firstSentence(body string) string {
	for paragraph := range strings.SplitSeq(body, "\n\n") {
		text := oneLine(paragraph)
		if text == "" || strings.HasPrefix(text, "#") && !strings.Contains(paragraph, "\n") {
			continue
		}
		if strings.HasPrefix(text, "#") { // a heading with text right below it
			_, rest, _ := strings.Cut(strings.TrimSpace(paragraph), "\n")
			text = oneLine(rest)
		}
		if end := strings.Index(text, ". "); end >= 0 {
			text = text[:end+1]
		}
		return text
	}
	return ""
}

// oneLine returns a text in one line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// cut returns at most n bytes of a text, and says by dots that there is more.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n-3], "") + "..."
}
