package check_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"muster/internal/check"
	"muster/internal/ports"
)

// Two checks at once have ports of their own, in slots and in temporary directories, and a slot has the same again.
func TestChecksHavePorts(t *testing.T) {
	for _, hasSlots := range []bool{true, false} {
		w := newWorld(t, map[string]string{"a": "a"})
		cache, said := t.TempDir(), t.TempDir()
		run := func(name, rest string) []string {
			r := w.runner(`echo $PORT $MUSTER_PORT_1 $MUSTER_PORT_2 > `+filepath.Join(said, name)+`; `+rest, func(o *check.Options) {
				if o.Ports, o.PortCount = ports.Open(cache), 2; hasSlots {
					o.Cache = cache + "/checks"
				}
			})
			if res := w.head(r); !res.Green {
				t.Errorf("%s: %s\n%s", name, res.How, res.Output)
			}
			text, err := os.ReadFile(filepath.Join(said, name))
			must(t, err)
			return strings.Fields(string(text))
		}
		var first, second []string
		var group sync.WaitGroup
		// Each waits for the other.
		group.Go(func() { first = run("first", "until test -s "+said+"/second; do sleep 0.01; done") })
		group.Go(func() { second = run("second", "until test -s "+said+"/first; do sleep 0.01; done") })
		group.Wait()
		if len(first) != 3 || first[0] != first[1] || len(second) != 3 || first[1] == second[1] || first[2] == second[2] {
			t.Errorf("two checks at once have %v and %v", first, second)
		}
		again := run("again", "true")
		if hasSlots && again[0] != first[0] && again[0] != second[0] {
			t.Errorf("the next check has %v, after %v and %v", again, first, second)
		}
	}
}
