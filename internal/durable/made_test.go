package durable_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"muster/internal/durable"
)

// Another process can make a file in the instant in which this one is about to, and write to it, and be killed before
// its name is durable. So the name is synced by whoever may have made the file, however long it is.
func TestTheNameOfAFileThatTwoMakeIsSynced(t *testing.T) {
	disk := newFaulty()
	path := filepath.Join(t.TempDir(), "x.jsonl")
	files := durable.New(disk)
	ok(t, files.MakeDir(filepath.Dir(path)))
	disk.done, disk.fault = nil, func(op, name string) error {
		if op == "create" {
			return os.WriteFile(name, []byte("theirs\n"), 0o600)
		}
		return nil
	}
	tail, err := files.OpenTail(path)
	ok(t, err)
	defer func() { ok(t, tail.Close()) }()
	want := []string{"create x.jsonl", "syncdir " + filepath.Base(filepath.Dir(path))}
	if tail.End() != int64(len("theirs\n")) || !slices.Equal(disk.done, want) {
		t.Errorf("of a file of %d bytes, what was done is %q, want %q", tail.End(), disk.done, want)
	}
}
