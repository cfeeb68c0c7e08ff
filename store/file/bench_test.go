package file

import (
	"os"
	"testing"

	"muster/internal/testing/require"
)

// failer is what tests and rapid's checks have in common.
type failer interface {
	Helper()
	Fatal(args ...any)
}

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
