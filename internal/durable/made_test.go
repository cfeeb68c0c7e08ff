package durable_test

import (
	"os"
	"path/filepath"
	"testing"

	"muster/internal/durable"
	"muster/internal/testing/simfs"
)

// Another process can make a file in the instant in which this one is about to, and write to it, and be killed before
// its name is durable. So the name is synced by whoever may have made the file, however long it is.
func TestTheNameOfAFileThatTwoMakeIsSynced(t *testing.T) {
	var disk disk
	path := filepath.Join(t.TempDir(), "x.jsonl")
	files := durable.New(disk.fs())
	ok(t, files.MakeDir(filepath.Dir(path)))
	disk.done, disk.fault = nil, func(op simfs.Kind, name string) error {
		if op == simfs.Create {
			return os.WriteFile(name, []byte("theirs\n"), 0o600)
		}
		return nil
	}
	tail, err := files.OpenTail(path)
	ok(t, err)
	defer func() { ok(t, tail.Close()) }()
	want, got := "create x.jsonl, sync directory "+filepath.Base(filepath.Dir(path)), disk.did()
	if tail.End() != int64(len("theirs\n")) || got != want {
		t.Errorf("of a file of %d bytes, what was done is %q, want %q", tail.End(), got, want)
	}
}
