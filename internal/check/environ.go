package check

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster/internal/durable"
	"muster/internal/proc"
)

// The environment of a check is that of the user's shell, and what is active there was made for the user's checkout. A
// check that follows it there tests other files than those that land, and its green says nothing. There are three ways
// to deal with what leads there, the first that can be had:
//
//   - It is changed to lead to the same place in the merged tree: a directory in PYTHONPATH that the tree has too.
//   - It is left out: the bin directory of a virtual environment in the checkout, which git does not track.
//   - It stays, and the check's result is marked as unverified with the reason: an import hook that cannot be
//     overridden from outside.
//
// What is not looked at is what a check reaches by itself: a path in a script, or a server.

// honest is what is known of the environment of a check: where it would lead to other files than those that land.
type honest struct {
	env      []string
	replaced []string // the variables that were changed or left out, in order
	problem  string   // why the check does not see the merged tree; "": it does
}

// Variables that may name the user's checkouts: nothing is loaded from where they lead.
var mayLeadAnywhere = []string{"PWD", "OLDPWD", "HOME", "INIT_CWD", "TMPDIR"}

// makeHonest returns the environment of a check in dir. What leads into one of the checkouts, those of the user and the
// lanes, leads to the same place in dir; where there is no such place, it is left out. So a check sees the tree that
// lands, whatever the user has activated in the shell from which muster was started.
func makeHonest(env, checkouts []string, dir string) honest {
	h := honest{}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if slices.Contains(mayLeadAnywhere, name) {
			h.env = append(h.env, kv)
			continue
		}
		led, isKept := redirect(value, checkouts, dir)
		if led != value || !isKept {
			h.replaced = append(h.replaced, name)
		}
		if isKept {
			h.env = append(h.env, name+"="+led)
		}
	}
	slices.Sort(h.replaced)
	h.python(checkouts, dir)
	if h.problem == "" {
		h.problem = linkedModules(h.env, checkouts, dir)
	}
	if h.problem == "" {
		h.problem = namedInFiles(h.env, checkouts, dir)
	}
	return h
}

// A value is taken apart where lists of paths are, because an entry of a list can be left out by itself. In a part that
// is more than a path, such as the flags of GOFLAGS, only the path is changed; where there is no such place in the tree
// the whole part goes, because a flag without its path would mean something else.

// redirect changes each part of a value that leads into a checkout. isKept is false where nothing of it is left.
func redirect(value string, checkouts []string, dir string) (led string, isKept bool) {
	parts := strings.Split(value, string(filepath.ListSeparator))
	var left []string
	for _, part := range parts {
		at, _, rest, found := findPath(part, checkouts)
		if !found {
			left = append(left, part)
			continue
		}
		// The path ends where a flag does.
		end := len(rest)
		if i := strings.IndexAny(rest, " \t\n\"',;"); i >= 0 {
			end = i
		}
		to := filepath.Join(dir, rest[:end])
		if _, err := os.Stat(to); err == nil {
			left = append(left, part[:at]+to+rest[end:])
		}
	}
	return strings.Join(left, string(filepath.ListSeparator)), len(left) > 0
}

// findPath finds the path of a checkout in a text: where it begins, and what follows it, which is the path below. A
// text that is a path itself may lead there by links.
func findPath(text string, checkouts []string) (at int, checkout, rest string, found bool) {
	for _, c := range checkouts {
		for from := 0; ; {
			i := strings.Index(text[from:], c)
			if i < 0 {
				break
			}
			after := text[from+i+len(c):]
			if after == "" || strings.ContainsAny(after[:1], "/\\ \t\n\"',;)]}") {
				return from + i, c, after, true
			}
			from += i + len(c)
		}
	}
	if !filepath.IsAbs(text) {
		return 0, "", "", false
	}
	real, err := filepath.EvalSymlinks(text)
	if err != nil || real == text {
		return 0, "", "", false
	}
	for _, c := range checkouts {
		if rel, err := filepath.Rel(c, real); err == nil && filepath.IsLocal(rel) {
			return 0, c, string(filepath.Separator) + rel, true
		}
	}
	return 0, "", "", false
}

// sitePackages returns the directories from which the Pythons of an environment import what is installed.
func sitePackages(env []string) []string {
	prefixes := map[string]bool{proc.Variable(env, "VIRTUAL_ENV"): true, proc.Variable(env, "CONDA_PREFIX"): true,
		filepath.Join(proc.Variable(env, "HOME"), ".local"): true}
	for _, bin := range filepath.SplitList(proc.Variable(env, "PATH")) {
		prefixes[filepath.Dir(bin)] = true
	}
	delete(prefixes, "")
	var all []string
	for _, prefix := range slices.Sorted(maps.Keys(prefixes)) {
		for _, pattern := range []string{"lib/python*/site-packages", "lib/python*/dist-packages",
			"Lib/site-packages"} {
			all = append(all, durable.Glob(prefix, filepath.FromSlash(pattern))...)
		}
	}
	return all
}

// maxInstalled is how large a file that an editable install writes may be; one that is larger is none.
const maxInstalled = 1 << 20

// python looks for editable installs of the checkouts: a package that is imported from there, and not from the merged
// tree. What the merged tree has comes first then, by PYTHONPATH. Where that would not help, there is a problem.
func (h *honest) python(checkouts []string, dir string) {
	var first []string
	for _, site := range sitePackages(h.env) {
		files := slices.Concat(durable.Glob(site, "*.pth"), durable.Glob(site, "*.egg-link"),
			durable.Glob(site, "*editable*.py"))
		for _, file := range files {
			text, err := readIn(dir, file)
			if err != nil {
				continue
			}
			isFinder := strings.HasSuffix(file, ".py")
			// setuptools looks with its finder after PYTHONPATH. Others look before it.
			helps := !isFinder || strings.HasPrefix(filepath.Base(file), "__editable__")
			for line := range strings.Lines(string(text)) {
				_, checkout, rest, found := findPath(strings.TrimSpace(line), checkouts)
				for ; found; _, checkout, rest, found = findPath(rest, checkouts) {
					path, isThere := inTree(rest, dir, isFinder)
					if !helps || !isThere {
						h.problem = fmt.Sprintf("the check imports %s, which is not the merged tree, because of %s",
							checkout+cutPath(rest), file)
						return
					}
					if !slices.Contains(first, path) {
						first = append(first, path)
					}
				}
			}
		}
	}
	if len(first) > 0 {
		first = append(first, filepath.SplitList(proc.Variable(h.env, "PYTHONPATH"))...)
		h.env = proc.WithVariables(h.env, "PYTHONPATH="+strings.Join(first, string(filepath.ListSeparator)))
		h.replaced = append(h.replaced, "PYTHONPATH")
	}
}

// readIn reads a file that names installed code. Below dir, where the set-up has run, it follows no link.
func readIn(dir, file string) ([]byte, error) {
	if rel, err := filepath.Rel(dir, file); err == nil && filepath.IsLocal(rel) {
		return durable.ReadBelow(dir, file, maxInstalled)
	}
	return durable.ReadRegular(file, maxInstalled)
}

// cutPath returns the path at the beginning of a text.
func cutPath(text string) string {
	if i := strings.IndexAny(text, " \t\n\"',;)]}"); i >= 0 {
		return text[:i]
	}
	return text
}

// The file of an editable install names the checkout in one of these ways. A .pth file has the directory in a line, and
// Python adds it to the end of its path. A finder of setuptools has a table from packages to directories, and Python
// asks it after its path. Others, such as those of scikit-build and meson, ask to be asked first.

// inTree returns where Python has to look in dir for what lies at rest in a checkout, and whether that is there. A
// finder names packages, and they are looked for in the directory above.
func inTree(rest, dir string, isPackage bool) (path string, isThere bool) {
	path = filepath.Join(dir, cutPath(rest))
	_, err := os.Stat(path)
	if isPackage {
		path = filepath.Dir(path)
	}
	return path, err == nil
}

// Node follows the links of modules, so a linked module is loaded from where the link leads, and finds its own modules
// there. No variable changes that, and the link may have been made by the set-up that the user asked for: so it stays,
// and the check proves nothing.

// linkedModules looks for modules of Node that are links into a checkout, as npm link makes them.
func linkedModules(env, checkouts []string, dir string) (problem string) {
	places := append(filepath.SplitList(proc.Variable(env, "NODE_PATH")), filepath.Join(dir, "node_modules"))
	for _, place := range places {
		for _, path := range slices.Concat(durable.Glob(place, "*"), durable.Glob(place, "@*/*")) {
			info, err := os.Lstat(path)
			if err != nil || info.Mode()&os.ModeSymlink == 0 {
				continue
			}
			real, err := filepath.EvalSymlinks(path)
			if err != nil {
				continue
			}
			if _, _, _, found := findPath(real, checkouts); found {
				return fmt.Sprintf("the check imports %s, which is not the merged tree, because of the link %s",
					real, path)
			}
		}
	}
	return ""
}

// A path of the user's checkout in a file of the tree is the same path in every checkout of it: a build follows it to
// the user's files wherever it runs. Only the files at the root are read, as far as build tools look for paths there.

// namedInFiles looks for the path of a checkout in the files that tell build tools where to find code.
func namedInFiles(env, checkouts []string, dir string) (problem string) {
	files := []string{filepath.Join(proc.Variable(env, "HOME"), ".cargo", "config.toml")}
	for _, name := range []string{"go.mod", "go.work", "Cargo.toml", ".cargo/config.toml", ".cargo/config",
		"package.json", "pyproject.toml", "requirements.txt", "tsconfig.json"} {
		files = append(files, filepath.Join(dir, filepath.FromSlash(name)))
	}
	for _, flag := range strings.Fields(proc.Variable(env, "GOFLAGS")) {
		if _, file, ok := strings.Cut(flag, "="); ok && filepath.IsAbs(file) {
			files = append(files, file)
		}
	}
	for _, file := range files {
		text, err := readIn(dir, file)
		if err != nil {
			continue
		}
		if _, checkout, rest, found := findPath(string(text), checkouts); found {
			return fmt.Sprintf("the check builds with %s, which is not the merged tree, because of %s",
				checkout+cutPath(rest), file)
		}
	}
	return ""
}
