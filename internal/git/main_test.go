package git_test

import (
	"flag"
	"os"
	"strconv"
	"testing"

	"muster/internal/testing/gittest"
	"muster/internal/testing/tier"
)

// TestMain lets the test binary be the process that is killed while it packs.
func TestMain(m *testing.M) {
	if root := os.Getenv("PACKS_TO_KILL"); root != "" {
		packUntilKilled(root)
		return
	}
	if err := flag.Set("rapid.checks", strconv.Itoa(tier.Amount(25, 100))); err != nil {
		panic(err)
	}
	gittest.Main(m)
}
