package durable_test

import (
	"os"
	"path/filepath"
	"slices"
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
