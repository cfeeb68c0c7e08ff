package gittest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Failing runs work, in which one call of git fails, and returns the error of work.
type Failing func(work func() error) error

// FailEach calls act again and again. In the first call the first git that work starts fails, in the second one the
// second, and so on until no git of work is left to fail. Git fails with the code with which it dies, and does nothing.
// act makes a repository, gives its work to failing, and judges what has become of it: the error that work returned, or
// its outcome if it returned none. FailEach sets the PATH of the process, so its test cannot be parallel.
func FailEach(t *testing.T, act func(t *testing.T, failing Failing)) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the git that fails is a shell script")
	}
	Env(t)
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	path := os.Getenv("PATH")
	for n, isOver := 1, false; !isOver; n++ {
		t.Run(fmt.Sprint("call ", n), func(t *testing.T) {
			dir := t.TempDir()
			Write(t, dir, map[string]string{"git": fmt.Sprintf(faultyGit, dir, n, real)})
			if err := os.Chmod(filepath.Join(dir, "git"), 0o700); err != nil {
				t.Fatal(err)
			}
			act(t, func(work func() error) error {
				t.Setenv("PATH", dir+string(os.PathListSeparator)+path)
				err := work()
				t.Setenv("PATH", path)
				failed, ferr := os.ReadFile(filepath.Join(dir, "failed"))
				isOver = isOver || errors.Is(ferr, os.ErrNotExist)
				t.Logf("git %s: %v", strings.TrimSpace(string(failed)), err)
				return err
			})
		})
	}
}

// faultyGit is a git of which the nth call fails. Each call adds a byte to a file, so that calls at once are counted.
const faultyGit = `#!/bin/sh
printf x >> '%[1]s/calls'
if [ "$(wc -c < '%[1]s/calls')" -eq %[2]d ]; then
	echo "$*" > '%[1]s/failed'
	echo "fatal: this git fails" >&2
	exit 128
fi
exec '%[3]s' "$@"
`
