package launchers

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster/internal/durable"
	"muster/internal/lazyregexp"
	"muster/internal/proc"
)

// Programs finds programs that are only in the user's checkout: a virtual environment, or what a package manager has
// installed there. Lanes and checkouts of checks lack them, and most programs say only that something was not found.
type Programs struct {
	Roots   []string // of the user's checkouts
	Environ []string // of this process: what is active in the user's shell
}

// usualDirs are where installers put programs in a checkout, as patterns, whether or not they are in PATH.
var usualDirs = []string{".venv/bin", "venv/bin", "env/bin", "node_modules/.bin", "vendor/bin", ".direnv/*/bin"}

// find returns the file of a program in a checkout, by its path below that. ok is false where there is none.
func (p Programs) find(name string) (path string, ok bool) {
	dirs := append(filepath.SplitList(proc.Variable(p.Environ, "PATH")),
		filepath.Join(proc.Variable(p.Environ, "VIRTUAL_ENV"), "bin"))
	for _, root := range p.Roots {
		all := slices.Clone(dirs)
		for _, pattern := range usualDirs {
			all = append(all, durable.Glob(root, filepath.FromSlash(pattern))...)
		}
		for _, dir := range all {
			rel, err := filepath.Rel(root, filepath.Join(dir, name))
			if err != nil || !filepath.IsAbs(dir) || !filepath.IsLocal(rel) {
				continue
			}
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() &&
				info.Mode()&0o111 != 0 {
				return rel, true
			}
		}
	}
	return "", false
}

// isOnly begins the line that names a program.
const isOnly = "is only in the user's checkout"

// Line returns the line of Missing that stands at the end of an output, "" where there is none.
func Line(output string) string {
	for line := range strings.Lines(output) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "["); ok && strings.Contains(text, isOnly) {
			return strings.TrimSuffix(text, "]")
		}
	}
	return ""
}

var (
	isMissing  = lazyregexp.New(`(?i)not found|no such file|permission denied|cannot find|not recognized`)
	noModule   = lazyregexp.New(`No module named`)
	nameInLine = lazyregexp.New(`[\w.+@/-]+`)
)

// Missing returns a line about a program that is only in the user's checkout and that a program in dir has missed, as
// its output says; "" where it has missed none.
func (p Programs) Missing(output, dir string) string {
	const most = 50 // of a check that says it of each of its files
	lines := 0
	for line := range strings.Lines(output) {
		var said string
		switch isModule := noModule().MatchString(line); {
		case !isModule && !isMissing().MatchString(line):
			continue
		case isModule: // the Python there may have it
			said = strings.Replace(p.line("python", dir), "python", "another Python", 1)
		default:
			for _, word := range nameInLine().FindAllString(line, 20) {
				name := strings.TrimRight(filepath.Base(word), ".")
				if said == "" {
					said = p.Hint(name, dir)
				}
			}
		}
		if lines++; said != "" || lines == most {
			return said
		}
	}
	return ""
}

// Hint returns a line about a program that is only in the user's checkout, and neither in that in dir nor elsewhere in
// PATH; "" where that is not so.
func (p Programs) Hint(name, dir string) string {
	if outside, _ := proc.FindOutside(name, p.Environ, p.Roots...); outside != "" {
		return ""
	}
	return p.line(name, dir)
}

func (p Programs) line(name, dir string) string {
	path, ok := p.find(name)
	if !ok {
		return ""
	}
	if _, err := os.Stat(filepath.Join(dir, path)); err == nil {
		return "" // it was not that
	}
	return fmt.Sprintf("%s %s, in %s: --setup COMMAND installs it in each lane and for each check (muster init "+
		"proposes one), or .worktreeinclude copies it", name, isOnly, filepath.ToSlash(filepath.Dir(path)))
}
