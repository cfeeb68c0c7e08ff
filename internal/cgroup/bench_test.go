//go:build linux

package cgroup

import (
	"fmt"
	"os"
	"testing"
)

// What a process pays for its first tool, and for its end.
func BenchmarkPool(b *testing.B) {
	for i := 0; b.Loop(); i++ {
		p, err := NewPool(fmt.Sprintf("%d.bench%d", os.Getpid(), i), Limits{Memory: 1 << 30})
		if err != nil {
			b.Skip(err)
		}
		if _, err := p.Take(Limits{Processes: 100, Memory: 1 << 29}); err != nil {
			b.Fatal(err)
		}
		p.Close()
	}
}
