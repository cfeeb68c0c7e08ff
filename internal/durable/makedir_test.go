package durable

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// readOnlyFS refuses to make directories.
type readOnlyFS struct{ OS }

func (readOnlyFS) Mkdir(name string, _ fs.FileMode) error {
	return &fs.PathError{Op: "mkdir", Path: name, Err: fs.ErrPermission}
}

// A user whose home directory is read-only learns which directory it is.
func TestTheDirectoryThatCannotBeWrittenIsNamed(t *testing.T) {
	home := t.TempDir()
	err := New(readOnlyFS{}).MakeDir(filepath.Join(home, "state", "muster"))
	if err == nil || !strings.Contains(err.Error(), "cannot write in "+filepath.Join(home, "state")+" (") {
		t.Errorf("%v", err)
	}
}
