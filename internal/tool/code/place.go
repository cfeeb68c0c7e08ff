package code

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"muster/internal/editdist"
	"muster/tool"
)

// confinedPath is a path within a root that the member may use.
type confinedPath struct {
	root *os.Root
	rel  string // in root, resolved: free of links as it was looked at, and root sees to it that it stays inside
	show string // as the model named it
	home bool   // root is where the member stands, not one of the read-only roots
}

func (s confinedPath) close() { _ = s.root.Close() }

// path is the absolute path, for git and for people; files are opened through root only.
func (s confinedPath) path() string { return filepath.Join(s.root.Name(), s.rel) }

// at finds path. The error is for the model, unless it is tool.Fatal.
func (s Standing) at(path string, write bool) (confinedPath, error) {
	if strings.ContainsRune(path, 0) {
		return confinedPath{}, errors.New("a path cannot contain a NUL byte")
	}
	if path == "" {
		path = "."
	}
	if write && !s.Writable {
		why := s.Why
		if why == "" {
			why = "nothing can be written where you stand"
		}
		return confinedPath{}, errors.New(why)
	}
	base, rel := s.Dir, filepath.Clean(path)
	if filepath.IsAbs(path) {
		var ok bool
		if base, rel, ok = s.baseOf(rel); !ok {
			return confinedPath{}, fmt.Errorf("%s is outside of where you stand (%s): use a path below it", path, s.Dir)
		}
		if write && base != s.Dir {
			return confinedPath{}, fmt.Errorf("%s can only be read: write below %s", path, s.Dir)
		}
	}
	if !filepath.IsLocal(rel) {
		return confinedPath{}, fmt.Errorf("%s leads out of where you stand (%s): use a path below it", path, s.Dir)
	}
	rel, inside := resolve(base, rel)
	if !inside {
		return confinedPath{}, fmt.Errorf("%s is a link that leads out of where you stand: use a path below %s", path, s.Dir)
	}
	if write && gits(rel) {
		return confinedPath{}, fmt.Errorf("%s is git's own: only git changes it", path)
	}
	root, err := os.OpenRoot(base)
	if err != nil {
		return confinedPath{}, tool.Fatal(fmt.Errorf("the directory where the member stands cannot be opened: %w", err))
	}
	return confinedPath{root: root, rel: rel, show: path, home: base == s.Dir}, nil
}

// baseOf finds which root an absolute path is below, and its path within.
func (s Standing) baseOf(path string) (base, rel string, ok bool) {
	if rel, ok = below(s.Dir, path); ok {
		return s.Dir, rel, true
	}
	names := make([]string, 0, len(s.ReadOnly))
	for name := range s.ReadOnly {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if rel, ok = below(s.ReadOnly[name], path); ok {
			return s.ReadOnly[name], rel, true
		}
	}
	return "", "", false
}

// below makes path relative to dir, if it is below it, also where either of them is named through a link.
func below(dir, path string) (rel string, ok bool) {
	if dir == "" {
		return "", false
	}
	real := dir
	if r, err := filepath.EvalSymlinks(dir); err == nil {
		real = r
	}
	for _, d := range []string{dir, real} {
		if rel, err := filepath.Rel(d, path); err == nil && filepath.IsLocal(rel) {
			return rel, true
		}
	}
	return "", false
}

// resolve follows the links of rel, as far as it exists, and tells whether it stays below base. What does not exist yet
// is taken by its name.
func resolve(base, rel string) (resolved string, inside bool) {
	home, err := filepath.EvalSymlinks(base)
	if err != nil {
		return rel, true // opening base says what is wrong
	}
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

// gits tells whether rel is, or is below, something of git's own.
func gits(rel string) bool {
	return slices.ContainsFunc(strings.Split(filepath.ToSlash(rel), "/"), func(part string) bool { return strings.EqualFold(part, ".git") })
}

// why says in the model's words why a file operation failed.
func (s confinedPath) why(err error) error {
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if near := s.near(); len(near) > 0 {
			return fmt.Errorf("there is no %s; in the same directory: %s", s.show, strings.Join(near, ", "))
		}
		return fmt.Errorf("there is no %s: look with glob", s.show)
	case errors.As(err, &path):
		return fmt.Errorf("%s: %w", s.show, path.Err)
	}
	return fmt.Errorf("%s: %w", s.show, err)
}

// near lists names in the directory of a missing file that look like its own, the nearest first.
func (s confinedPath) near() (names []string) {
	const most = 5
	dir := filepath.Dir(s.rel)
	f, err := s.root.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, _ := f.ReadDir(2000)
	want := strings.ToLower(filepath.Base(s.rel))
	type candidate struct {
		name string
		far  int
	}
	var found []candidate
	for _, e := range entries {
		name := strings.ToLower(e.Name())
		far := editdist.Distance(want, name)
		if stem := strings.TrimSuffix(want, filepath.Ext(want)); len(stem) > 2 && strings.Contains(name, stem) {
			far = min(far, 2)
		}
		if far <= max(2, len(want)/3) {
			found = append(found, candidate{filepath.Join(filepath.Dir(s.show), e.Name()), far})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int {
		if a.far != b.far {
			return a.far - b.far
		}
		return strings.Compare(a.name, b.name)
	})
	for _, c := range found[:min(len(found), most)] {
		names = append(names, c.name)
	}
	return names
}
