package detect

import (
	"path"
	"slices"
	"strings"
)

// kind is a kind of project, by its tools.
type kind string

// The kinds of projects.
const (
	kindGo     kind = "go"
	kindNode   kind = "node"
	kindRust   kind = "rust"
	kindPython kind = "python"
	kindGradle kind = "gradle"
	kindMaven  kind = "maven"
	kindDotnet kind = "dotnet"
	kindMake   kind = "make"
)

// unit is one project in a repository: a directory with files that one tool builds.
type unit struct {
	kind    kind
	dir     string // "" is the root
	manager string // npm, yarn, uv, ./gradlew: the first word of the commands
	// The commands run in dir. Those of setup are all needed, in this order; those of checks stand for themselves.
	setup  []Step
	checks []Step
	notes  []string
	// hasMembers says that directories below belong to it: a workspace.
	hasMembers bool
}

// name returns what the checks of the unit are called by where there are several.
func (u unit) name() string {
	if u.dir == "" {
		return string(u.kind)
	}
	return path.Base(u.dir)
}

// units returns the projects of the repository, those in upper directories first. What belongs to the workspace of
// another one is left out.
func (l *looker) units() (all []unit) {
	// The upper directories come first, so that a workspace is known when its members are looked at.
	for _, dir := range l.dirs {
		for _, look := range []func(string, []unit) (unit, bool){
			l.goUnit, l.rustUnit, l.nodeUnit, l.pythonUnit, l.gradleUnit, l.mavenUnit, l.dotnetUnit,
		} {
			if u, ok := look(dir, all); ok {
				u.dir = dir
				all = append(all, u)
			}
		}
	}
	// A makefile beside another tool mostly calls that tool. It counts then only if the project says so; see follow.
	if len(all) == 0 {
		if u, ok := l.makeUnit(); ok {
			all = append(all, u)
		}
	}
	return all
}

// above returns the unit of the kind that a directory lies in.
func above(all []unit, k kind, dir string) (u unit, ok bool) {
	for _, u := range slices.Backward(all) {
		if u.kind == k && u.dir != dir && isBelow(u.dir, dir+"/") {
			return u, true
		}
	}
	return u, false
}

// contains reports whether a text has a word that stands alone.
func contains(text, word string) bool {
	isPart := func(c byte) bool {
		return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	}
	for at := 0; ; {
		i := strings.Index(text[at:], word)
		if i < 0 {
			return false
		}
		at += i
		end := at + len(word)
		if (at == 0 || !isPart(text[at-1])) && (end == len(text) || !isPart(text[end])) {
			return true
		}
		at = end
	}
}
