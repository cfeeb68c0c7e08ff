package failpoint

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
)

// Mutant is a protection that is switched off.
type Mutant uint32

// The mutants. Each is asked for at one place in the code. That nothing is synced shows in no kill: internal/durable/simfs has that one.
const (
	NoLock      Mutant = 1 << iota // Lock excludes nobody
	NoFence                        // an old claim counts as the present one
	NoTail                         // the rest of a write that did not come to its end is taken for a whole line
	NoRecompare                    // a document is compared before its new content is staged, not again before it is renamed
)

var names = map[Mutant]string{NoLock: "no-lock", NoFence: "no-fence", NoTail: "no-tail-repair", NoRecompare: "no-second-compare"}

func (m Mutant) String() string { return names[m] }

var broken atomic.Uint32

// Break switches a protection off in this process.
func Break(m Mutant) { broken.Or(uint32(m)) }

// Mend switches all protections on again.
func Mend() { broken.Store(0) }

// Broken reports whether a protection is switched off.
func Broken(m Mutant) bool { return broken.Load()&uint32(m) != 0 }

// ParseMutant is the mutant of that name.
func ParseMutant(name string) (Mutant, error) {
	var all []string
	for m, n := range names {
		if n == name {
			return m, nil
		}
		all = append(all, n)
	}
	slices.Sort(all)
	return 0, fmt.Errorf("there is no mutant %q, only %s", name, strings.Join(all, ", "))
}
