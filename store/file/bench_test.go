package file

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"muster"
)

// Each benchmark stands beside the least that the disk asks for.

// must ends the test if something failed.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func BenchmarkPut(b *testing.B) {
	b.Run("raw", func(b *testing.B) {
		dir := b.TempDir()
		for b.Loop() {
			f, err := os.Create(filepath.Join(dir, "t"))
			if err != nil {
				b.Fatal(err)
			}
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
			if rev, err = tab.Put(b.Context(), "1",
				fmt.Appendf(nil, `{"n":%d,"x":"%s"}`, n, strings.Repeat("x", 580)), rev); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkMail(b *testing.B) {
	b.Run("raw", func(b *testing.B) {
		f, err := os.OpenFile(filepath.Join(b.TempDir(), "x"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		line := make([]byte, 200)
		for b.Loop() {
			_, err := f.Write(line)
			must(b, errors.Join(err, f.Sync()))
		}
	})
	b.Run("inbox", func(b *testing.B) {
		s := opened(b, b.TempDir())
		for b.Loop() {
			if err := s.Inbox().Put(b.Context(), "alice",
				muster.Message{ID: "m1", From: "bob", Content: strings.Repeat("x", 100)}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("log", func(b *testing.B) {
		s := opened(b, b.TempDir())
		rec := fmt.Appendf(nil, `{"x":"%s"}`, strings.Repeat("x", 180))
		for b.Loop() {
			if _, err := s.Log().Append(b.Context(), muster.StreamEvents, muster.Anywhere, rec); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Claims of 8 stores, each opened for one claim, on 5,000 tasks.
func BenchmarkClaims(b *testing.B) {
	root := b.TempDir()
	if err := os.Mkdir(filepath.Join(root, ".tasks"), 0o700); err != nil {
		b.Fatal(err)
	}
	for i := range 5000 {
		if err := os.WriteFile(filepath.Join(root, ".tasks", "task_"+strconv.Itoa(i+1)+".json"), []byte(`{"n":0}`),
			0o600); err != nil {
			b.Fatal(err)
		}
	}
	var n atomic.Int64
	b.SetParallelism(4)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			s, err := Open(root)
			if err != nil {
				b.Error(err)
				return
			}
			i := n.Add(1)
			tab := s.Table(muster.TableTasks)
			key := strconv.Itoa(int(i%5000) + 1)
			d, err := tab.Get(b.Context(), key)
			if err == nil {
				_, err = tab.Put(b.Context(), key, fmt.Appendf(nil, `{"n":%d}`, i), d.Rev)
			}
			if err != nil {
				b.Error(err)
			}
			s.Close()
		}
	})
	b.ReportMetric(float64(n.Load())/b.Elapsed().Seconds(), "claims/s")
}

func BenchmarkListing5000(b *testing.B) {
	root := b.TempDir()
	s := opened(b, root)
	if err := os.Mkdir(s.dir.Tasks(), 0o700); err != nil {
		b.Fatal(err)
	}
	for i := range 5000 {
		if err := os.WriteFile(filepath.Join(root, ".tasks", "task_"+strconv.Itoa(i+1)+".json"), []byte(`{"n":0}`),
			0o600); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			fresh := opened(b, root)
			all(b, fresh)
			fresh.Close()
		}
	})
	b.Run("again", func(b *testing.B) {
		mark := all(b, s)
		for b.Loop() {
			for _, err := range s.Table(muster.TableTasks).Changes(b.Context(), mark) {
				must(b, err)
			}
		}
	})
	b.Run("watched", func(b *testing.B) {
		s.Table(muster.TableTasks).Watch(b.Context())
		mark := all(b, s)
		for b.Loop() {
			for _, err := range s.Table(muster.TableTasks).Changes(b.Context(), mark) {
				must(b, err)
			}
		}
	})
}

// A warm process puts one document and looks what changed: a table of 10,000 beside one of 100.
func BenchmarkWarm(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			root := b.TempDir()
			s := opened(b, root)
			if err := os.Mkdir(s.dir.Tasks(), 0o700); err != nil {
				b.Fatal(err)
			}
			for i := range n {
				if err := os.WriteFile(filepath.Join(root, ".tasks", "task_"+strconv.Itoa(i+1)+".json"),
					[]byte(`{"n":0}`), 0o600); err != nil {
					b.Fatal(err)
				}
			}
			tab := s.Table(muster.TableTasks)
			tab.Watch(b.Context())
			mark := all(b, s)
			doc, err := tab.Get(b.Context(), "1")
			if err != nil {
				b.Fatal(err)
			}
			rev := doc.Rev
			for i := 1; b.Loop(); i++ {
				if rev, err = tab.Put(b.Context(), "1", fmt.Appendf(nil, `{"n":%d}`, i), rev); err != nil {
					b.Fatal(err)
				}
				for c, err := range tab.Changes(b.Context(), mark) {
					if err != nil {
						b.Fatal(err)
					}
					mark = c.Mark
				}
			}
		})
	}
}
