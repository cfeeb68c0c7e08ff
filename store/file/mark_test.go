package file_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster"
	"muster/internal/testing/tier"
)

// A document that an editor on Windows wrote is one like others; what it had before its text goes with the next change.
func TestByteOrderMark(t *testing.T) {
	tier.All(t)
	s, root := one(t)
	path := filepath.Join(root, ".tasks", "task_1.json")
	const text = "{\"id\": 1,\r\n \"z\": 1.10}\r\n"
	write(t, path, "\ufeff"+text)
	tasks := s.Table(muster.TableTasks)
	for range 2 { // read at the look, and again after it
		n := 0
		for c, err := range tasks.Changes(t.Context(), 0) {
			if n++; err != nil || string(c.Data) != text {
				t.Errorf("%q %v", c.Data, err)
			}
		}
		if n != 1 {
			t.Errorf("%d documents", n)
		}
	}
	doc, err := tasks.Get(t.Context(), "1")
	if err != nil || string(doc.Data) != text {
		t.Fatalf("%q %v", doc.Data, err)
	}
	must(t, did(tasks.Put(t.Context(), "1", []byte(text), doc.Rev)))
	if data, err := os.ReadFile(path); err != nil || string(data) != text {
		t.Errorf("%q %v", data, err)
	}
}

// A large document is looked at byte by byte once only: another content of it is looked at again.
func TestLargeDocument(t *testing.T) {
	s, root := one(t)
	team := s.Table(muster.TableTeam)
	text := []byte(`{"a":"` + strings.Repeat("long ", 50_000) + `"}`)
	must(t, did(team.Put(t.Context(), "config", text, muster.None)))
	path := filepath.Join(root, ".team", "config.json")
	for i, content := range [][]byte{text, text[:len(text)-1], text, append(slices.Clone(text), '\xff'), text} {
		must(t, os.WriteFile(path, content, 0o600))
		for range 2 {
			doc, err := team.Get(t.Context(), "config")
			if whole := len(content) == len(text); whole != (err == nil) || !whole &&
				!errors.Is(err, muster.ErrCorrupt) || !bytes.Equal(doc.Data, content) {
				t.Errorf("content %d: %v, %d bytes", i, err, len(doc.Data))
			}
		}
	}
}
