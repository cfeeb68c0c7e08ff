package landing

import "testing"

func TestDefaultJobs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cores  int
		memory uint64
		want   int
	}{
		{1, 0, 1}, {2, 64 << 30, 1}, {8, 0, 2}, {8, 6 << 30, 1}, {16, 64 << 30, 4}, {128, 512 << 30, 4}, {16, 1 << 30, 1},
	} {
		if got := defaultJobs(c.cores, c.memory); got != c.want {
			t.Errorf("%d cores, %d bytes: %d, want %d", c.cores, c.memory, got, c.want)
		}
	}
}
