package file

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"muster"
)

// failer is what tests and rapid's checks have in common.
type failer interface {
	Helper()
	Fatal(args ...any)
}

// must ends the test if something failed.
func must(t failer, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// did returns the error of a call whose result does not matter.
func did[T any](_ T, err error) error { return err }

// A put stands beside the least that the disk asks for.
func BenchmarkPut(b *testing.B) {
	b.Run("raw", func(b *testing.B) {
		dir := b.TempDir()
		for b.Loop() {
			f, err := os.Create(filepath.Join(dir, "t"))
			must(b, err)
			_, err = f.Write(make([]byte, 600))
			must(b, errors.Join(err, f.Sync(), f.Close()))
			must(b, os.Rename(filepath.Join(dir, "t"), filepath.Join(dir, "x")))
			d, err := os.Open(dir)
			must(b, err)
			must(b, errors.Join(d.Sync(), d.Close()))
		}
	})
	b.Run("table", func(b *testing.B) {
		tab := opened(b, b.TempDir()).Table(muster.TableTasks)
		rev := muster.None
		for n := 0; b.Loop(); n++ {
			var err error
			rev, err = tab.Put(b.Context(), "1", fmt.Appendf(nil, `{"n":%d,"x":"%s"}`, n, strings.Repeat("x", 580)), rev)
			must(b, err)
		}
	})
}

func BenchmarkMail(b *testing.B) {
	s := opened(b, b.TempDir())
	for b.Loop() {
		must(b, s.Inbox().Put(b.Context(), "alice", muster.Message{ID: "m1", From: "bob", Content: strings.Repeat("x", 100)}))
	}
}

// withTasks makes a repository with n tasks, and opens it.
func withTasks(t testing.TB, n int) (root string, s *Store) {
	t.Helper()
	root = t.TempDir()
	s = opened(t, root)
	must(t, os.Mkdir(s.dir.Tasks(), 0o700))
	for i := range n {
		write(t, root, i+1, `{"n":0}`)
	}
	return root, s
}

func BenchmarkListing5000(b *testing.B) {
	root, _ := withTasks(b, 5000)
	for b.Loop() {
		fresh := opened(b, root)
		all(b, fresh)
		fresh.Close()
	}
}

// A warm process puts one document and looks what changed: a table of 10,000 beside one of 100.
func BenchmarkWarm(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			_, s := withTasks(b, n)
			tab := s.Table(muster.TableTasks)
			tab.Watch(b.Context())
			mark := all(b, s)
			doc, err := tab.Get(b.Context(), "1")
			must(b, err)
			rev := doc.Rev
			for i := 1; b.Loop(); i++ {
				rev, err = tab.Put(b.Context(), "1", fmt.Appendf(nil, `{"n":%d}`, i), rev)
				must(b, err)
				for c, err := range tab.Changes(b.Context(), mark) {
					must(b, err)
					mark = c.Mark
				}
			}
		})
	}
}
