// Package detect says what a repository needs before work can begin in a fresh checkout, and how its work is checked: a
// set-up command, the files on which that depends, and checks.
//
// Look reads the names of the tracked files and the content of a few of them (Tree) and returns a Proposal, in which
// each command has the reason for it. Inputs says on which files a set-up command depends. The package runs nothing,
// writes nothing and knows no path outside of the tree. What it reads is foreign: only words that it knows come into a
// command, and names of directories only if they need no quotes.
//
// The files: detect.go (Look and the Proposal), units.go (the projects in a repository, with a table of the kinds that
// one file makes), node.go and python.go (the kinds of which more is asked), hints.go (what the project says that it
// runs itself), inputs.go (what a set-up command depends on) and settings.go (the Proposal as muster.yaml). Whether a
// proposal works is for the caller to try.
package detect

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"muster"
	"muster/internal/lazyregexp"
)

// Tree is what Look sees of a repository.
type Tree struct {
	Files []string                 // the tracked files, with slashes
	Read  func(path string) string // the beginning of a file's content, "" if it cannot be read
}

// content returns the beginning of a file's content without a byte order mark.
func (t Tree) content(path string) string { return string(muster.TrimBOM([]byte(t.Read(path)))) }

// Step is a command that the repository's files suggest.
type Step struct {
	Name    string `json:"name,omitempty"` // of a check: test, lint, web-test
	Command string `json:"command"`
	Reason  string `json:"reason"` // a sentence without its dot that names the file
	// Advisory says that work may land while the check fails.
	Advisory bool `json:"advisory,omitempty"`
}

// Proposal is what a repository seems to need.
type Proposal struct {
	Setup  []Step   `json:"setup"`
	Checks []Step   `json:"checks"`
	Inputs []string `json:"inputs"` // the files on which the set-up depends
	// WholeTree says that the set-up may depend on any file: it is made anew for each tree.
	WholeTree bool     `json:"whole_tree,omitempty"`
	Notes     []string `json:"notes,omitempty"` // sentences about what is good to know
}

// SetupCommand returns the whole set-up as one command, or "".
func (p Proposal) SetupCommand() string { return joinCommands(p.Setup) }

// CheckCommand returns the checks that are not advisory as one command, or "".
func (p Proposal) CheckCommand() string { return joinCommands(p.Checks) }

// NamedChecks returns the checks where there are several, each with a name of its own. It is nil where one command is
// enough, or where none would have to pass.
func (p Proposal) NamedChecks() (all []muster.NamedCheck) {
	if len(p.Checks) < 2 {
		return nil
	}
	for _, s := range p.Checks {
		base := strings.Trim(nameless().ReplaceAllString(s.Name, "-"), "._-")
		base = cmp.Or(base[:min(len(base), maxName)], "check")
		name := base
		isTaken := func(c muster.NamedCheck) bool { return strings.EqualFold(c.Name, name) }
		for n := 2; slices.ContainsFunc(all, isTaken); n++ {
			name = fmt.Sprintf("%s-%d", base, n)
		}
		all = append(all, muster.NamedCheck{Name: name, Command: flat(s.Command), Advisory: s.Advisory})
	}
	if muster.RequiredNames(all) == "" {
		return nil
	}
	return all
}

// nameless matches what no name of a check has, and maxName is how long a name may be that gets a number.
var nameless = lazyregexp.New(`[^A-Za-z0-9._-]+`)

const maxName = 35

// joinCommands returns one command for the shell that runs all steps that are not advisory until one fails.
func joinCommands(steps []Step) string {
	var commands []string
	for _, s := range steps {
		if !s.Advisory {
			commands = append(commands, s.Command)
		}
	}
	return strings.Join(commands, " && ")
}

// maxUnits is how many projects of a repository are looked at.
const maxUnits = 8

// Look returns what the repository seems to need.
func Look(t Tree) (p Proposal) {
	l := newLooker(t)
	units := l.units()
	if len(units) > maxUnits {
		p.Notes = append(p.Notes, fmt.Sprintf("there are %d projects here, and only the first %d were looked at",
			len(units), maxUnits))
		units = units[:maxUnits]
	}
	// What the project itself runs is better than what its files suggest. It is of the whole repository, so with
	// several projects it does not tell which one it is of.
	of := &unit{}
	if len(units) == 1 && units[0].dir == "" {
		of = &units[0]
	}
	p.Notes = append(p.Notes, l.follow(of, l.hints())...)
	for _, u := range units {
		inDir := func(s Step) Step { // as it is run from the root
			if u.dir != "" {
				s.Command = "(cd " + u.dir + " && " + s.Command + ")"
			}
			return s
		}
		for _, s := range u.setup {
			p.Setup = append(p.Setup, inDir(s))
		}
		for _, s := range u.checks {
			if len(units) > 1 { // its name says which unit it is of
				s.Name = u.name() + "-" + s.Name
			}
			p.Checks = append(p.Checks, inDir(s))
		}
	}
	p.Inputs, p.WholeTree = Inputs(t, p.SetupCommand(), nil)
	return p
}

// plainDir matches the directories that need no quotes in a command.
var plainDir = lazyregexp.New(`^[A-Za-z0-9_.@+][A-Za-z0-9_.@+/-]*$`)

// looker looks at one tree.
type looker struct {
	Tree
	// byDir are the names of the files in each directory. Only tracked files count: what lies about in somebody's
	// checkout is not in a fresh one.
	byDir map[string]map[string]bool
	dirs  []string // those that may have a project, the upper ones first
}

// skippedDirs are the names of directories whose content is no project of its own.
var skippedDirs = []string{"node_modules", "vendor", "third_party", "testdata", "fixtures", "__fixtures__", "examples",
	"example", "samples", "templates", "template", "docs", "doc", "dist", "build", "target", "benchmarks", "bench"}

// maxDepth is how deep below the root projects are looked for.
const maxDepth = 3

// newLooker returns a looker at the tree.
func newLooker(t Tree) *looker {
	l := &looker{Tree: t, byDir: map[string]map[string]bool{}}
	for _, file := range t.Files {
		dir, name := path.Split(file)
		dir = strings.TrimSuffix(dir, "/")
		if l.byDir[dir] == nil {
			l.byDir[dir] = map[string]bool{}
			if mayHaveProject(dir) {
				l.dirs = append(l.dirs, dir)
			}
		}
		l.byDir[dir][name] = true
	}
	slices.SortFunc(l.dirs, func(a, b string) int {
		return cmp.Or(cmp.Compare(depth(a), depth(b)), strings.Compare(a, b))
	})
	return l
}

// depth returns how many directories a directory lies in.
func depth(dir string) int {
	if dir == "" {
		return 0
	}
	return 1 + strings.Count(dir, "/")
}

// mayHaveProject reports whether a project is looked for in a directory. One with a name that needs quotes in a command
// is left out: what muster proposes must be safe to run as it is printed.
func mayHaveProject(dir string) bool {
	isSkipped := func(name string) bool { return slices.Contains(skippedDirs, name) || strings.HasPrefix(name, ".") }
	return dir == "" || depth(dir) <= maxDepth && plainDir().MatchString(dir) &&
		!slices.ContainsFunc(strings.Split(dir, "/"), isSkipped)
}

// has reports whether a directory has one of the files, and returns the first.
func (l *looker) has(dir string, names ...string) (name string, ok bool) {
	for _, name := range names {
		if l.byDir[dir][name] {
			return name, true
		}
	}
	return "", false
}

// read returns the content of a file in a directory, "" if it is not tracked.
func (l *looker) read(dir, name string) string {
	if !l.byDir[dir][name] {
		return ""
	}
	return l.content(path.Join(dir, name))
}

// isBelow reports whether a file lies in a directory or below it.
func isBelow(dir, file string) bool { return dir == "" || strings.HasPrefix(file, dir+"/") }
