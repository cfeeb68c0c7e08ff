package durable

import (
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/internal/testing/require"
	"muster/internal/testing/tier"
)

// A temporary file counts as left behind as soon as its writer is dead, and else when it is old.
func TestAbandonedTemporaryFiles(t *testing.T) {
	child := exec.Command(tier.Needs(t, "true"))
	require.NoError(t, child.Run())
	own := TemporaryName("a.json")
	parts := strings.Split(own, "-")
	if len(parts) != 3 || !strings.HasPrefix(own, ".a.json.") || own == TemporaryName("a.json") {
		t.Fatalf("the name %s does not say what it should", own)
	}
	named := func(space string, pid int) string { return fmt.Sprintf("%s-%d-%s", space, pid, parts[2]) }
	dead := child.ProcessState.Pid()
	now, old := time.Now(), time.Now().Add(-2*minTemporaryAge)
	for _, c := range []struct {
		name     string
		modified time.Time
		want     bool
	}{
		{own, now, false},
		{own, old, true},
		{named(parts[0], dead), now, hasDied(dead)}, // Windows does not tell
		{named(parts[0]+"x", dead), now, false},     // of another container
		{named(parts[0], 0), now, false},
		{named(parts[0], -1), now, false},
		{".a.json.abcdefghijkl.tmp", now, false},
		{".a.json.abcdefghijkl.tmp", old, true},
		{".tmp", now, false},
		{"a.tmp", old, false},
		{".a.json", old, false},
	} {
		if got := IsAbandoned(c.name, c.modified); got != c.want {
			t.Errorf("%s of %v ago: left behind %v, want %v", c.name, time.Since(c.modified).Round(time.Second), got, c.want)
		}
	}
}

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
