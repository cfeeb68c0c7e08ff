//go:build linux

package proc

import "testing"

// What the limits of a tool cost: a start and an end of a program, with limits beside without.
func BenchmarkLimits(b *testing.B) {
	for name, l := range map[string]Limits{"none": {}, "all": {Processes: 4096, Memory: 8 << 30, FileSize: 1 << 34, FreeDisk: 1 << 20}} {
		b.Run(name, func(b *testing.B) {
			g := guardOf(b)
			for b.Loop() {
				p, err := g.Start(b.Context(), Spec{Argv: []string{"/bin/true"}, Dir: "/tmp", Limits: l})
				if err == nil {
					_, err = p.Wait()
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
