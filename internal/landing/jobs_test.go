package landing

import "testing"

func TestDefaultJobs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cores  int
		memory uint64
		jobs   int
		checks int
	}{
		{1, 0, 1, 4}, {2, 64 << 30, 1, 4}, {8, 0, 2, 8}, {8, 6 << 30, 1, 6}, {16, 64 << 30, 4, 16},
		{128, 512 << 30, 4, 128}, {16, 1 << 30, 1, 2},
	} {
		jobs, checks := defaultJobs(c.cores, c.memory), checksAtOnce(c.cores, c.memory)
		if jobs != c.jobs || checks != c.checks {
			t.Errorf("%+v: %d jobs and %d checks", c, jobs, checks)
		}
	}
}

// A check that has never failed by chance is run again once, and one that has as often as it takes to be sure.
func TestChance(t *testing.T) {
	for _, c := range []struct{ greens, flaky, want int }{
		{0, 0, 2}, {12, 0, 2}, {1000, 0, 2}, {1, 1, 6}, {1000, 1, 2}, {10, 3, 5}, {100, 30, 5}, {10, 10, 6}, {20, 1, 3},
	} {
		var x chance
		for i := range c.greens {
			x.sawGreen(i < c.flaky)
		}
		reds := 1
		for x.mayBe(reds, "") {
			reds++
		}
		if reds != c.want {
			t.Errorf("%d of %d by chance: a task comes back after %d red checks, want %d", c.flaky, c.greens, reds, c.want)
		}
	}
}
