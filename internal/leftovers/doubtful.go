package leftovers

import (
	"path"
	"slices"
)

// doubtful are names of GitHub's templates for .gitignore that some projects commit: of directories, and patterns of
// files.
var (
	doubtfulDirs = []string{"build", "dist", "out", "obj", "target", "coverage", "htmlcov", "logs", "tmp", "_build",
		".build", ".cache", ".eggs", ".hypothesis", ".idea", ".nyc_output", ".vs", "bower_components"}
	doubtfulFiles = []string{"*.log", "*.o", "*.obj", "*.class", "*.exe", "*.dll", "*.so", "*.dylib", "*.swp", "*.tmp",
		"*.bak", "*.orig", "*.rej", "*.iml", "*.tsbuildinfo", ".coverage", ".env", ".eslintcache", "CACHEDIR.TAG",
		"Thumbs.db"}
)

// Doubtful returns the directories and files that other projects ignore, among the files that a commit adds: for a
// directory its path and a slash, for each once.
func Doubtful(added []string) (found []string) {
	isFound := map[string]bool{}
	for _, file := range added {
		if name := doubtfulName(file); name != "" && !isFound[name] {
			isFound[name] = true
			found = append(found, name)
		}
	}
	return found
}

// doubtfulName returns the outermost directory of a file that others ignore, or the file; "" where they do not.
func doubtfulName(file string) string {
	for dir := range parents(file) {
		if slices.Contains(doubtfulDirs, path.Base(dir)) {
			return dir + "/"
		}
	}
	for _, pattern := range doubtfulFiles {
		if is, _ := path.Match(pattern, path.Base(file)); is {
			return file
		}
	}
	return ""
}
