package file

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"muster/internal/testing/require"
)

// did returns the error of a call whose result does not matter.
func did[T any](_ T, err error) error { return err }

// withTasks makes a repository with n tasks.
func withTasks(t testing.TB, n int) (root string) {
	t.Helper()
	root = t.TempDir()
	require.NoError(t, os.Mkdir(opened(t, root).dir.Tasks(), 0o700))
	for i := range n {
		write(t, root, i+1, `{"n":0}`)
	}
	return root
}

func write(t testing.TB, root string, n int, data string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(root, ".tasks", fmt.Sprintf("task_%d.json", n)), []byte(data),
		0o600))
}
