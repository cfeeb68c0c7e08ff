// Package program gives tests the built muster program, for what a call of cli.App in the test's own process cannot
// show: signals, terminals, /proc, a killed process.
package program

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"muster/internal/testing/gittest"
)

// Variable is the environment variable with the path of the program. test.sh builds the program once and sets it.
// The path has the hash of the file in it, so that Go runs a test again when the program is another one.
const Variable = "MUSTER_BIN"

// Path returns the path of the program, whose file is called muster. Without MUSTER_BIN each test process builds it,
// into a directory of the system's temporary files that all of them share.
func Path(t testing.TB) string {
	t.Helper()
	path, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Find is Path for a TestMain. The programs that the test starts from then on heed SIGHUP, also where the tests run
// under nohup: a signal that is caught here has its default effect in new processes.
var Find = sync.OnceValues(func() (string, error) {
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	if path := os.Getenv(Variable); path != "" {
		return path, nil
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("muster-test-program-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	building, err := os.MkdirTemp(dir, "building-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(building)
	built := filepath.Join(building, "muster")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-tags", "failpoint", "-o", built,
		"muster/cmd/muster")
	cmd.Env = gittest.UsersEnviron()
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the program cannot be built: %w\n%s", err, out)
	}
	data, err := os.ReadFile(built)
	if err != nil {
		return "", err
	}
	home := filepath.Join(dir, fmt.Sprintf("%x", sha256.Sum256(data)))
	removeOld(dir, home)
	if err := os.Mkdir(home, 0o700); err != nil && !os.IsExist(err) {
		return "", err
	}
	path := filepath.Join(home, "muster")
	return path, os.Rename(built, path)
})

// removeOld removes programs in dir that were built more than a day ago.
func removeOld(dir, keep string) {
	entries, _ := os.ReadDir(dir) // what cannot be read is not removed
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if info, err := e.Info(); err == nil && path != keep && time.Since(info.ModTime()) > 24*time.Hour {
			_ = os.RemoveAll(path)
		}
	}
}
