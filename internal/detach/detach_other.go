//go:build !unix

package detach

import (
	"errors"
	"os"
	"os/exec"
)

// IsPossible reports whether a process can leave its terminal on this system.
const IsPossible = false

// errNotHere says that a process cannot leave its terminal on this system. Callers look at IsPossible before.
var errNotHere = errors.New("a process cannot leave its terminal on this system")

func pair() (ours, theirs *os.File, err error) { return nil, nil, errNotHere }

func isPipe(int) bool { return false }

func notify() (<-chan os.Signal, func()) { return nil, func() {} }

func killedBy(*exec.ExitError) int { return 1 }

func hasTerminal(uintptr) bool { return false }

// Leave returns an error.
func (t *Terminal) Leave() error { return errNotHere }
