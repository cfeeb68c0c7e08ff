//go:build unix

package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"muster/internal/testing/require"
	"muster/internal/testing/tier"
)

// newPlanted makes a directory "outside" with the file "victim", and beside it a root, which is reached through a link,
// with what people may plant in a repository.
func newPlanted(t *testing.T) (root, outside string) {
	t.Helper()
	dir := t.TempDir()
	real := filepath.Join(dir, "real")
	root, outside = filepath.Join(dir, "root"), filepath.Join(dir, "outside")
	victim := filepath.Join(outside, "victim")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(real, "state", "deep"), 0o700), os.Mkdir(outside, 0o700), os.Symlink(real, root),
		os.WriteFile(victim, []byte("secret\n"), 0o600),
		os.WriteFile(filepath.Join(real, "state", "good"), []byte("{}\n"), 0o600),
		os.Symlink(victim, filepath.Join(real, "state", "link")),
		os.Symlink("good", filepath.Join(real, "state", "inner")),
		os.Symlink(filepath.Join(outside, "new"), filepath.Join(real, "state", "dangling")),
		os.Symlink(outside, filepath.Join(real, "dir")),
		os.Symlink("../state/deep", filepath.Join(real, "state", "indir")),
		os.Link(victim, filepath.Join(real, "state", "hard")),
		syscall.Mkfifo(filepath.Join(real, "state", "pipe"), 0o600),
	} {
		require.NoError(t, err)
	}
	return root, outside
}

// A pipe in the place of a directory is not waited for.
func TestDirs(t *testing.T) {
	root, _ := newPlanted(t)
	r := require.Value(os.OpenRoot(root))(t)
	defer r.Close()
	for name, want := range map[string]error{"state": nil, "state/pipe": syscall.ENOTDIR, "state/good": syscall.ENOTDIR} {
		f, err := Dirs{r}.Open(name)
		if err == nil {
			_ = f.Close()
		}
		if !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Below a root nothing that leads elsewhere is opened, in whichever way and on whichever system.
func TestOpenBelowTheRoot(t *testing.T) {
	root, outside := newPlanted(t)
	real := require.Value(filepath.EvalSymlinks(root))(t)
	for name, want := range map[string]error{
		"state/good": nil, "state/link": ErrLink, "state/inner": ErrLink, "state/dangling": ErrLink,
		"dir/victim": ErrLink, "state/indir/new": ErrLink, "state/hard": ErrLinked, "state/pipe": ErrNotRegular,
		"state": ErrNotRegular, "state/none": fs.ErrNotExist,
	} {
		for _, top := range []string{root, real} {
			for _, flag := range []int{os.O_RDONLY, os.O_RDWR | os.O_APPEND, os.O_RDWR | os.O_CREATE} {
				f, err := OpenBelow(top, filepath.Join(top, name), flag, 0o600)
				is := errors.Is(err, want)
				if errors.Is(want, fs.ErrNotExist) && flag&os.O_CREATE != 0 {
					is = err == nil && os.Remove(f.Name()) == nil
				} else if errors.Is(want, ErrNotRegular) {
					is = ConcernsOneFile(err)
				}
				if !is {
					t.Errorf("%s with %x: %v, want %v", name, flag, err, want)
				}
				if err == nil {
					_ = f.Close()
				}
			}
		}
		o := OS{Root: real}
		f, err := o.openStepwise(filepath.FromSlash(name), filepath.Join(real, name), os.O_RDONLY|openNonblock, 0)
		if errors.Is(want, ErrLink) && !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("step by step, %s: %v, want %v", name, err, want)
		}
		if err == nil {
			_ = f.Close()
		}
	}
	for _, name := range []string{outside + "/victim", real + "/../outside/victim", real + "x"} {
		if _, err := OpenBelow(real, name, os.O_RDONLY, 0); !errors.Is(err, errOutside) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 1 {
		t.Errorf("outside there is %v, %v", left, err)
	}
}

// No method of Files changes anything through a link, or a file with a second name.
func TestWriteBelowTheRoot(t *testing.T) {
	root, outside := newPlanted(t)
	files := New(OS{Root: root})
	at := func(name string) string { return filepath.Join(root, name) }
	doc := []byte("{}\n")
	for what, do := range map[string]func() error{
		"replace": func() error { return files.Replace(at("dir/victim"), doc) },
		"create":  func() error { return files.Create(at("dir/new"), doc) },
		"inner":   func() error { return files.Replace(at("state/indir/new"), doc) },
		"append":  func() error { _, err := files.Append(at("dir/victim"), doc); return err },
		"link":    func() error { _, err := files.Append(at("state/link"), doc); return err },
		"linked":  func() error { _, err := files.Append(at("state/hard"), doc); return err },
		"new":     func() error { _, err := files.Append(at("state/dangling"), doc); return err },
		"remove":  func() error { return files.Remove(at("dir/victim")) },
		"from":    func() error { return files.Rename(at("dir/victim"), at("state/taken")) },
		"to":      func() error { return files.Rename(at("state/good"), at("dir/victim")) },
		"cut":     func() error { return files.Truncate(at("state/link"), 0) },
		"cut2":    func() error { return files.Truncate(at("state/hard"), 0) },
		"mkdir":   func() error { return files.MakeDir(at("dir/below")) },
		"lock":    func() error { _, err := files.TryLock(at("state/link")); return err },
		"lock2":   func() error { _, err := files.TryLock(at("state/hard")); return err },
		"lock3":   func() error { _, err := files.TryLock(at("dir/new.lock")); return err },
		"names":   func() error { _, err := files.FS().Names(at("dir")); return err },
		"outside": func() error { return files.Replace(filepath.Join(outside, "victim"), doc) },
	} {
		if err := do(); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	data, err := os.ReadFile(filepath.Join(outside, "victim"))
	left, _ := os.ReadDir(outside)
	if err != nil || string(data) != "secret\n" || len(left) != 1 {
		t.Errorf("outside there is %v with %q, %v", left, data, err)
	}
	// A name that is replaced or removed does nothing to what it led to.
	for _, name := range []string{"state/link", "state/hard"} {
		if err := errors.Join(files.Replace(at(name), doc), files.Remove(at(name))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if data, err := os.ReadFile(filepath.Join(outside, "victim")); err != nil || string(data) != "secret\n" {
		t.Errorf("the victim has %q, %v", data, err)
	}
}

// A file that Create has just linked is whole, also when its process was killed before it removed the first name.
func TestStagedNameIsNoSecondName(t *testing.T) {
	root := t.TempDir()
	files, path := New(OS{Root: root}), filepath.Join(root, "doc.json")
	s, err := files.Stage(path, []byte("{}\n"))
	if err == nil {
		err = os.Link(s.temp, path)
	}
	require.NoError(t, err)
	if _, _, err := files.ReadFile(path); err != nil {
		t.Errorf("after a kill: %v", err)
	}
	// Where others may write, no directory is searched for the other name: it may have any number of files.
	if _, err := ReadBelow(root, path, 10); !errors.Is(err, ErrLinked) {
		t.Errorf("where others may write: %v", err)
	}
	require.NoError(t, os.Link(path, filepath.Join(root, "other")))
	if _, _, err := files.ReadFile(path); !errors.Is(err, ErrLinked) {
		t.Errorf("with a third name: %v", err)
	}
}

// A file above its limit is not read, however little room it takes on the disk.
func TestReadsAreBounded(t *testing.T) {
	root := t.TempDir()
	files, path := New(OS{Root: root}), filepath.Join(root, "big")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40)); err != nil {
		tier.Missing(t, "the file system has no files with holes: "+err.Error())
	}
	if _, _, err := files.ReadFile(path); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "16 MiB") {
		t.Errorf("%v", err)
	}
	require.NoError(t, os.Truncate(path, MaxFile))
	if data, _, err := files.ReadFile(path); err != nil || len(data) != MaxFile {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	if _, err := ReadBelow(root, path, 10); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%v", err)
	}
	if err := files.Replace(path, make([]byte, MaxFile+1)); err == nil {
		t.Error("what could not be read again was written")
	}
}
