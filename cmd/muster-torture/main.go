// Command muster-torture kills the processes of throw-away teams, and compares the state that they leave with
// what they were promised. It needs failpoints, so it is started from the source:
//
//	go run -tags failpoint ./cmd/muster-torture
package main

import (
	"os"

	"muster/internal/proc"
	"muster/internal/testing/torture"
)

func main() {
	proc.GuardMain()
	os.Exit(torture.Main(os.Args[1:]))
}
