// Command muster runs a team of coding agents on a git repository.
package main

import (
	"os"

	"muster/internal/cli"
	"muster/internal/proc"
	"muster/internal/sandbox"
)

func main() {
	proc.GuardMain()
	sandbox.ForwardMain()
	os.Exit(cli.Main())
}
