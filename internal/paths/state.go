package paths

import (
	"errors"
	"path/filepath"
	"runtime"
)

// UserState returns the directory for what muster keeps about the user's machine rather than about a repository, such
// as its log. env returns the value of an environment variable, "" when it is not set. It is an error when no home is
// set.
func UserState(env func(string) string) (string, error) { return userState(runtime.GOOS, env) }

func userState(system string, env func(string) string) (string, error) {
	if dir := env("XDG_STATE_HOME"); filepath.IsAbs(dir) { // the rule of XDG: a relative one does not count
		return filepath.Join(dir, "muster"), nil
	}
	home, under := env("HOME"), []string{".local", "state", "muster"}
	switch system {
	case "windows":
		home, under = env("LocalAppData"), []string{"muster"}
	case "darwin":
		under = []string{"Library", "Application Support", "muster"}
	}
	if home == "" {
		return "", errors.New("neither XDG_STATE_HOME nor a home directory is set")
	}
	return filepath.Join(append([]string{home}, under...)...), nil
}
