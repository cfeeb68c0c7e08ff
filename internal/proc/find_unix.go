//go:build unix

package proc

import (
	"os"
	"path/filepath"
	"strings"
)

// defaultPath is searched when the environment of a command has no PATH.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// findProgram looks program up in path, as a shell does. A program with a slash is not looked up. Relative entries of
// a PATH are passed over: a repository must not be able to put its own git in front of the real one.
func findProgram(program, path string) (string, error) {
	if strings.Contains(program, "/") {
		return program, nil
	}
	if path == "" {
		path = defaultPath
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		full := filepath.Join(dir, program)
		if fi, err := os.Stat(full); err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0 {
			return full, nil
		}
	}
	return "", errNoProgram(program)
}
