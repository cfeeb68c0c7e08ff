package board

import (
	"fmt"
	"testing"

	"muster"
)

// A claim in a warm process: what it costs must not grow with the board.
func BenchmarkClaimNext(bm *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		bm.Run(fmt.Sprint(n), func(bm *testing.B) {
			b := filled(bm, n)
			bm.ResetTimer()
			for range bm.N {
				t, ok, err := b.ClaimNext(bm.Context(), Claim{Owner: "alice"})
				if err != nil || !ok {
					bm.Fatal(ok, err)
				}
				if _, err := b.Release(bm.Context(), t.ID, t.Fence, Release{}); err != nil {
					bm.Fatal(err)
				}
			}
		})
	}
}

// filled is a board of n tasks, every second of which waits for the one before, in a process that knows them.
func filled(bm *testing.B, n int) *Board {
	w := inMemory(bm)
	for id := 1; id <= n; id++ {
		t := muster.Task{ID: muster.TaskID(id), Subject: "x", Status: muster.Pending}
		if id%2 == 0 {
			t.DependsOn = []muster.TaskID{muster.TaskID(id - 1)}
		}
		data, _ := muster.Encode(t)
		w.write(key(t.ID), string(data))
	}
	b := w.board()
	if err := b.tasks.Refresh(w.ctx); err != nil {
		bm.Fatal(err)
	}
	return b
}
