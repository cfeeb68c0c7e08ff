package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"muster"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
)

// What the members' checkouts have needs no copy; all else is copied once, out of git's sight.
func TestShare(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"README": "read me\n"})
	w := require.Value(Open(t.Context(), dir, Options{OpenStore: openFileStore}))(t)
	defer w.Close()
	root := w.Root()
	outside := filepath.Join(t.TempDir(), "outside.txt")
	for path, text := range map[string]string{filepath.Join(root, "new.txt"): "new", outside: "outside"} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	share := func(path, want string) string {
		t.Helper()
		at := require.Value(Share(t.Context(), w, path))(t)
		text := ""
		if at != "" {
			data, err := os.ReadFile(at)
			if err != nil || filepath.Dir(at) != filepath.Join(w.Paths().Outputs(), "user") {
				t.Errorf("%s is at %s, %v", path, at, err)
			}
			text = string(data)
		}
		if text != want {
			t.Errorf("of %s there is %q at %q, want %q", path, text, at, want)
		}
		return at
	}
	share("README", "")
	first := share("new.txt", "new")
	if again := share(filepath.Join(root, "new.txt"), "new"); again != first {
		t.Errorf("the same content is at %s and %s", first, again)
	}
	share(outside, "outside")
	require.NoError(t, os.WriteFile(filepath.Join(root, "README"), []byte("changed"), 0o600))
	share("README", "changed")
	for _, path := range []string{"none.txt", ".", "../"} {
		if at, err := Share(t.Context(), w, path); !errors.Is(err, muster.ErrNotFound) {
			t.Errorf("%s: %q, %v", path, at, err)
		}
	}
	require.NoError(t, os.Symlink(outside, filepath.Join(root, "link")))
	if at, err := Share(t.Context(), w, "link"); err == nil {
		t.Errorf("a link out of the repository is at %q", at)
	}
	require.NoError(t, os.Truncate(filepath.Join(root, "new.txt"), maxShared+1))
	if at, err := Share(t.Context(), w, "new.txt"); !errors.Is(err, muster.ErrInvalid) {
		t.Errorf("a huge file: %q, %v", at, err)
	}
}
