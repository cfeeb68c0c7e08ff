//go:build unix

package skills

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestPipe: a pipe in the place of a skill holds nobody up.
func TestPipe(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, ".claude/skills/pipe")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "SKILL.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	all := Find(Places(root, "", ""))
	if len(all) != 1 || all[0].Problem != "it cannot be read: it is not a regular file" {
		t.Errorf("found %+v", all)
	}
}
