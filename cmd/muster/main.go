// Command muster runs a team of coding agents on a git repository.
package main

import (
	"fmt"
	"os"

	"muster/internal/cli"
	"muster/internal/proc"
	"muster/internal/testing/failpoint"
)

func main() {
	proc.GuardMain()
	if err := failpoint.Arm(); err != nil {
		fmt.Fprintln(os.Stderr, "muster:", err)
		os.Exit(2)
	}
	os.Exit(cli.Main())
}
