//go:build unix

package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"muster"
	"muster/internal/config"
	"muster/internal/testing/require"
)

// A repository's file is read if it is a plain one of the repository's own. The user's own may lie behind a link. No
// other file is waited for, and none is read that is larger than anybody writes.
func TestOddFiles(t *testing.T) {
	for name, make := range map[string]func(path, other string) error{
		"link":      func(path, other string) error { return os.Symlink(other, path) },
		"hard link": func(path, other string) error { return os.Link(other, path) },
		"pipe":      func(path, _ string) error { return syscall.Mkfifo(path, 0o600) },
		"device":    func(path, _ string) error { return os.Symlink("/dev/zero", path) },
		"directory": func(path, _ string) error { return os.Mkdir(path, 0o700) },
		"large":     func(path, _ string) error { return os.WriteFile(path, []byte(strings.Repeat("#\n", 1<<15)), 0o600) },
		"hole":      func(path, other string) error { return errors.Join(os.Rename(other, path), os.Truncate(path, 1<<40)) },
	} {
		t.Run(name, func(t *testing.T) {
			root, user := t.TempDir(), t.TempDir()
			other := filepath.Join(user, "secret")
			if err := errors.Join(os.Mkdir(filepath.Join(user, "muster"), 0o700),
				os.WriteFile(other, []byte("teammates: 2\n"), 0o600)); err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{filepath.Join(user, "muster", "config.yaml"), filepath.Join(root, config.File)} {
				require.NoError(t, make(path, other))
				_, _, err := config.Load(config.Options{Root: root, UserDir: user})
				isUser := filepath.Dir(filepath.Dir(path)) == user
				if isUser && strings.HasSuffix(name, "link") {
					if err != nil {
						t.Errorf("the user's own: %v", err)
					}
				} else if !errors.Is(err, muster.ErrInvalid) || !strings.Contains(err.Error(), "cannot be read") {
					t.Errorf("%s: %v", path, err)
				}
				require.NoError(t, os.RemoveAll(path))
				require.NoError(t, os.WriteFile(other, []byte("teammates: 2\n"), 0o600))
			}
		})
	}
}
