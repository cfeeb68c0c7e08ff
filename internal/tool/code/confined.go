package code

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"muster"
	"muster/internal/durable"
	"muster/internal/editdist"
	"muster/tool"
)

// confinedPath is a path within a directory that the member may use. Files are opened through root only,
// which refuses to leave the directory even if somebody replaces a part of the path by a link after it was
// resolved.
type confinedPath struct {
	root *os.Root // to be closed by whoever has opened the path
	rel  string   // the path in root, with its links resolved
	show string   // the path as the model named it
	home bool     // root is the working directory, not one of the read-only roots
	sub  string   // where relative paths begin in root
	// noImages says that whoever asks can be shown no images.
	noImages bool
}

// open finds path in the working directory or in a read-only root. The error is for the model, unless it is
// fatal. The caller closes the root of the result.
func (s Workdir) open(path string, write bool) (confinedPath, error) {
	if strings.ContainsRune(path, 0) {
		return confinedPath{}, errors.New("a path cannot contain a NUL byte")
	}
	path = cmp.Or(path, ".")
	if write && !s.Writable {
		return confinedPath{}, errors.New(cmp.Or(s.Why, "nothing can be written in your working directory"))
	}
	// The name is checked first, so that the message for a wrong name does not depend on what is on the disk.
	base, rel, err := s.locate(path, write)
	if err != nil {
		return confinedPath{}, err
	}
	rel, inside := resolve(base, existingForm(base, rel))
	if !inside {
		return confinedPath{}, fmt.Errorf(
			"%s is a link that leads out of your working directory: use a path below %s", path, s.Dir)
	}
	// A member that could write below .git could set hooks or configuration, which git would run outside of
	// any plan. There are passwords and keys in it, too.
	if isGitInternal(rel) {
		return confinedPath{}, fmt.Errorf("%s is git's own: only git reads and changes it", path)
	}
	root, err := os.OpenRoot(base)
	if err != nil {
		return confinedPath{}, tool.Fatal(fmt.Errorf("the member's working directory cannot be opened: %w", err))
	}
	return confinedPath{root: root, rel: rel, show: path, home: base == s.Dir, sub: s.Sub,
		noImages: s.NoImages}, nil
}

// Start returns the absolute path of where commands start.
func (s Workdir) Start() string { return filepath.Join(s.Dir, s.Sub) }

// Below returns a path as a call names it, relative to the working directory unless it is absolute.
func (s Workdir) Below(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(s.Sub, path)
}

// Enter has commands start and relative paths begin in a directory below Dir, if it exists.
func (s *Workdir) Enter(sub string) (exists bool) {
	if _, err := s.directory(sub); err != nil {
		return false
	}
	s.Sub = filepath.FromSlash(sub)
	return true
}

// directory returns the absolute path of a directory in the working directory, which a call names for a command.
func (s Workdir) directory(name string) (string, error) {
	at, err := s.open(name, false)
	if err == nil {
		defer at.root.Close()
	}
	switch {
	case tool.IsFatal(err):
		return "", err
	case err != nil || !at.home:
		return "", fmt.Errorf("workdir %s is not below your working directory (%s), so the command was not run: "+
			"leave workdir out, or name a directory below", name, s.Dir)
	}
	fi, err := at.root.Stat(at.rel)
	switch {
	case err != nil:
		return "", at.explain(err)
	case !fi.IsDir():
		return "", fmt.Errorf("workdir %s is not a directory, so the command was not run", name)
	}
	return filepath.Join(s.Dir, at.rel), nil
}

// locate finds the root that path is below, by its name only, and the path in this root.
func (s Workdir) locate(path string, write bool) (base, rel string, err error) {
	rel = filepath.Clean(s.Below(path))
	if !filepath.IsAbs(path) {
		if !filepath.IsLocal(rel) {
			return "", "", fmt.Errorf("%s leads out of your working directory (%s): use a path below it", path, s.Dir)
		}
		return s.Dir, rel, nil
	}
	if in, ok := relativeTo(s.Dir, rel); ok {
		return s.Dir, in, nil
	}
	for _, dir := range s.ReadOnly {
		in, ok := relativeTo(dir, rel)
		switch {
		case !ok:
		case write:
			return "", "", fmt.Errorf("%s can only be read: write below %s", path, s.Dir)
		default:
			return dir, in, nil
		}
	}
	return "", "", fmt.Errorf("%s is outside of your working directory (%s): use a path below it", path, s.Dir)
}

// relativeTo makes path, which is absolute, relative to dir if it is below dir. dir may be named as it is given
// or with its links resolved.
func relativeTo(dir, path string) (rel string, ok bool) {
	real, _ := filepath.EvalSymlinks(dir) // nothing is below "", which it returns with an error
	for _, name := range []string{dir, real} {
		if rel, err := filepath.Rel(name, path); err == nil && filepath.IsLocal(rel) {
			return rel, true
		}
	}
	return "", false
}

// resolve follows the links of rel as far as it exists, and reports whether it stays below base. What does
// not exist yet is taken by its name.
func resolve(base, rel string) (resolved string, inside bool) {
	home, err := filepath.EvalSymlinks(base)
	if err != nil {
		return rel, true // the error of opening base says what is wrong
	}
	// The longest part of rel that exists is resolved; rest is what follows it.
	rest := ""
	for at := rel; ; at = filepath.Dir(at) {
		real, err := filepath.EvalSymlinks(filepath.Join(home, at))
		if err == nil {
			in, err := filepath.Rel(home, real)
			if err != nil || !filepath.IsLocal(in) {
				return "", false
			}
			return filepath.Join(in, rest), true
		}
		if at == "." {
			return rel, true
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

// existingForm returns rel with the names that exist in the place of those that are the same in another normal form of
// Unicode: macOS writes an accent as a character of its own, and nothing shows the difference.
func existingForm(base, rel string) string {
	if !strings.ContainsFunc(rel, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return rel
	}
	const maxEntries = 10_000
	at := ""
	for name := range strings.SplitSeq(rel, string(filepath.Separator)) {
		if _, err := os.Lstat(filepath.Join(base, at, name)); errors.Is(err, fs.ErrNotExist) {
			f, err := os.Open(filepath.Join(base, at))
			if err != nil {
				return rel
			}
			names, _ := f.Readdirnames(maxEntries)
			_ = f.Close()
			isSame := func(other string) bool { return norm.NFC.String(other) == norm.NFC.String(name) }
			if i := slices.IndexFunc(names, isSame); i >= 0 {
				name = names[i]
			}
		}
		at = filepath.Join(at, name)
	}
	return at
}

// isGitInternal reports whether rel is a .git, or below one. The case is ignored, as some file systems
// ignore it.
func isGitInternal(rel string) bool {
	return slices.ContainsFunc(strings.Split(filepath.ToSlash(rel), "/"),
		func(part string) bool { return strings.EqualFold(part, ".git") })
}

// explain says in the model's words why a file operation failed. The code is NotFound if there is no such
// file.
func (s confinedPath) explain(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := s.root.Lstat(s.show); err == nil && s.sub != "" && !filepath.IsAbs(s.show) {
			if rel, err := filepath.Rel(s.sub, s.show); err == nil {
				return muster.Errorf(muster.NotFound, "there is no %s below %s, where relative paths begin; "+
					"the one at the top is %s", s.show, filepath.ToSlash(s.sub), filepath.ToSlash(rel))
			}
		}
		if similar := s.similar(); len(similar) > 0 {
			return muster.Errorf(muster.NotFound, "there is no %s; in the same directory: %s",
				s.show, strings.Join(similar, ", "))
		}
		return muster.Errorf(muster.NotFound, "there is no %s: look with glob", s.show)
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err // the path in it is the one in root, which the model does not know
	}
	return fmt.Errorf("%s: %w", s.show, err)
}

// entries lists a directory of the root, or at most n entries of it if n is positive. The names are only a
// hint, so an error makes the list shorter.
func (s confinedPath) entries(dir string, n int) []fs.DirEntry {
	f, err := durable.Dirs{Root: s.root}.OpenDir(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	list, _ := f.ReadDir(n)
	return list
}

// similar helps a model that has misspelt a name. It lists names in the directory of a missing file that
// look like its own, the most similar first.
func (s confinedPath) similar() (names []string) {
	const maxNames, maxEntries = 5, 2000
	want := strings.ToLower(filepath.Base(s.rel))
	stem := strings.TrimSuffix(want, filepath.Ext(want))
	distance := map[string]int{}
	for _, e := range s.entries(filepath.Dir(s.rel), maxEntries) {
		name := strings.ToLower(e.Name())
		d := editdist.Distance(want, name)
		// A name that contains the whole stem is similar, however long it is: api_test.go for api.go.
		if len(stem) > 2 && strings.Contains(name, stem) {
			d = min(d, 2)
		}
		if d <= max(2, len(want)/3) {
			distance[filepath.Join(filepath.Dir(s.show), e.Name())] = d
		}
	}
	names = slices.SortedFunc(maps.Keys(distance), func(a, b string) int {
		return cmp.Or(cmp.Compare(distance[a], distance[b]), strings.Compare(a, b))
	})
	return names[:min(len(names), maxNames)]
}

// stat describes the file. It is an error, in the model's words, if the path is anything but a regular
// file. Reading or writing something else could wait forever: a pipe, for one, waits for its other end.
func (s confinedPath) stat() (fs.FileInfo, error) {
	fi, err := s.root.Stat(s.rel)
	switch {
	case err != nil:
		return nil, s.explain(err)
	case fi.IsDir():
		return nil, errors.New(s.listing())
	case fi.Mode().IsRegular():
		return fi, nil
	}
	kinds := map[fs.FileMode]string{fs.ModeNamedPipe: "pipe", fs.ModeSocket: "socket"}
	return nil, fmt.Errorf("%s is not a file but a %s", s.show, cmp.Or(kinds[fi.Mode().Type()], "device"))
}

// listing says that the path is a directory, and what is in it.
func (s confinedPath) listing() string {
	const maxNames, maxEntries = 200, 10_000
	var names []string
	for _, e := range s.entries(s.rel, maxEntries) {
		name := e.Name()
		if e.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	switch {
	case len(names) == 0:
		return s.show + " is a directory, and it is empty"
	case len(names) == maxEntries:
		return fmt.Sprintf("%s is a directory of at least %d entries: %s, and more (glob finds them)",
			s.show, len(names), strings.Join(names[:maxNames], " "))
	case len(names) > maxNames:
		return fmt.Sprintf("%s is a directory of %d entries: %s, and more (glob finds them)",
			s.show, len(names), strings.Join(names[:maxNames], " "))
	}
	return fmt.Sprintf("%s is a directory: %s", s.show, strings.Join(names, " "))
}
