package proc

import (
	"os"
	"os/exec"
	"path/filepath"
)

// shellProgram returns the program of a shell. Where PATH has none, it is the one that Git for Windows brings: git.exe
// lies in its directory cmd or bin, and the shells beside that in bin.
func shellProgram(name string) string {
	if isInPath(name) {
		return name
	}
	git, err := exec.LookPath("git")
	if err != nil {
		return name
	}
	program := filepath.Join(filepath.Dir(filepath.Dir(git)), "bin", name+".exe")
	if _, err := os.Stat(program); err != nil {
		return name
	}
	return program
}
