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
		p := newPool(b, fmt.Sprintf("%d.bench%d", os.Getpid(), i))
		if _, err := p.Take(Limits{Processes: 100, Memory: 1 << 29}); err != nil {
			b.Fatal(err)
		}
		p.Close()
	}
}
