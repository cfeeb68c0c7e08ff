// Package tier tells a test in which tier of test.sh it runs.
//
// "./test.sh", like a plain "go test", runs the first tier: what a change can break, in minutes, without root and
// without other programs than git and Go. "./test.sh all" sets MUSTER_TESTS=all and runs everything: all cases, all
// seeds, and whatever takes minutes, gigabytes or a quiet machine.
package tier

import (
	"os"
	"os/exec"
	"testing"
)

// Variable is the environment variable that chooses the tier.
const Variable = "MUSTER_TESTS"

// IsAll reports whether everything runs.
func IsAll() bool { return os.Getenv(Variable) == "all" }

// All skips a test that belongs to "./test.sh all".
func All(t testing.TB) {
	t.Helper()
	if !IsAll() {
		t.Skip("runs in ./test.sh all")
	}
}

// Amount returns how many cases a test tries: first in the first tier, all in "./test.sh all".
func Amount(first, all int) int {
	if IsAll() {
		return all
	}
	return first
}

// Needs returns the path of the first of the programs that is installed. Without any of them it skips the test. In
// "./test.sh all" and in CI (CI=true) it fails the test: nothing may be left out there.
func Needs(t testing.TB, programs ...string) string {
	t.Helper()
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	Missing(t, programs[0]+" is not installed")
	return ""
}

// LeavesNothingOut reports whether a program that is missing is an error, as in "./test.sh all" and in CI.
func LeavesNothingOut() bool { return IsAll() || os.Getenv("CI") == "true" }

// Missing skips a test because the machine lacks something, such as a sandbox. In "./test.sh all" and in CI it fails
// the test.
func Missing(t testing.TB, what string) {
	t.Helper()
	if LeavesNothingOut() {
		t.Fatal(what + ", and ./test.sh all and CI leave nothing out")
	}
	t.Skip("left out: " + what)
}
