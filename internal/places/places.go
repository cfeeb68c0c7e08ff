// Package places finds the Markdown files that people keep for agents: skills, roles and commands.
//
// A Place is a directory of the repository or of the user, below which such files are looked for. Find walks places and
// returns the files, and File.Text reads one. What a file means is decided by the packages that ask for it.
//
// These are files of others. No link leads out of the repository, or out of the user's home. How much is read is
// bounded, and nothing but a regular file is opened for long. What File.Text returns can be shown on a terminal.
package places

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

	"muster/internal/frontmatter"
	"muster/internal/text"
)

// The limits of what is read.
const (
	maxFiles   = 500
	maxEntries = 5000 // of directories that are looked at in each place
	maxDepth   = 4    // of a directory below its place
	maxFile    = 256 << 10
)

// MaxDescription is how many bytes a description has at most.
const MaxDescription = 1024

// Place is where files are looked for: directories below a base that no link leads out of.
type Place struct {
	Base string // absolute
	Show string // stands for Base in what people read: "" for the repository, "~" for the user's home
	Dirs []string
	// IsUser says that the directories are the user's own, and not the repository's.
	IsUser bool
}

// Of returns where files of a kind are looked for, such as "agents", the strongest first. home and config are the
// directories of the user and of the user's settings; "" is none.
func Of(kind, root, home, config string) []Place {
	dirs := []string{".agents/" + kind, ".claude/" + kind}
	places := []Place{{Base: root, Dirs: dirs}}
	if config != "" {
		places = append(places, Place{Base: config, Show: config, Dirs: []string{kind}, IsUser: true})
	}
	if home != "" {
		places = append(places, Place{Base: home, Show: "~", Dirs: dirs, IsUser: true})
	}
	return places
}

// Pick says which files Find returns.
type Pick struct {
	// IsWanted reports whether a file with a name is one.
	IsWanted func(name string) bool
	// OwnsDirectory says that a file has the directory that it lies in for itself: what else lies there or below is not
	// looked at.
	OwnsDirectory bool
}

// Markdown picks all Markdown files but those that tell people, or all agents, about a directory.
func Markdown() Pick {
	about := []string{"readme.md", "agents.md", "claude.md"}
	return Pick{IsWanted: func(name string) bool {
		name = strings.ToLower(name)
		return path.Ext(name) == ".md" && !slices.Contains(about, name)
	}}
}

// File is a file that Find has found.
type File struct {
	Place Place
	Path  string // relative to the base of its place, with slashes
	Dir   string // of Place.Dirs, below which the file lies
}

// Show returns the path as people read it.
func (f File) Show() string { return path.Join(f.Place.Show, f.Path) }

// Name returns the name of the file without its extension.
func (f File) Name() string { return strings.TrimSuffix(path.Base(f.Path), path.Ext(f.Path)) }

// Find returns the files of places that are picked, in the order of places and of names. Of a file that can be reached
// in several ways it returns the first.
func Find(all []Place, pick Pick) (files []File) {
	seen := map[string]bool{}
	for _, p := range all {
		root, err := os.OpenRoot(p.Base)
		if err != nil {
			continue // there is no such directory
		}
		for _, dir := range p.Dirs {
			for _, file := range walk(root, dir, pick) {
				// Two places are often one, by a link.
				real, err := filepath.EvalSymlinks(filepath.Join(p.Base, filepath.FromSlash(file)))
				if err == nil && seen[real] || len(files) == maxFiles {
					continue
				}
				seen[real] = true
				files = append(files, File{Place: p, Path: file, Dir: dir})
			}
		}
		_ = root.Close()
	}
	return files
}

// walk returns the files below a directory that are picked, in order.
func walk(root *os.Root, dir string, pick Pick) (files []string) {
	entries := 0
	var walk func(dir string, depth int)
	walk = func(dir string, depth int) {
		f, err := root.Open(filepath.FromSlash(dir))
		if err != nil {
			return
		}
		list, err := f.ReadDir(maxEntries - entries)
		_ = f.Close()
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
			if pick.IsWanted(e.Name()) {
				files = append(files, path.Join(dir, e.Name()))
				if pick.OwnsDirectory {
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

// Text returns the file as text that can be shown. Its error names no path of this machine.
func (f File) Text() (string, error) {
	root, err := os.OpenRoot(f.Place.Base)
	if err != nil {
		return "", withoutPath(err)
	}
	defer root.Close()
	text, err := readText(root, f.Path)
	return text, withoutPath(err)
}

// readText returns a file as text that can be shown.
func readText(root *os.Root, file string) (string, error) {
	// A pipe is opened without waiting, and refused.
	f, err := root.OpenFile(filepath.FromSlash(file), os.O_RDONLY|syscall.O_NONBLOCK, 0)
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
	return text.Clean(strings.ToValidUTF8(string(data), "")), nil
}

// withoutPath returns an error without the paths of this machine.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// Describe returns the description in a head, or the first sentence of the text below it, in one line.
func Describe(head frontmatter.Fields, body string) string {
	return Cut(OneLine(cmp.Or(head.Text("description"), firstSentence(body))), MaxDescription)
}

// firstSentence returns the first sentence of a Markdown text that is no heading.
func firstSentence(body string) string {
	for paragraph := range strings.SplitSeq(body, "\n\n") {
		text := OneLine(paragraph)
		if text == "" || strings.HasPrefix(text, "#") && !strings.Contains(paragraph, "\n") {
			continue
		}
		if strings.HasPrefix(text, "#") { // a heading with text right below it
			_, rest, _ := strings.Cut(strings.TrimSpace(paragraph), "\n")
			text = OneLine(rest)
		}
		if end := strings.Index(text, ". "); end >= 0 {
			text = text[:end+1]
		}
		return text
	}
	return ""
}

// OneLine returns a text in one line.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Cut returns at most n bytes of a text, and says by dots that there is more.
func Cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:max(n-3, 0)], "") + "..."
}
