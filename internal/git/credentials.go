package git

import (
	"os"
	"path/filepath"

	"muster/internal/durable"
	"muster/internal/redact"
)

// GitDirs returns a git directory, then those of its submodules.
func GitDirs(dir string) []string {
	return append([]string{dir}, gitDirsIn(filepath.Join(dir, "modules"))...)
}

// gitDirsIn returns the git directories in a directory of modules, whose names may have slashes.
func gitDirsIn(modules string) (all []string) {
	entries, _ := os.ReadDir(modules) // most repositories have none
	for _, e := range entries {
		dir := filepath.Join(modules, e.Name())
		if _, err := os.Lstat(filepath.Join(dir, "HEAD")); err == nil {
			all = append(all, GitDirs(dir)...)
		} else if e.IsDir() {
			all = append(all, gitDirsIn(dir)...)
		}
	}
	return all
}

// ConfigFiles are the names of the files with settings in a git directory.
var ConfigFiles = []string{"config", "config.worktree"}

// Credentials returns what is secret in the settings of a repository and of its submodules, such as the password in the
// URL of a remote.
func Credentials(common string) (values []string) {
	for _, dir := range GitDirs(common) {
		for _, name := range ConfigFiles {
			text, _ := durable.ReadRegular(filepath.Join(dir, name), MaxFile) // git says what is wrong with one
			values = append(values, redact.InGitConfig(string(text))...)
		}
	}
	return values
}
