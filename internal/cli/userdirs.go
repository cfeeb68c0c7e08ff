package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"muster/internal/paths"
	"muster/internal/proc"
)

// withTemporary returns the environment with a directory for temporary files that can be used, and a line for people
// where that is another one than the environment names. Shells of batch jobs and of nix-shell leave one that is gone.
func withTemporary(env []string) (usable []string, line string) {
	named := proc.Variable(env, "TMPDIR")
	if named == "" || filepath.IsAbs(named) && canWriteIn(named) {
		return env, ""
	}
	for _, dir := range []string{"/tmp", "/var/tmp"} {
		if canWriteIn(dir) {
			return proc.WithVariables(env, "TMPDIR="+dir),
				fmt.Sprintf("TMPDIR names %s, where nothing can be written: %s is used", named, dir)
		}
	}
	return env, "" // whatever needs one says what is wrong
}

func canWriteIn(dir string) bool {
	f, err := os.CreateTemp(dir, "muster-try-*")
	if err != nil {
		return false
	}
	_ = f.Close()
	return os.Remove(f.Name()) == nil
}

// unusableDirs returns a line for people for each directory of theirs that cannot be used. Where that of the caches
// cannot be made, nothing is kept from then on.
func (a *App) unusableDirs() (lines []string) {
	if a.temporary != "" {
		lines = append(lines, a.temporary)
	}
	dir, err := paths.UserCache(a.env)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if a.hasNoCache = err != nil; a.hasNoCache {
		lines = append(lines, fmt.Sprintf("no caches are kept (XDG_CACHE_HOME names another place for them): %v", err))
	}
	return lines
}
