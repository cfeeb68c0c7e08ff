package board

import (
	slashpath "path"
	"strings"
	"unicode"

	"muster"
	"muster/internal/text"
)

// The limits of a task's files. Each claim compares them with those of the tasks that are under way.
const (
	maxFiles = 50
	maxFile  = 256 // bytes of each
)

// checkFiles refuses what names no files of the repository.
func checkFiles(files []string) error {
	if len(files) > maxFiles {
		return muster.Errorf(muster.Invalid, "the task names %d files, %d at most: name their directories", len(files),
			maxFiles)
	}
	for _, f := range files {
		_, err := slashpath.Match(f, "")
		clean := slashpath.Clean(f)
		if f == "" || len(f) > maxFile || err != nil || slashpath.IsAbs(f) || clean == ".." ||
			strings.HasPrefix(clean, "../") || strings.ContainsFunc(f, unicode.IsControl) ||
			text.BadLine([]byte(f)) > 0 {
			return muster.Errorf(muster.Invalid, "%q is no path or glob of files in the repository",
				text.CutBytes(f, 80))
		}
	}
	return nil
}

// overlap reports whether two lists of paths, directories and globs may name the same file. It may say so of two globs
// that do not: then one task waits for another while there is something else to do.
func overlap(a, b []string) bool {
	for _, x := range a {
		for _, y := range b {
			if mayMeet(slashpath.Clean(x), slashpath.Clean(y)) {
				return true
			}
		}
	}
	return false
}

// mayMeet is overlap of two entries.
func mayMeet(x, y string) bool {
	beginX, isGlobX := globPrefix(x)
	beginY, isGlobY := globPrefix(y)
	switch {
	case isGlobX && isGlobY:
		return strings.HasPrefix(beginX, beginY) || strings.HasPrefix(beginY, beginX)
	case isGlobY:
		return mayMeet(y, x)
	case !isGlobX:
		return isBelow(x, y) || isBelow(y, x)
	}
	// Where the name is a directory, the glob may be of files in it; ** stands for any number of directories.
	if isBelow(beginX, y) || strings.Contains(x, "**") && strings.HasPrefix(y, beginX) {
		return true
	}
	// A glob that matches a directory names what is in it.
	for at := y; at != "." && at != "/"; at = slashpath.Dir(at) {
		if is, _ := slashpath.Match(x, at); is {
			return true
		}
	}
	return false
}

// isBelow reports whether a path is dir, or lies in it.
func isBelow(name, dir string) bool {
	return dir == "." || name == dir || strings.HasPrefix(name, dir+"/")
}

// globPrefix returns what comes before the first character of a glob that stands for others.
func globPrefix(s string) (prefix string, isGlob bool) {
	if i := strings.IndexAny(s, `*?[\`); i >= 0 {
		return s[:i], true
	}
	return s, false
}
