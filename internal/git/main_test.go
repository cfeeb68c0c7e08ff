package git_test

import (
	"os"
	"testing"

	"muster/internal/testing/gittest"
)

// TestMain lets the test binary be the process that is killed while it packs.
func TestMain(m *testing.M) {
	if root := os.Getenv("PACKS_TO_KILL"); root != "" {
		packUntilKilled(root)
	}
	gittest.Main(m)
}
