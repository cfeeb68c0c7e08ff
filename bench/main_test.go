//go:build linux

// Package bench measures muster, each figure beside its limit in the same run: `go -C bench test -run '^$' -bench .`
// (README.md has the whole command and the table that it makes). It builds the program, and a bare one beside it, and
// looks at it from outside wherever the figure is one that a user sees. It reads /proc, so it is for Linux.
//
// Read in this order: main_test.go, measure_test.go (samples), table_test.go (figures, their limits, the table), world_test.go (a repository and its
// programs), server_test.go (the stand-in for a model's server), then the benchmarks by name.
package bench

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// muster and bare are the paths of the built programs.
var muster, bare string

// program is measured instead of the one that is built here: to compare two.
var program = flag.String("program", "", "measure the program in `FILE` instead of building it")

// tableFile gets the table of what was measured.
var tableFile = flag.String("table", "", "write the table of the figures to `FILE`, in Markdown; in one that has a table, only that is replaced")

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(build(m.Run))
}

func build(run func() int) int {
	dir, err := os.MkdirTemp("", "muster-bench-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	muster, bare = filepath.Join(dir, "muster"), filepath.Join(dir, "bare")
	for path, pkg := range map[string]string{muster: "./cmd/muster", bare: "./bare"} {
		c := exec.Command("go", "build", "-buildvcs=false", "-o", path, pkg)
		if path == muster {
			c.Dir = ".." // the module of the program, without failpoints, as people install it
		}
		if out, err := c.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%s cannot be built: %v\n%s", pkg, err, out)
			return 1
		}
	}
	if *program != "" {
		muster = *program
	}
	code := run()
	if code != 0 {
		return code // what failed has no figure
	}
	if err := writeTable(*tableFile); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}
