// Command muster runs a team of coding agents on a git repository.
package main

import (
	"os"

	"muster/internal/cli"
	"muster/internal/proc"
)

func main() {
	proc.GuardMain()
	os.Exit(cli.Main())
}
