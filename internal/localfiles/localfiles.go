// Package localfiles copies files that git ignores and that work needs, such as .env and local certificates, from the
// user's checkout into lanes and into the directories of checks. The file .worktreeinclude at the root of the
// repository names them, in the syntax of .gitignore. It counts when the user trusts it.
//
// The package keeps these invariants:
//
//   - Only files are copied that git ignores and does not track, and none of the team's state.
//   - What is copied is read once, so the keys in it that are hidden are those that are copied.
//   - No link leads a copy out of the user's checkout, or out of the directory that it is written to. Nothing that is
//     there is replaced.
package localfiles

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"muster"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/paths"
	"muster/internal/redact"
	"muster/internal/secrets"
	"muster/internal/text"
	"muster/internal/trust"
)

// Name is the name of the file that names the others.
const Name = ".worktreeinclude"

const (
	maxPatterns = 64 << 10
	maxNames    = 64 << 20 // bytes of the names that git lists
	maxFiles    = 500
	maxBytes    = 16 << 20 // of all files together
	maxNotes    = 5
)

// Set is the files that are copied, as they were when they were read. A nil Set has none.
type Set struct {
	files []file
	left  []string
}

type file struct {
	name string // with slashes
	mode fs.FileMode
	data []byte
	link string // where a link leads to; "" is a file
}

// Item returns what .worktreeinclude at a root is to trust. ok is false where there is none.
func Item(root string) (item trust.Item, ok bool, err error) {
	data, err := durable.ReadBelow(root, filepath.Join(root, Name), maxPatterns)
	if errors.Is(err, fs.ErrNotExist) {
		return item, false, nil
	}
	if err != nil {
		return item, false, muster.Errorf(muster.Unavailable, "%s cannot be read: %w", Name, err)
	}
	return ItemOf(string(data)), true, nil
}

// ItemOf returns what a .worktreeinclude with this content is to trust.
func ItemOf(content string) trust.Item {
	return trust.Item{Name: "local files", File: Name, Text: content}
}

// Read reads the files that the patterns name in the user's checkout.
func Read(ctx context.Context, repo *git.Repo, patterns string) (*Set, error) {
	names, units, err := find(ctx, repo, patterns)
	if err != nil {
		return nil, muster.Errorf(muster.Unavailable, "the files of %s cannot be listed: %w", Name, err)
	}
	root, err := os.OpenRoot(repo.Root())
	if err != nil {
		return nil, err
	}
	defer root.Close()
	s := &Set{}
	left := int64(maxBytes)
	for _, u := range group(names, units) {
		size := int64(0)
		for _, name := range u.files {
			if info, err := root.Lstat(name); err == nil {
				size += info.Size()
			}
		}
		if len(s.files)+len(u.files) > maxFiles || size > left {
			s.note("%s is not copied: it has %s with %d KB, and at most %d files with %d MB are copied", u.name,
				text.Count(len(u.files), "file"), (size+1023)>>10, maxFiles, maxBytes>>20)
			continue
		}
		for _, name := range u.files {
			f, err := read(root, name, left)
			if err != nil {
				s.note("%s is not copied: %v", name, err)
				continue
			}
			left -= int64(len(f.data))
			s.files = append(s.files, f)
		}
	}
	return s, nil
}

func (s *Set) note(format string, args ...any) {
	if len(s.left) < maxNotes {
		s.left = append(s.left, Name+": "+text.OneLine(fmt.Sprintf(format, args...)))
	}
}

// find returns the files that the patterns name and git ignores, and all untracked files and directories: of a
// directory without tracked files its name and a slash.
func find(ctx context.Context, repo *git.Repo, patterns string) (names, units []string, err error) {
	dir, err := os.MkdirTemp("", "muster-local-")
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = durable.RemoveAll(dir) }()
	list := filepath.Join(dir, Name)
	if err := os.WriteFile(list, []byte(patterns), 0o600); err != nil {
		return nil, nil, err
	}
	ask := func(stdin string, args ...string) ([]string, error) {
		var out bytes.Buffer
		_, err := repo.Do(ctx, git.Call{Dir: repo.Root(), Args: args, Stdin: stdin, Out: &out, MaxOut: maxNames})
		if git.ExitCode(err) == 1 { // of check-ignore: none is ignored
			err = nil
		}
		return git.SplitNUL(out.String()), err
	}
	if names, err = ask("", "ls-files", "-z", "--others", "--ignored", "--exclude-from="+list); err != nil {
		return nil, nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { // a slash ends the name of another repository
		return strings.HasSuffix(name, "/") || paths.IsBelow(name, paths.Excluded)
	})
	if len(names) == 0 {
		return nil, nil, nil
	}
	if names, err = ask(strings.Join(names, "\x00")+"\x00", "check-ignore", "-z", "--stdin"); err != nil {
		return nil, nil, err
	}
	units, err = ask("", "ls-files", "-z", "--others", "--directory")
	return names, units, err
}

// unit is what is copied as a whole or not at all: a file, or a directory without tracked files.
type unit struct {
	name  string
	files []string
}

// group returns the units of the files, those with the fewest files first.
func group(names, units []string) (all []unit) {
	isUnit := map[string]bool{}
	for _, u := range units {
		isUnit[u] = true
	}
	byName := map[string][]string{}
	for _, name := range names {
		of := name
		for at, c := range name {
			if c == '/' && isUnit[name[:at+1]] {
				of = name[:at+1]
				break
			}
		}
		byName[of] = append(byName[of], name)
	}
	for name, files := range byName {
		all = append(all, unit{name, files})
	}
	slices.SortFunc(all, func(a, b unit) int {
		return cmp.Or(len(a.files)-len(b.files), strings.Compare(a.name, b.name))
	})
	return all
}

// read reads a file. A link is copied as a link, if what it names lies in the checkout.
func read(root *os.Root, name string, most int64) (f file, err error) {
	info, err := root.Lstat(name)
	if err != nil {
		return f, err
	}
	f = file{name: name, mode: info.Mode().Perm()}
	if info.Mode()&fs.ModeSymlink != 0 {
		if f.link, err = root.Readlink(name); err != nil {
			return f, err
		}
		to := filepath.FromSlash(f.link)
		if filepath.IsAbs(to) || !filepath.IsLocal(filepath.Join(filepath.Dir(filepath.FromSlash(name)), to)) {
			return f, errors.New("it is a link that leads out of the checkout")
		}
		return f, nil
	}
	if !info.Mode().IsRegular() {
		return f, errors.New("it is no file")
	}
	in, err := root.Open(name)
	if err != nil {
		return f, err
	}
	defer in.Close()
	if f.data, err = io.ReadAll(io.LimitReader(in, most+1)); err == nil && int64(len(f.data)) > most {
		err = errors.New("it has grown")
	}
	return f, err
}

// Names returns the names of the files, with slashes.
func (s *Set) Names() (names []string) {
	if s != nil {
		for _, f := range s.files {
			names = append(names, f.name)
		}
	}
	return names
}

// Left says for people what is named and not copied, and why.
func (s *Set) Left() []string {
	if s == nil {
		return nil
	}
	return s.left
}

// Hash returns a hash of all files, "" where there are none.
func (s *Set) Hash() string {
	if s == nil || len(s.files) == 0 {
		return ""
	}
	sum := sha256.New()
	for _, f := range s.files {
		fmt.Fprintf(sum, "%q %v %q %d\n", f.name, f.mode, f.link, len(f.data))
		sum.Write(f.data)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// Keys returns the values in the files that are credentials, by their names or by their form.
func (s *Set) Keys() (keys []string) {
	if s == nil {
		return nil
	}
	const quotes = " \t\r\"'`,"
	for _, f := range s.files {
		if !utf8.Valid(f.data) || bytes.IndexByte(f.data, 0) >= 0 {
			continue
		}
		keys = append(keys, secrets.Keys(f.name, f.data)...)
		keys = append(keys, redact.InText(string(f.data))...)
		for line := range strings.Lines(string(f.data)) {
			line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
			for _, sign := range []string{"=", ":"} {
				name, value, ok := strings.Cut(line, sign)
				if !ok {
					continue
				}
				value, _, _ = strings.Cut(value, " #")
				value = strings.Trim(value, quotes)
				keys = append(keys, redact.FromEnviron([]string{strings.Trim(name, quotes) + "=" + value})...)
			}
		}
	}
	return keys
}

// Put writes the files into a directory, and returns the names of those that it has written. A file that is there
// stays. The error is the first one; the other files are written all the same.
func (s *Set) Put(dir string) (written []string, err error) {
	if s == nil || len(s.files) == 0 {
		return nil, nil
	}
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return nil, muster.Errorf(muster.Unavailable, "%s is no directory", dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for _, f := range s.files {
		switch putErr := put(root, f); {
		case putErr == nil:
			written = append(written, f.name)
		case !errors.Is(putErr, fs.ErrExist):
			err = cmp.Or(err, putErr)
		}
	}
	return written, err
}

func put(root *os.Root, f file) error {
	if err := root.MkdirAll(path.Dir(f.name), 0o755); err != nil {
		return err
	}
	if f.link != "" {
		return root.Symlink(f.link, f.name)
	}
	out, err := root.OpenFile(f.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.mode|0o600)
	if err != nil {
		return err
	}
	_, err = out.Write(f.data)
	return errors.Join(err, out.Close())
}

// Remove removes files that Put has written, and the directories that are empty without them.
func Remove(dir string, written []string) (err error) {
	if len(written) == 0 {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range written {
		if removeErr := root.RemoveAll(name); removeErr != nil {
			err = cmp.Or(err, removeErr)
			continue
		}
		for at := path.Dir(name); at != "." && root.Remove(at) == nil; at = path.Dir(at) {
		}
	}
	return err
}
