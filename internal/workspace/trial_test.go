package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
)

// added returns the paths in a directory that were not there before.
func added(t *testing.T, dir string, before []string) (all []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if !slices.Contains(before, path) {
			all = append(all, path)
		}
		return err
	}))
	return all
}

// A trial leaves nothing in the repository: after Close, and where its process was killed, after the next command. What
// a living process tries stays.
func TestTrialsLeaveNothing(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"a": "a\n"})
	w := require.Value(Open(t.Context(), dir, Options{OpenStore: openFileStore}))(t)
	defer w.Close()
	repo := require.Value(w.Repo(t.Context()))(t)
	head := require.Value(repo.Head(t.Context()))(t)
	before := added(t, dir, nil)

	closed := require.Value(OpenTrial(t.Context(), repo, head))(t)
	require.NoError(t, os.WriteFile(filepath.Join(closed.Lane.Path, "left"), []byte("x"), 0o644))
	require.NoError(t, closed.Close(t.Context()))
	if left := added(t, dir, before); len(left) > 0 {
		t.Errorf("Close has left %v", left)
	}

	killed := require.Value(OpenTrial(t.Context(), repo, head))(t)
	require.NoError(t, os.WriteFile(filepath.Join(killed.Lane.Path, "left"), []byte("x"), 0o644))
	RemoveTrials(t.Context(), w)
	if _, err := os.Stat(killed.Lane.Path); err != nil {
		t.Errorf("the lane of a living process is gone: %v", err)
	}
	require.NoError(t, killed.release())
	RemoveTrials(t.Context(), w)
	if left := added(t, dir, before); len(left) > 0 {
		t.Errorf("the next command has left %v", left)
	}
}
