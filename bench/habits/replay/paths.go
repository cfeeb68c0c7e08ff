package replay

import (
	"path"
	"strings"

	"muster/bench/habits/session"
)

// places says where the session worked: absolute paths below root, and relative ones below base, are paths of the
// repository. An export does not say either.
type places struct {
	root, base string
	hasRoot    bool
}

// find takes the root and the base for which the most paths of the calls are files of the commit.
func find(calls []*session.Call, files map[string]bool) places {
	roots, bases := map[string]int{}, map[string]int{}
	ends := map[string][]string{} // of each base name, the files that have it
	for f := range files {
		ends[path.Base(f)] = append(ends[path.Base(f)], f)
	}
	for _, c := range calls {
		for _, p := range c.Paths {
			p = slashed(p)
			for _, f := range ends[path.Base(p)] {
				switch {
				case path.IsAbs(p) && strings.HasSuffix(p, "/"+f):
					roots[strings.TrimSuffix(p, "/"+f)]++
				case !path.IsAbs(p) && f == p:
					bases["."]++
				case !path.IsAbs(p) && strings.HasSuffix(f, "/"+p):
					bases[strings.TrimSuffix(f, "/"+p)]++
				}
			}
		}
	}
	root, hasRoot := best(roots)
	base, _ := best(bases)
	return places{root: root, hasRoot: hasRoot, base: path.Clean(base)}
}

// best returns the key with the largest count, of equal ones the shortest.
func best(counts map[string]int) (key string, ok bool) {
	for k, n := range counts {
		m := counts[key]
		if !ok || n > m || n == m && (len(k) < len(key) || len(k) == len(key) && k < key) {
			key, ok = k, true
		}
	}
	return key, ok
}

// slashed returns a path with slashes and without a dot before it. A drive is a directory of the root.
func slashed(p string) string {
	if p == "" {
		return ""
	}
	if len(p) > 2 && p[1] == ':' && (p[2] == '/' || p[2] == '\\') {
		p = "/" + strings.ToLower(p[:1]) + p[2:]
	}
	return path.Clean(strings.ReplaceAll(p, `\`, "/"))
}

// isAbs reports whether a path is absolute on any system.
func isAbs(p string) bool { return strings.HasPrefix(slashed(p), "/") }

// in returns the path in the repository, if the path is one.
func (w places) in(p string) (name string, ok bool) {
	p = slashed(p)
	switch {
	case p == "":
		return "", false
	case !path.IsAbs(p):
		name = path.Join(w.base, p)
	case w.hasRoot && p == w.root:
		return ".", true
	case w.hasRoot && strings.HasPrefix(p, w.root+"/"):
		name = strings.TrimPrefix(p, w.root+"/")
	default:
		return "", false
	}
	return name, name != ".." && !strings.HasPrefix(name, "../")
}

// here returns the path as the model would have named it, if the repository were at dir. Exports of Claude Code have
// shortened absolute paths, so that theirs are absolute again. A path elsewhere is absolute on this system.
func (w places) here(p, dir string, shortened bool) string {
	name, ok := w.in(p)
	switch {
	case !ok:
		return slashed(p)
	case isAbs(p) || shortened:
		return path.Join(dir, name)
	}
	return p
}
