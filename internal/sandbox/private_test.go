package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster/internal/testing/require"
)

// What only its owner and a group may read is hidden, by its mode. Many such files hide their directory.
func TestPrivate(t *testing.T) {
	base := t.TempDir()
	write(t, base, filepath.Base, "public/x", "public/key", "public/group", "closed/x", "entered/x", "entered/key")
	var many []string
	for i := range maxPrivate + 1 {
		many = append(many, "many/"+strings.Repeat("x", i+1))
	}
	write(t, base, filepath.Base, many...)
	at := func(name string) string { return filepath.Join(base, name) }
	require.NoError(t, errors.Join(os.Chmod(at("public/x"), 0o644), os.Chmod(at("public/group"), 0o640), os.Chmod(at("closed"), 0o750),
		os.Chmod(at("entered"), 0o711), os.Chmod(at("entered/x"), 0o644), os.Symlink(at("public/key"), at("public/link"))))
	pipe := exec.Command("mkfifo", "-m", "600", at("public/pipe"))
	require.NoError(t, pipe.Run())
	r := privateIn([]string{base, at("none")}, 0)
	slices.SortFunc(r, func(a, b Rule) int { return strings.Compare(a.Path, b.Path) })
	want := Rules{{Path: at("closed"), Access: Empty}, {Path: at("entered/key"), Access: Masked}, {Path: at("many"), Access: Empty},
		{Path: at("public/group"), Access: Masked}, {Path: at("public/key"), Access: Masked}, {Path: at("public/pipe"), Access: Masked}}
	if !slices.Equal(r, want) {
		t.Errorf("root: %+v", r)
	}
	if r := privateIn([]string{base}, 1); os.Geteuid() == 0 && len(r) != len(want)-1 { // a pipe is not tried
		t.Errorf("what a group lets a user read: %+v", r)
	}
}
