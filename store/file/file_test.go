package file_test

import (
	"testing"

	"go.uber.org/goleak"

	"muster"
	"muster/store/file"
	"muster/store/storetest"
)

func TestMain(m *testing.M) {
	if asProcess() {
		return
	}
	goleak.VerifyTestMain(m)
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) func() muster.Store {
		root := t.TempDir()
		return func() muster.Store { return open(t, root) }
	})
}

// The same, where the journal is rotated after every line or two.
func TestStoreThatRotates(t *testing.T) {
	storetest.Run(t, func(t *testing.T) func() muster.Store {
		root := t.TempDir()
		return func() muster.Store {
			s := open(t, root)
			s.RotateAt(40)
			return s
		}
	})
}

// open opens a handle that the caller closes.
func open(t testing.TB, root string) *file.Store {
	t.Helper()
	s, err := file.Open(root)
	must(t, err)
	return s
}
