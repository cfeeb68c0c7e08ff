package agentfiles

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"muster"
	"muster/internal/durable"
	"muster/internal/text"
)

// The limits of what is read.
const (
	maxFiles   = 500
	maxEntries = 5000 // of directories that are looked at in each directory of a kind
	maxDepth   = 4    // of a directory below that of its kind
	maxFile    = 256 << 10
)

// Find returns the files of a kind, the strongest first. They are those of the repository at root, those beside the
// user's settings in config, and those in the user's home; "" is none. Of a file that can be reached in several ways
// the first counts.
func Find(k Kind, root, home, config string) []File {
	dirs := []string{".agents/" + k.Dir, ".claude/" + k.Dir}
	inRoot := dirs
	if k.InRoot {
		inRoot = append([]string{k.Dir}, dirs...)
	}
	f := finder{Kind: k, seen: map[string]bool{}, taken: map[string]string{}}
	f.look(root, "", inRoot...)
	f.look(config, config, k.Dir)
	f.look(home, "~", dirs...)
	return f.files
}

// finder collects the files of a kind.
type finder struct {
	Kind
	files []File
	seen  map[string]bool   // paths without links
	taken map[string]string // where the usable file of a name is
}

// look adds the files in some directories below base, which no link leads out of. show stands for base in what people
// read: "" for the repository.
func (f *finder) look(base, show string, dirs ...string) {
	root, err := os.OpenRoot(base)
	if err != nil {
		return // there is no such directory
	}
	defer root.Close()
	for _, dir := range dirs {
		for _, name := range f.walk(root, dir) {
			found := File{Path: filepath.Join(base, filepath.FromSlash(name)), IsUser: show != "",
				Below: strings.TrimSuffix(strings.TrimPrefix(name, dir+"/"), path.Ext(name))}
			// Two directories are often one, by a link.
			real, rel, err := Resolve(found.Path, base)
			if real != "" && f.seen[real] || len(f.files) == maxFiles {
				continue
			}
			f.seen[real] = true
			isFile := f.isFile(path.Base(name))
			found.Place, found.Name = name, found.Below
			if f.Alone != "" && isFile {
				found.Place, found.Name = path.Dir(name), path.Dir(name)
			}
			found.Place, found.Name = text.OneLine(path.Join(show, found.Place)), text.OneLine(path.Base(found.Name))
			content := ""
			if err == nil || !isFile && errors.Is(err, ErrKeys) {
				content, err = read(root, rel)
			}
			if errors.Is(err, ErrOutside) && show != "" {
				err = errors.New("it leads out of " + show)
			}
			if e, ok := errors.AsType[*fs.PathError](err); ok {
				err = e.Err // without the paths of this machine
			}
			if err != nil {
				found.Problem = "it cannot be read: " + muster.PlainText(err)
			} else {
				found.parse(content)
			}
			if err == nil && f.Alone != "" && !isFile {
				if found.Head.Text("description") == "" {
					continue // a text about the directory
				}
				found.Problem = "it is no directory with a " + f.Alone
			}
			f.check(&found)
			f.files = append(f.files, found)
		}
	}
}

// check finds out whether a file can be used.
func (f *finder) check(found *File) {
	if found.Problem == "" && f.Check != nil {
		found.Problem = f.Check(*found)
	}
	if found.Problem != "" || f.Word == "" {
		return
	}
	key := muster.RoleKey(found.Name)
	if other, isTaken := f.taken[key]; isTaken {
		found.IsSecond, found.Problem = true, fmt.Sprintf("a %s in %s has the same name", f.Word, other)
	} else if key == "" {
		found.Problem = "its name has no letters"
	} else {
		f.taken[key] = found.Place
	}
}

// walk returns the files of the kind below a directory, in order. To these it adds the directories that cannot be
// looked at, and the Markdown files that stand where files of the kind have a directory for themselves.
func (f *finder) walk(root *os.Root, dir string) (files []string) {
	entries := 0
	var walk func(dir string, depth int)
	walk = func(dir string, depth int) {
		in, err := durable.Dirs{Root: root}.OpenDir(filepath.FromSlash(dir))
		if err != nil {
			fi, err := os.Stat(filepath.Join(root.Name(), filepath.FromSlash(dir)))
			if err == nil && fi.IsDir() {
				files = append(files, dir)
			}
			return
		}
		list, err := in.ReadDir(maxEntries - entries)
		_ = in.Close()
		if entries += len(list); err != nil && !errors.Is(err, io.EOF) || entries >= maxEntries {
			return
		}
		isLink := func(e fs.DirEntry) int {
			if e.Type()&fs.ModeSymlink != 0 {
				return 1
			}
			return 0
		}
		slices.SortFunc(list, func(a, b fs.DirEntry) int { // links last: what they lead to has a name of its own
			return cmp.Or(isLink(a)-isLink(b), strings.Compare(a.Name(), b.Name()))
		})
		for _, e := range list {
			isStray := f.Alone != "" && depth == 0 && dir != f.Dir && strings.EqualFold(path.Ext(e.Name()), ".md")
			if isFile := f.isFile(e.Name()); isFile || isStray {
				files = append(files, path.Join(dir, e.Name()))
				if isFile && f.Alone != "" {
					return
				}
			}
		}
		for _, e := range list {
			isDir := e.IsDir() || e.Type()&fs.ModeSymlink != 0 // opening a link to anything else fails
			if isDir && depth < maxDepth && e.Name() != "node_modules" && e.Name() != ".git" {
				walk(path.Join(dir, e.Name()), depth+1)
			}
		}
	}
	walk(dir, 0)
	return files
}

// read returns a file as text that can be shown.
func read(root *os.Root, name string) (string, error) {
	// A pipe is opened without waiting, and refused.
	f, err := root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return "", errors.New("it is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return "", err
	case len(data) > maxFile:
		return "", fmt.Errorf("it has more than %d KB", maxFile>>10)
	case bytes.IndexByte(data, 0) >= 0:
		return "", errors.New("it is not text")
	}
	return text.Clean(string(data)), nil
}
