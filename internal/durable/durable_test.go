package durable_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"muster"
	"muster/internal/durable"
	"muster/internal/testing/require"
	"muster/internal/testing/simfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// disk is the real file system with faults, and a list of the changes that were made.
type disk struct {
	mu    sync.Mutex
	done  []string
	fault func(op simfs.Kind, name string) error // nil: there is none
}

func (d *disk) fs() durable.FS {
	return simfs.Tap{FS: durable.OS{}, Ask: func(op simfs.Kind, name string) error {
		if op == simfs.Open || op == simfs.Lock || op == simfs.Truncate {
			return nil
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		base := filepath.Base(name)
		if durable.IsTemporary(base) {
			base = "temp"
		}
		d.done = append(d.done, string(op)+" "+base)
		if d.fault == nil {
			return nil
		}
		return d.fault(op, name)
	}}
}

// did returns what was done so far, and forgets it.
func (d *disk) did() string {
	done := strings.Join(d.done, ", ")
	d.done = nil
	return done
}

func content(t *testing.T, path string) string {
	t.Helper()
	return string(require.Value(os.ReadFile(path))(t))
}

func TestOrder(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(f *durable.Files, path string) error
		want string
	}{
		{
			"replace",
			func(f *durable.Files, path string) error { return f.Replace(path, []byte("x")) },
			"create temp, write temp, sync temp, rename x.json, sync directory d",
		},
		{
			"create",
			func(f *durable.Files, path string) error { return f.Create(path, []byte("x")) },
			"create temp, write temp, sync temp, link x.json, remove temp, sync directory d",
		},
		{
			"append", func(f *durable.Files, path string) error { _, err := f.Append(path, []byte("x")); return err },
			"create x.json, sync directory d, write x.json, sync x.json",
		},
		{
			"truncate", func(f *durable.Files, path string) error {
				return errors.Join(os.WriteFile(path, []byte("xy"), 0o600), f.Truncate(path, 1))
			},
			"sync x.json",
		},
		{
			"remove", func(f *durable.Files, path string) error {
				return errors.Join(os.WriteFile(path, []byte("xy"), 0o600), f.Remove(path))
			},
			"remove x.json, sync directory d",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var disk disk
			dir := filepath.Join(t.TempDir(), "d")
			require.NoError(t, os.Mkdir(dir, 0o700))
			require.NoError(t, c.do(durable.New(disk.fs()), filepath.Join(dir, "x.json")))
			if got := disk.did(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Who made a state directory, or an empty log in it, may have been killed before its sync: the next process does it,
// once, before it writes.
func TestWhatAKilledProcessMadeIsMadeDurable(t *testing.T) {
	var disk disk
	root := t.TempDir()
	dir := filepath.Join(root, ".state", "alice")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x.jsonl"), nil, 0o600))
	f := durable.New(disk.fs())
	for range 2 {
		require.Value(f.Append(filepath.Join(dir, "x.jsonl"), []byte("x")))(t)
	}
	require.NoError(t, f.MakeDir(dir))
	want := fmt.Sprintf("sync directory .state, sync directory %s, sync directory alice, write x.jsonl, sync x.jsonl, write x.jsonl, sync x.jsonl", filepath.Base(root))
	if got := disk.did(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestDirectoriesAreMadeDurable(t *testing.T) {
	var disk disk
	root := t.TempDir()
	path := filepath.Join(root, "a", "b", "x.json")
	require.NoError(t, durable.New(disk.fs()).Replace(path, []byte("x")))
	want := fmt.Sprintf("create temp, mkdir b, mkdir a, sync directory %s, mkdir b, sync directory a, create temp",
		filepath.Base(root))
	if got := disk.did(); !strings.HasPrefix(got, want) {
		t.Errorf("got  %s\nwant %s ...", got, want)
	}
	if runtime.GOOS != "windows" {
		for name, mode := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): 0o700,
			filepath.Join(root, "a"): 0o700} {
			fi := require.Value(os.Stat(name))(t)
			if fi.Mode().Perm() != mode {
				t.Errorf("%s has %v, want %v", name, fi.Mode().Perm(), mode)
			}
		}
	}
}

func TestReplaceAndCreate(t *testing.T) {
	f := durable.New(durable.OS{})
	dir := t.TempDir()
	path := filepath.Join(dir, "x.json")
	require.NoError(t, f.Create(path, []byte("one")))
	if err := f.Create(path, []byte("two")); !errors.Is(err, muster.ErrStale) {
		t.Errorf("creating what exists: %v", err)
	}
	if got := content(t, path); got != "one" {
		t.Errorf("it says %q", got)
	}
	require.NoError(t, f.Replace(path, []byte("three")))
	if got := content(t, path); got != "three" {
		t.Errorf("it says %q", got)
	}
	require.NoError(t, f.Remove(path))
	require.NoError(t, f.Remove(path))
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// A failed sync ends all writing of this process, is never tried again, and says so.
func TestFailedSync(t *testing.T) {
	for _, op := range []simfs.Kind{simfs.Sync, simfs.SyncDir} {
		for name, do := range writers() {
			t.Run(string(op)+" "+name, func(t *testing.T) {
				var disk disk
				f := durable.New(disk.fs())
				dir := t.TempDir()
				path := filepath.Join(dir, "x.json")
				failures := 0
				disk.fault = func(o simfs.Kind, _ string) error {
					if o == op {
						failures++
						return syscall.EIO
					}
					return nil
				}
				first := do(f, path)
				if !errors.Is(first, muster.ErrUnavailable) || !strings.Contains(first.Error(), "writing has ended") {
					t.Fatalf("the error is %v", first)
				}
				if failures != 1 {
					t.Errorf("synced %d times", failures)
				}
				disk.fault, disk.done = nil, nil
				for name, again := range writers() {
					if err := again(f, filepath.Join(dir, "y.json")); err == nil || err.Error() != first.Error() {
						t.Errorf("%s afterwards: %v", name, err)
					}
				}
				if len(disk.done) > 0 {
					t.Errorf("after the end it did %v", disk.done)
				}
				if f.Ended() == nil {
					t.Error("the end is not told")
				}
			})
		}
	}
}

func writers() map[string]func(f *durable.Files, path string) error {
	return map[string]func(f *durable.Files, path string) error{
		"replace": func(f *durable.Files, path string) error { return f.Replace(path, []byte("x")) },
		"create":  func(f *durable.Files, path string) error { return f.Create(path, []byte("x")) },
		"append":  func(f *durable.Files, path string) error { _, err := f.Append(path, []byte("x")); return err },
	}
}

func TestAppend(t *testing.T) {
	f := durable.New(durable.OS{})
	path := filepath.Join(t.TempDir(), "x.jsonl")
	var want string
	for _, line := range []string{`{"a":1}`, strings.Repeat("x", 200_000), ``, `{"b":2}`} {
		end := require.Value(f.Append(path, []byte(line)))(t)
		if want += line + "\n"; end != int64(len(want)) {
			t.Errorf("the end is %d, want %d", end, len(want))
		}
	}
	if content(t, path) != want {
		t.Error("it says something else")
	}
}

// Wherever a write is torn, the rest of it is moved aside and its neighbours stay.
func TestTornTail(t *testing.T) {
	f := durable.New(durable.OS{})
	line := `{"a":"some text"}`
	for n := range len(line) + 1 {
		path := filepath.Join(t.TempDir(), "x.jsonl")
		require.NoError(t, os.WriteFile(path, []byte("{}\n"+line[:n]), 0o600))
		end := require.Value(f.Append(path, []byte(`{"b":1}`)))(t)
		if got := content(t, path); got != "{}\n{\"b\":1}\n" || end != int64(len(got)) {
			t.Fatalf("torn at %d: %q, end %d", n, got, end)
		}
		if n > 0 {
			if got := content(t, path+".torn"); got != line[:n]+"\n" {
				t.Fatalf("torn at %d: aside is %q", n, got)
			}
		}
	}
}

func TestShortWriteIsCutOff(t *testing.T) {
	var disk disk
	f := durable.New(disk.fs())
	path := filepath.Join(t.TempDir(), "x.jsonl")
	_, err := f.Append(path, []byte("one"))
	require.NoError(t, err)
	disk.fault = func(op simfs.Kind, _ string) error {
		if op == simfs.Write {
			disk.fault = nil
			return simfs.Short{Err: syscall.ENOSPC}
		}
		return nil
	}
	_, err = f.Append(path, []byte("two"))
	if !errors.Is(err, muster.ErrUnavailable) || !strings.Contains(err.Error(), "full") {
		t.Errorf("the error is %v", err)
	}
	if got := content(t, path); got != "one\n" {
		t.Errorf("it says %q", got)
	}
	_, err = f.Append(path, []byte("three"))
	require.NoError(t, err)
	if got := content(t, path); got != "one\nthree\n" {
		t.Errorf("it says %q", got)
	}
}

func TestFailedWriteLeavesNothing(t *testing.T) {
	var disk disk
	f := durable.New(disk.fs())
	dir := t.TempDir()
	path := filepath.Join(dir, "x.json")
	require.NoError(t, f.Replace(path, []byte("old")))
	for _, op := range []simfs.Kind{simfs.Create, simfs.Write, simfs.Rename} {
		disk.fault = func(o simfs.Kind, _ string) error {
			if o == op {
				return syscall.EACCES
			}
			return nil
		}
		err := f.Replace(path, []byte("new"))
		var e *muster.Error
		if !errors.As(err, &e) || e.Code != muster.Unavailable || !strings.Contains(e.Message, dir) || e.Hint == "" {
			t.Errorf("%s refused: %#v", op, err)
		}
		if got := content(t, path); got != "old" {
			t.Errorf("%s refused: it says %q", op, got)
		}
		if left, _ := os.ReadDir(dir); len(left) != 1 {
			t.Errorf("%s refused: %v is left", op, left)
		}
	}
	disk.fault = nil
	require.NoError(t, f.Replace(path, []byte("new"))) // a refused write is no end of writing
}

func TestRenameOverDirectories(t *testing.T) {
	var disk disk
	f := durable.New(disk.fs())
	root := t.TempDir()
	from, to := filepath.Join(root, "a", "x"), filepath.Join(root, "b", "y")
	require.NoError(t, f.Replace(from, []byte("x")))
	require.NoError(t, f.MakeDir(filepath.Dir(to)))
	disk.done = nil
	require.NoError(t, f.Rename(from, to))
	if got, want := disk.did(), "rename y, sync directory b, sync directory a"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if err := f.Rename(from, to); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is not there: %v", err)
	}
}

func TestLockExcludes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks", "x.lock")
	var inside, most int
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 3 { // each as another process
		f := durable.New(durable.OS{})
		for range 4 {
			all.Go(func() {
				for range 20 {
					unlock, err := f.Lock(t.Context(), path)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					inside++
					most = max(most, inside)
					mu.Unlock()
					runtime.Gosched()
					mu.Lock()
					inside--
					mu.Unlock()
					unlock()
				}
			})
		}
	}
	all.Wait()
	if most != 1 {
		t.Errorf("%d had it at once", most)
	}
	if got := content(t, path); got != fmt.Sprintln(os.Getpid()) {
		t.Errorf("the lock file says %q", got)
	}
}

func TestLockEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	mine, other := durable.New(durable.OS{}), durable.New(durable.OS{})
	unlock := require.Value(mine.Lock(t.Context(), path))(t)
	for name, f := range map[string]*durable.Files{"this process": mine, "another": other} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, err := f.Lock(ctx, path)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
	}
	unlock()
	for _, f := range []*durable.Files{mine, other} {
		again := require.Value(f.Lock(t.Context(), path))(t)
		again()
	}
}

func TestTryLock(t *testing.T) {
	f := durable.New(durable.OS{})
	path := filepath.Join(t.TempDir(), "locks", "x.lock")
	taken := require.Value(f.Locked(path))(t)
	if _, err := os.Stat(filepath.Dir(path)); taken || err == nil {
		t.Error("asking made something, or found what is not there")
	}
	unlock := require.Value(f.TryLock(path))(t)
	if _, err := f.TryLock(path); !errors.Is(err, muster.ErrHeld) {
		t.Errorf("a second one: %v", err)
	}
	if taken, err := f.Locked(path); err != nil || !taken {
		t.Errorf("held: %v %v", taken, err)
	}
	require.NoError(t, unlock())
	if taken, err := f.Locked(path); err != nil || taken {
		t.Errorf("given back: %v %v", taken, err)
	}
}

// lax is a file system whose locks exclude nobody.
type lax struct{ durable.OS }

func (l lax) TryLock(name string, _ durable.LockMode) (durable.Locked, error) {
	return l.OS.TryLock(name, durable.Shared)
}

func TestProbeLocks(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, durable.New(durable.OS{}).ProbeLocks(dir))
	err := durable.New(lax{}).ProbeLocks(dir)
	if !errors.Is(err, muster.ErrUnavailable) || !strings.Contains(err.Error(), dir) {
		t.Errorf("locks that exclude nobody: %v", err)
	}
}

// Another process can make a file in the instant in which this one is about to, and write to it, and be killed before
// its name is durable. So the name is synced by whoever may have made the file, however long it is.
func TestTheNameOfAFileThatTwoMakeIsSynced(t *testing.T) {
	var disk disk
	path := filepath.Join(t.TempDir(), "x.jsonl")
	files := durable.New(disk.fs())
	require.NoError(t, files.MakeDir(filepath.Dir(path)))
	disk.done, disk.fault = nil, func(op simfs.Kind, name string) error {
		if op == simfs.Create {
			return os.WriteFile(name, []byte("theirs\n"), 0o600)
		}
		return nil
	}
	tail := require.Value(files.OpenTail(path))(t)
	defer func() { require.NoError(t, tail.Close()) }()
	want, got := "create x.jsonl, sync directory "+filepath.Base(filepath.Dir(path)), disk.did()
	if tail.End() != int64(len("theirs\n")) || got != want {
		t.Errorf("of a file of %d bytes, what was done is %q, want %q", tail.End(), got, want)
	}
}
