//go:build unix

package file_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"muster"
	"muster/internal/durable"
	"muster/internal/testing/require"
	"muster/store/file"
)

// closedTo is a disk with one file that is another user's.
type closedTo struct {
	durable.OS
	file fs.FileInfo
}

func (c closedTo) OpenFile(name string, flag int, perm fs.FileMode) (durable.File, error) {
	if now, err := os.Stat(name); err == nil && os.SameFile(now, c.file) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EACCES}
	}
	return c.OS.OpenFile(name, flag, perm)
}

// odd is a repository in whose directories things lie that are no documents, and one document of another user's.
func odd(t *testing.T, make func(path string) error, at string) (*file.Store, string) {
	t.Helper()
	root := t.TempDir()
	closed := filepath.Join(root, at)
	require.NoError(t, os.MkdirAll(filepath.Dir(closed), 0o700))
	require.NoError(t, make(closed))
	var on durable.FS = durable.OS{}
	if fi, err := os.Stat(closed); err == nil && fi.Mode().IsRegular() { // tests run as root, whom no mode keeps out
		on = closedTo{file: fi}
	}
	s, err := file.OpenOn(durable.New(on), root)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s, closed
}

var oddities = map[string]func(path string) error{
	"directory": func(path string) error { return os.Mkdir(path, 0o700) },
	"pipe":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
	"loop":      func(path string) error { return os.Symlink(filepath.Base(path), path) },
	"another's": func(path string) error { return os.WriteFile(path, []byte("{}\n"), 0o600) },
}

// One document that cannot be opened is that document's damage: the others are listed, read and written.
func TestOneOddDocument(t *testing.T) {
	for name, make := range oddities {
		t.Run(name, func(t *testing.T) {
			s, path := odd(t, make, ".tasks/task_9.json")
			tasks := s.Table(muster.TableTasks)
			rev, err := tasks.Put(t.Context(), "1", []byte(`{"id":1}`), muster.None)
			require.NoError(t, err)
			list := func(from muster.Mark) (good, bad []string, mark muster.Mark) {
				for c, err := range tasks.Changes(t.Context(), from) {
					switch {
					case err == nil:
						good = append(good, c.Key)
					case errors.Is(err, muster.ErrCorrupt) && c.Rev != muster.None &&
						strings.Contains(err.Error(), path):
						bad = append(bad, c.Key)
					default:
						t.Fatal(err)
					}
					mark = c.Mark
				}
				return good, bad, mark
			}
			good, bad, mark := list(0)
			if !slices.Equal(good, []string{"1"}) || !slices.Equal(bad, []string{"9"}) {
				t.Fatal(good, bad)
			}
			if good, bad, _ := list(mark); len(good)+len(bad) != 0 {
				t.Errorf("told again: %v %v", good, bad)
			}
			doc, err := tasks.Get(t.Context(), "9")
			if !errors.Is(err, muster.ErrCorrupt) || doc.Rev == muster.None {
				t.Errorf("%q %v", doc.Rev, err)
			}
			if _, err := tasks.Put(t.Context(), "9", []byte(`{}`), muster.None); !errors.Is(err, muster.ErrStale) {
				t.Errorf("it is there: %v", err)
			}
			if _, err := tasks.Put(t.Context(), "9", []byte(`{}`), doc.Rev); !errors.Is(err, muster.ErrCorrupt) {
				t.Errorf("what it has was replaced: %v", err)
			}
			if _, err := tasks.Put(t.Context(), "1", []byte(`{"id":1,"a":1}`), rev); err != nil {
				t.Error(err)
			}
			require.NoError(t, os.RemoveAll(path))
			if _, _, after := list(mark); after == 0 {
				t.Error("that it is gone is no change")
			}
			if _, err := tasks.Put(t.Context(), "9", []byte(`{}`), muster.None); err != nil {
				t.Error(err)
			}
		})
	}
}

// An inbox file that cannot be opened is said once; mail goes on beside it, and what lies in it comes when it can be
// read.
func TestOneOddInbox(t *testing.T) {
	for name, make := range oddities {
		t.Run(name, func(t *testing.T) {
			s, _ := odd(t, make, ".team/inbox/alice.jsonl")
			var told []string
			s.OnReject = func(box muster.Name, _ []byte, why string) { told = append(told, string(box)+": "+why) }
			if ms, _ := pending(t, s); len(ms) > 0 {
				t.Errorf("there is %q", said(ms))
			}
			for _, text := range []string{"one", "two"} {
				require.NoError(t, s.Inbox().Put(t.Context(), "alice", muster.Message{From: "bob", Content: text}))
				ms, end := pending(t, s)
				if said(ms) != text {
					t.Fatalf("there is %q, want %q", said(ms), text)
				}
				require.NoError(t, s.Inbox().Drop(t.Context(), "alice", end))
			}
			if len(told) != 1 || !strings.HasPrefix(told[0], "alice: ") {
				t.Errorf("%q", told)
			}
		})
	}
}

// What another user put there is delivered when it can be read.
func TestAnothersMailWaits(t *testing.T) {
	const line = `{"id":"his","type":"message","from":"user","to":"alice","content":"hello"}` + "\n"
	s, path := odd(t, func(path string) error { return os.WriteFile(path, []byte(line), 0o600) },
		".team/inbox/alice.jsonl")
	write(t, strings.TrimSuffix(path, ".jsonl")+".segments/00000002-0.jsonl", strings.Replace(line, "his", "old", 1))
	require.NoError(t, s.Inbox().Put(t.Context(), "alice", muster.Message{ID: "mine", From: "bob", Content: "hello"}))
	mine := open(t, filepath.Dir(filepath.Dir(filepath.Dir(path))))
	defer mine.Close()
	if mails, _ := pending(t, mine); len(mails) != 3 || mails[0].ID+mails[1].ID+mails[2].ID != "oldhismine" {
		t.Fatal(mails)
	}
}
