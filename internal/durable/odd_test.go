//go:build unix

package durable_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster"
	"muster/internal/durable"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
)

// What has a file's name and is none waits for nobody, is not written to, and concerns itself alone.
func TestWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, errors.Join(os.Mkdir(path("directory"), 0o700), syscall.Mkfifo(path("pipe"), 0o600),
		os.Symlink("loop", path("loop")), os.Symlink(os.DevNull, path("device"))))
	t.Chdir(dir) // a socket's path is short
	l := require.Value(net.Listen("unix", "socket"))(t)
	defer l.Close()
	files := durable.New(durable.OS{})
	for _, name := range []string{"directory", "pipe", "socket", "device", "loop"} {
		_, _, err := files.ReadFile(path(name))
		if !durable.ConcernsOneFile(err) {
			t.Errorf("%s was read: %v", name, err)
		}
		err = durable.Unreadable(durable.OS{}, path(name), err)
		if !errors.Is(err, muster.ErrCorrupt) || !strings.Contains(err.Error(), "move it away") {
			t.Errorf("%s: %v", name, err)
		}
		for _, flag := range []int{os.O_RDONLY, os.O_WRONLY, os.O_RDWR | os.O_APPEND} {
			if f, err := (durable.OS{}).OpenFile(path(name), flag, 0); !durable.ConcernsOneFile(err) {
				t.Errorf("%s was opened (%x): %v %v", name, flag, f, err)
			}
		}
		if _, err := files.OpenTail(path(name)); !errors.Is(err, muster.ErrUnavailable) {
			t.Errorf("%s was appended to: %v", name, err)
		}
		if _, err := files.TryLock(path(name)); !errors.Is(err, muster.ErrUnavailable) {
			t.Errorf("%s was locked: %v", name, err)
		}
	}
	if err := durable.Unreadable(durable.OS{}, path("x"), syscall.EIO); !errors.Is(err, muster.ErrUnavailable) {
		t.Errorf("a disk that fails is one file's trouble: %v", err)
	}
}

// What root makes is the directory's owner's.
func TestRootHandsOver(t *testing.T) {
	if os.Geteuid() != 0 {
		tier.Missing(t, "only root can give a file away")
	}
	dir := filepath.Join(t.TempDir(), "of")
	require.NoError(t, errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, 65534, 65534)))
	files := durable.New(durable.OS{})
	path := func(name string) string { return filepath.Join(dir, "made", name) }
	require.NoError(t, files.Replace(path("replaced"), []byte("{}")))
	require.Value(files.Append(path("appended"), []byte("{}")))(t)
	unlock := require.Value(files.TryLock(path("lock")))(t)
	require.NoError(t, unlock())
	for _, name := range []string{"", "replaced", "appended", "lock"} {
		fi, err := os.Stat(path(name))
		if err != nil || fi.Sys().(*syscall.Stat_t).Uid != 65534 {
			t.Errorf("%q is not the owner's: %v", name, err)
		}
	}
}

// What other programs of root have made goes to the owner of the directory, but for what may be another file of root's
// and for directories that are left out.
func TestGiveToOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		tier.Missing(t, "only root can give a file away")
	}
	base := t.TempDir()
	dir := filepath.Join(base, "git")
	require.NoError(t, errors.Join(os.MkdirAll(filepath.Join(dir, "refs", "heads"), 0o700), os.MkdirAll(filepath.Join(dir, "others", "in"), 0o700),
		os.WriteFile(filepath.Join(dir, "refs", "heads", "main"), nil, 0o400), os.WriteFile(filepath.Join(base, "passwords"), nil, 0o600),
		os.Link(filepath.Join(base, "passwords"), filepath.Join(dir, "second name")), os.Symlink(filepath.Join(base, "passwords"), filepath.Join(dir, "link")),
		syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600), os.Lchown(dir, 65534, 65534)))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "older"), nil, 0o600))
	require.NoError(t, os.Chtimes(filepath.Join(dir, "older"), time.Unix(1, 0), time.Unix(1, 0)))
	durable.GiveToOwner(dir, time.Now(), "others")
	for name, isGiven := range map[string]bool{"git/refs": true, "git/refs/heads": true, "git/refs/heads/main": true,
		"passwords": false, "git/second name": false, "git/link": false, "git/pipe": false, "git/others": false, "git/older": false, "git/others/in": false} {
		fi := require.Value(os.Lstat(filepath.Join(base, name)))(t)
		if got := fi.Sys().(*syscall.Stat_t).Uid == 65534; got != isGiven {
			t.Errorf("%s is the owner's: %v", name, got)
		}
	}
}

// Glob finds what lies below a directory whatever that is called, links to nothing and odd names too.
func TestGlob(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "[a-z]*")
	for _, name := range []string{"one/x.json", "two/x.json", "two/y.txt"} {
		require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700),
			os.WriteFile(filepath.Join(dir, name), nil, 0o600)))
	}
	want := []string{"one/x.json", "two/x.json"}
	require.NoError(t, os.Symlink(filepath.Join(dir, "nothing"), filepath.Join(dir, "meta.json")))
	if os.Mkdir(filepath.Join(dir, "w\xe9"), 0o700) == nil && // where the file system takes such names
		os.WriteFile(filepath.Join(dir, "w\xe9", "x.json"), nil, 0o600) == nil {
		want = append(want, "w\xe9/x.json")
	}
	for pattern, want := range map[string][]string{"*/*.json": want, "meta.json": {"meta.json"}, "none/*": nil} {
		var got []string
		for _, path := range durable.Glob(dir, pattern) {
			rel, _ := filepath.Rel(dir, path)
			got = append(got, filepath.ToSlash(rel))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s finds %q, want %q", pattern, got, want)
		}
	}
}
