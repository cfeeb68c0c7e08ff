// Package leftovers knows what builds, tests and package managers leave in a checkout. What no project commits is left
// out of landings; what some projects commit lands, and the owner of the work is told. It runs no git and reads no
// files: its callers ask git, and act.
package leftovers

import (
	"bytes"
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"
)

// names are the files and directories that are left out, as patterns of git. docs/landing.md has the list. A name
// belongs here only if no project commits it on purpose, and if a program makes it anew when it is gone.
var names = []string{"node_modules", "__pycache__/", ".venv/", ".tox/", ".nox/", ".pytest_cache/", ".mypy_cache/",
	".ruff_cache/", ".ipynb_checkpoints/", ".gradle/", ".next/", ".nuxt/", ".svelte-kit/", ".parcel-cache/", ".turbo/",
	".dart_tool/", ".stack-work/", ".terraform/", "*.pyc", "*.pyo", ".DS_Store"}

// maxExceptions is how many directories of a repository have tracked files of one name. A repository with more commits
// such files as a rule, and then the name is not left out.
const maxExceptions = 200

// Cargo's build directory, and the file beside it.
const target, manifest = "target", "Cargo.toml"

// Pathspecs select the tracked files that Patterns needs to know.
func Pathspecs() []string {
	specs := []string{":(glob)**/" + manifest, ":(glob)**/" + target + "/**"}
	for _, name := range names {
		dir, isDir := strings.CutSuffix(name, "/")
		specs = append(specs, ":(glob)**/"+dir+"/**")
		if !isDir {
			specs = append(specs, ":(glob)**/"+name)
		}
	}
	return specs
}

// Patterns returns the lines of git's exclude file that leave out leftovers in a checkout of a repository, of which git
// lists the tracked files that Pathspecs select. New files below a directory with tracked files are not left out.
func Patterns(tracked []string) []string {
	var listed, excepted []string
	for _, name := range names {
		if dirs := holders(name, tracked); len(dirs) <= maxExceptions {
			listed = append(listed, name)
			for _, dir := range dirs {
				excepted = append(excepted, exceptions(name, dir)...)
			}
		}
	}
	patterns := append(listed, excepted...)
	isSource := map[string]bool{} // directories with tracked files
	for _, file := range tracked {
		for dir := range parents(file) {
			isSource[dir] = true
		}
	}
	var crates []string
	for _, file := range tracked {
		if dir := path.Join(path.Dir(file), target); path.Base(file) == manifest && !isSource[dir] {
			crates = append(crates, dir)
		}
	}
	slices.SortFunc(crates, func(a, b string) int { // those at the top first: builds of a workspace are there
		return cmp.Or(strings.Count(a, "/")-strings.Count(b, "/"), strings.Compare(a, b))
	})
	return append(patterns, Directories(crates[:min(len(crates), maxExceptions)])...)
}

// holders returns the directories in which tracked files are of a name: of a directory the directory itself, without
// those below another one of the same name, and of a file the directory that has it.
func holders(name string, tracked []string) (dirs []string) {
	base := strings.TrimSuffix(name, "/")
	for _, file := range tracked {
		dir, last := path.Split(file)
		at := 0
		for part := range strings.SplitSeq(strings.TrimSuffix(dir, "/"), "/") {
			if at += len(part) + 1; part == base {
				dirs = append(dirs, file[:at-1])
				break
			}
		}
		if isOf, _ := path.Match(name, last); isOf {
			dirs = append(dirs, path.Clean(dir))
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// exceptions returns the patterns that take back the one of a name in a directory that holders has returned.
func exceptions(name, dir string) []string {
	switch at, ok := pattern(dir); {
	case !ok:
		return nil
	case path.Base(dir) == strings.TrimSuffix(name, "/"):
		return []string{"!" + at, "!" + at + "**/" + name}
	default:
		return []string{"!" + at + name}
	}
}

// Directories returns the patterns that leave out directories. One with a line break in its name has no pattern.
func Directories(dirs []string) (patterns []string) {
	for _, dir := range dirs {
		if at, ok := pattern(dir); ok {
			patterns = append(patterns, at)
		}
	}
	return patterns
}

// pattern returns the pattern of a directory, "/" for the top. ok is false where no line can have it.
func pattern(dir string) (at string, ok bool) {
	if dir == "." {
		return "/", true
	}
	quote := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)
	return "/" + quote.Replace(dir) + "/", !strings.Contains(dir, "\n")
}

// signature begins each CACHEDIR.TAG (https://bford.info/cachedir).
var signature = []byte("Signature: 8a477f597d28d172789f06886806bc55")

// Marked returns the directories that files in them or beside them mark as made by a program: those with a
// CACHEDIR.TAG, target beside a Cargo.toml, and a venv or env that is a virtual environment. No pattern tells them.
// untracked are the files that git neither tracks nor ignores, and read returns the content of any file.
func Marked(untracked []string, read func(file string) ([]byte, error)) (dirs []string) {
	isRead := map[string]bool{}
	mark := func(dir, by string, begin []byte) {
		if dir == "." || isRead[by] {
			return
		}
		isRead[by] = true
		if data, err := read(by); err == nil && bytes.HasPrefix(data, begin) {
			dirs = append(dirs, dir)
		}
	}
	for _, file := range untracked {
		dir, base := path.Split(file)
		dir = path.Clean(dir)
		switch name := path.Base(dir); {
		case base == "CACHEDIR.TAG":
			mark(dir, file, signature)
		case base == "pyvenv.cfg" && (name == "venv" || name == "env"):
			mark(dir, file, nil)
		}
		for at := range parents(file) {
			if path.Base(at) == target {
				mark(at, path.Join(path.Dir(at), manifest), nil)
			}
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// parents yields the directories that a file lies in, the top not included, the outermost first.
func parents(file string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for at, b := range []byte(file) {
			if b == '/' && !yield(file[:at]) {
				return
			}
		}
	}
}

// Named returns the files and directories that one of the patterns leaves out. why is what git check-ignore says of all
// that is ignored: the file that has a pattern, the line in it, the pattern and the path. The patterns are the first
// lines of the exclude file.
func Named(patterns []byte, why []string) (names []string) {
	lines := bytes.Count(patterns, []byte("\n"))
	for of := range slices.Chunk(why[:len(why)/4*4], 4) {
		if line, err := strconv.Atoi(of[1]); err == nil && line <= lines && strings.HasSuffix(of[0], "info/exclude") {
			names = append(names, of[3])
		}
	}
	return names
}

// What Small returns has at most maxBytes and maxFiles in all.
const maxBytes, maxFiles = 64 << 20, 10_000

// Small returns the files that are, or lie in, one of names. What one name has comes whole or not at all: a name is
// left out where there would be too much.
func Small(names, files []string, size func(file string) int64) (small []string) {
	all := int64(0)
	for _, name := range names {
		var of []string
		n := int64(0)
		for _, file := range files {
			isIn := strings.HasSuffix(name, "/") && strings.HasPrefix(file, name)
			if file == name || isIn && !strings.HasSuffix(file, "/") { // a slash ends the name of another repository
				of = append(of, file)
				n += size(file)
			}
		}
		if len(small)+len(of) <= maxFiles && all+n <= maxBytes {
			small = append(small, of...)
			all += n
		}
	}
	return small
}
