package faultinject

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// mutants maps the name of each way to break the program to the safeguard that it switches off. No kill shows that
// nothing is synced, so syncing is not among them: internal/testing/simfs tests that.
var mutants = map[string]string{
	"no-lock":           "lock",
	"no-fence":          "fence",
	"no-tail-repair":    "tail-repair",
	"no-second-compare": "second-compare",
}

// disabled holds the names of the safeguards that are switched off in this process.
var disabled sync.Map

// Mutants returns the names that Break takes, sorted.
func Mutants() []string { return slices.Sorted(maps.Keys(mutants)) }

// Break switches a safeguard off in this process. Only Go code can call it: no environment can take a protection away
// from a user's team.
func Break(mutant string) error {
	safeguard, ok := mutants[mutant]
	if !ok {
		return fmt.Errorf("there is no mutant %q, only %s", mutant, strings.Join(Mutants(), ", "))
	}
	disabled.Store(safeguard, true)
	return nil
}

// Restore switches all safeguards on again.
func Restore() { disabled.Clear() }

// Disabled reports whether a safeguard is switched off in this process.
func Disabled(safeguard string) bool {
	_, off := disabled.Load(safeguard)
	return off
}
