package workspace

import (
	"os"

	"muster"
)

// Files reads files of the repository that are not part of the store. Names are relative to the repository's root, with
// slashes. A name, and a symbolic link on the way, that leads out of the repository is refused by the operating system
// (os.Root), whoever changes the directories meanwhile.
type Files struct{ root *os.Root }

// openFiles opens the files below a directory.
func openFiles(dir string) (*Files, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, muster.Errorf(muster.Unavailable, "the repository cannot be opened: %w", err)
	}
	return &Files{root}, nil
}

// Close releases the directory.
func (f *Files) Close() error { return f.root.Close() }

// ReadFile returns the content of a file.
func (f *Files) ReadFile(name string) ([]byte, error) { return f.root.ReadFile(name) }
