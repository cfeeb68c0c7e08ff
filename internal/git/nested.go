package git

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"muster/internal/durable"
)

// NestedDir returns the git directory of the repository at path, which lies in another one's working tree. Programs may
// have written all of it, so git is not asked: it would obey the settings that it finds. The error says why git must
// not run there: the directory borrows from or leads to another place.
func NestedDir(path string) (dir string, err error) {
	link := filepath.Join(path, ".git")
	st, err := os.Lstat(link)
	switch {
	case err != nil:
		return "", err
	case st.IsDir():
		dir = link
	default:
		if dir = linkedDir(path); dir == "" {
			return "", errors.New("its .git is neither a directory nor the name of one")
		}
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", err
	}
	return dir, checkNested(dir)
}

// maxNested is how many files a nested repository may have besides its objects.
const maxNested = 20_000

// checkNested refuses a git directory in which anything leads out of it: links, a common directory, borrowed objects,
// and settings that include others.
func checkNested(dir string) error {
	n := 0
	return filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(dir, file)
		if err != nil || relErr != nil {
			return errors.Join(err, relErr)
		}
		if n++; n > maxNested {
			return fmt.Errorf("its git directory has more than %d files", maxNested)
		}
		name := filepath.ToSlash(rel)
		switch base := d.Name(); {
		case !d.IsDir() && !d.Type().IsRegular():
			return fmt.Errorf("%s in its git directory is a link, a pipe or a device", name)
		case base == "commondir", strings.HasSuffix(name, "info/alternates"), strings.HasSuffix(name, "http-alternates"):
			return fmt.Errorf("its git directory has %s, which leads to another repository", name)
		case base == "config", base == "config.worktree":
			data, err := durable.ReadBelow(dir, file, maxPrivate)
			if err != nil {
				return err
			}
			if bytes.Contains(bytes.ToLower(data), []byte("[include")) {
				return fmt.Errorf("%s in its git directory includes other files", name)
			}
		case d.IsDir() && isLooseDir(name):
			return fs.SkipDir // objects by their ids
		}
		return nil
	})
}

// isLooseDir reports whether a directory below a git directory has loose objects.
func isLooseDir(name string) bool {
	parent, base := filepath.Split(name)
	return strings.HasSuffix(parent, "objects/") && len(base) == 2
}
