package durable_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster/internal/durable"
	"muster/internal/testing/require"
)

// Everything goes but what is to stay, read-only directories too, and nothing that a link leads to.
func TestRemoveContents(t *testing.T) {
	t.Parallel()
	dir, outside := filepath.Join(t.TempDir(), "dir"), t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "sealed", "deep"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sealed", "deep", "file"), nil, 0o400))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".git"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(outside, "file"), nil, 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "link")))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "sealed", "link")))
	require.NoError(t, os.Chmod(filepath.Join(dir, "sealed", "deep"), 0o000))
	require.NoError(t, os.Chmod(filepath.Join(dir, "sealed"), 0o500))
	require.NoError(t, os.Chmod(dir, 0o500))
	require.NoError(t, durable.RemoveContents(dir, ".git"))
	if names, err := (durable.OS{}).Names(dir); err != nil || !slices.Equal(names, []string{".git"}) {
		t.Errorf("left %v, %v", names, err)
	}
	if names, err := (durable.OS{}).Names(outside); err != nil || !slices.Equal(names, []string{"file"}) {
		t.Errorf("outside there is %v, %v", names, err)
	}
	for range 2 { // a directory that is gone is no error
		require.NoError(t, durable.RemoveAll(dir))
	}
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(outside, link))
	if durable.RemoveAll(link) == nil {
		t.Error("a link was taken for a directory")
	}
	if _, err := os.Stat(filepath.Join(outside, "file")); err != nil {
		t.Error(err)
	}
}

// Very many levels of directories go too, where the deepest one is closed.
func TestRemoveDeepDirectories(t *testing.T) {
	t.Parallel()
	top := filepath.Join(t.TempDir(), "dir")
	require.NoError(t, os.Mkdir(top, 0o700))
	at := require.Value(os.OpenRoot(top))(t)
	for range 3000 {
		require.NoError(t, at.Mkdir(strings.Repeat("d", 200), 0o700))
		require.NoError(t, at.WriteFile("file", nil, 0o600))
		next := require.Value(at.OpenRoot(strings.Repeat("d", 200)))(t)
		require.NoError(t, at.Close())
		at = next
	}
	require.NoError(t, at.Mkdir("closed", 0o700))
	require.NoError(t, at.WriteFile("closed/file", nil, 0o600))
	require.NoError(t, at.Chmod("closed", 0))
	require.NoError(t, at.Close())
	require.NoError(t, durable.RemoveAll(top))
	if _, err := os.Lstat(top); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}
