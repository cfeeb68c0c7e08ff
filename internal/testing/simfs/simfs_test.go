package simfs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"muster/internal/durable"
	"muster/internal/testing/require"
	"muster/internal/testing/simfs"
)

// left are the contents of x.json over all crashes; "-" where there is none.
func left(f *simfs.FS, o simfs.Options) []string {
	seen := map[string]bool{}
	for c := range f.Crashes(o) {
		data := "-"
		disk := c.FS()
		if fi, err := disk.Stat("/d/x.json"); err == nil {
			file, _ := disk.OpenFile("/d/x.json", os.O_RDONLY, 0)
			b := make([]byte, fi.Size())
			_, _ = file.Read(b) // an empty file has nothing to read
			data = strings.ReplaceAll(string(b), "\x00", "0")
		}
		seen[data] = true
	}
	var all []string
	for s := range seen {
		all = append(all, s)
	}
	slices.Sort(all)
	return all
}

func write(t testing.TB, f durable.FS, name, data string) {
	t.Helper()
	file, err := f.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	require.NoError(t, err)
	_, err = file.Write([]byte(data))
	require.NoError(t, err)
	require.NoError(t, file.Close())
}

// What may be left is what the model says, no more and no less.
func TestWhatIsLeft(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(t *testing.T, f *simfs.FS)
		want string
	}{
		{"a new file", func(t *testing.T, f *simfs.FS) { write(t, f, "/d/x.json", "ab") }, " - 00 0b a a0 ab"},
		{"an append", func(t *testing.T, f *simfs.FS) {
			write(t, f, "/d/x.json", "A")
			f.Settle()
			write(t, f, "/d/x.json", "b")
			write(t, f, "/d/x.json", "c")
		}, "A A0 A00 A0c Ab Ab0 Abc"},
		{"a rename without a sync", func(t *testing.T, f *simfs.FS) {
			write(t, f, "/d/x.json", "A")
			f.Settle()
			write(t, f, "/d/temp", "B")
			require.NoError(t, f.Rename("/d/temp", "/d/x.json"))
		}, " 0 A B"},
		{"replace", func(t *testing.T, f *simfs.FS) {
			files := durable.New(f)
			require.NoError(t, files.Replace("/d/x.json", []byte("A")))
			f.Settle()
			require.NoError(t, files.Replace("/d/x.json", []byte("B")))
		}, "A B"},
		{"create", func(t *testing.T, f *simfs.FS) { require.NoError(t, durable.New(f).Create("/d/x.json", []byte("A"))) }, "- A"},
		{"a move to another directory", func(t *testing.T, f *simfs.FS) {
			write(t, f, "/d/x.json", "A")
			require.NoError(t, f.Mkdir("/e", 0o700))
			f.Settle()
			require.NoError(t, f.Rename("/d/x.json", "/e/y.json"))
		}, "- A"},
		{"a removal", func(t *testing.T, f *simfs.FS) {
			write(t, f, "/d/x.json", "A")
			f.Settle()
			require.NoError(t, f.Remove("/d/x.json"))
			write(t, f, "/d/x.json", "B")
		}, " - 0 A B"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := simfs.New()
			require.NoError(t, f.Mkdir("/d", 0o700))
			f.Settle()
			c.do(t, f)
			if got := strings.Join(left(f, simfs.Options{}), " "); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// What was synced is there in every crash from then on.
func TestSyncedStays(t *testing.T) {
	f := simfs.New()
	_, err := durable.New(f).Append("/a/b/x.jsonl", []byte("A"))
	require.NoError(t, err)
	n := 0
	for c := range f.Crashes(simfs.Options{From: f.Calls()}) {
		n++
		if fi, err := c.FS().Stat("/a/b/x.jsonl"); err != nil || fi.Size() != 2 {
			t.Errorf("%v %v after\n%v", fi, err, c)
		}
	}
	if n != 1 {
		t.Errorf("%d states where everything is synced", n)
	}
}

// Each of many updates is left out, and had, alone.
func TestManyUpdates(t *testing.T) {
	f := simfs.New()
	for i := range 12 {
		require.NoError(t, f.Mkdir(fmt.Sprintf("/%d", i), 0o700))
	}
	seen := map[string]bool{}
	for c := range f.Crashes(simfs.Options{From: 12}) {
		entries, _ := c.FS().ReadDir("/")
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		seen[strings.Join(names, " ")] = true
	}
	all := "0 1 10 11 2 3 4 5 6 7 8 9"
	for i := range 12 {
		out := strings.Fields(all)
		out = slices.DeleteFunc(out, func(s string) bool { return s == fmt.Sprint(i) })
		if !seen[fmt.Sprint(i)] || !seen[strings.Join(out, " ")] {
			t.Errorf("%d: alone %v, left out %v", i, seen[fmt.Sprint(i)], seen[strings.Join(out, " ")])
		}
	}
	if !seen[""] || !seen[all] {
		t.Error("none or all is missing")
	}
}

// The simulated file system answers as the real one does.
func TestLikeTheRealOne(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("its errors are others")
	}
	errs := []error{syscall.ENOENT, syscall.EEXIST, syscall.ENOTDIR, syscall.ENOTEMPTY, syscall.EISDIR}
	word := func(err error) string {
		for _, e := range errs {
			if errors.Is(err, e) {
				return e.Error()
			}
		}
		return fmt.Sprint(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		root, err := os.MkdirTemp("", "simfs")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(root)
		var sim durable.FS = simfs.New()
		names := []string{"a", "b", "d/a", "d/b", "e/a", "a/x"}
		name := rapid.SampledFrom(names)
		do := func(f durable.FS, at string, op int, x, y, text string, size int64) string {
			x, y = filepath.Join(at, x), filepath.Join(at, y)
			switch op {
			case 0, 1:
				flags := []int{os.O_APPEND, os.O_EXCL, os.O_TRUNC}
				file, err := f.OpenFile(x, os.O_RDWR|os.O_CREATE|flags[size%3], 0o600)
				if err != nil {
					return word(err)
				}
				defer file.Close()
				n, err := file.Write([]byte(text))
				b := make([]byte, 5)
				m, e := file.ReadAt(b, 0)
				at, _ := file.Seek(0, 1)
				return fmt.Sprint(n, word(err), string(b[:m]), word(e), at)
			case 2:
				return word(f.Rename(x, y))
			case 3:
				return word(f.Link(x, y))
			case 4:
				return word(f.Remove(x))
			case 5:
				return word(f.Truncate(x, size))
			case 6:
				fi, err := f.Stat(x)
				if err != nil {
					return word(err)
				}
				if fi.IsDir() {
					return fi.Mode().String()
				}
				return fmt.Sprint(fi.Name(), fi.Size(), fi.Mode())
			case 7:
				return word(f.Mkdir(filepath.Dir(x)+"/"+filepath.Base(x), 0o700))
			default:
				out, err := f.Names(filepath.Dir(x))
				slices.Sort(out)
				return word(err) + strings.Join(out, " ")
			}
		}
		for _, d := range []string{"d", "e"} {
			if a, b := sim.Mkdir("/"+d, 0o700), os.Mkdir(filepath.Join(root, d), 0o700); a != nil || b != nil {
				t.Fatal(a, b)
			}
		}
		for range rapid.IntRange(1, 30).Draw(t, "n") {
			op := rapid.IntRange(0, 8).Draw(t, "op")
			x, y := name.Draw(t, "x"), name.Draw(t, "y")
			text, size := rapid.StringN(1, 4, 4).Draw(t, "text"), rapid.Int64Range(0, 9).Draw(t, "size")
			if op == 2 || op == 3 || op == 5 { // what a directory answers there is not the state's concern
				if a, err := sim.Stat("/" + x); err == nil && a.IsDir() {
					continue
				}
				if b, err := sim.Stat("/" + y); err == nil && b.IsDir() {
					continue
				}
			}
			a, b := do(sim, "/", op, x, y, text, size), do(durable.OS{}, root, op, x, y, text, size)
			if a != b {
				t.Fatalf("op %d of %s, %s: %q, the real one %q", op, x, y, a, b)
			}
		}
	})
}

func TestLocks(t *testing.T) {
	f := simfs.New()
	require.NoError(t, durable.New(f).ProbeLocks("/locks"))
	if _, err := f.TryLock("/locks/x", durable.Shared); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a lock file that nobody made: %v", err)
	}
	one, err := f.TryLock("/locks/x", durable.Exclusive)
	require.NoError(t, err)
	if _, err := f.TryLock("/locks/x", durable.Shared); !errors.Is(err, durable.ErrLocked) {
		t.Errorf("held: %v", err)
	}
	require.NoError(t, one.Close())
	a, err := f.TryLock("/locks/x", durable.Shared)
	require.NoError(t, err)
	b, err := f.TryLock("/locks/x", durable.Shared)
	require.NoError(t, err)
	if _, err := f.TryLock("/locks/x", durable.Exclusive); !errors.Is(err, durable.ErrLocked) {
		t.Errorf("shared: %v", err)
	}
	require.NoError(t, errors.Join(a.Close(), b.Close()))
}
