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
		{1, 0, 1, 4}, {2, 64 << 30, 1, 4}, {8, 0, 2, 8}, {8, 6 << 30, 1, 6}, {16, 64 << 30, 2, 16},
		{128, 512 << 30, 2, 128}, {16, 1 << 30, 1, 2},
	} {
		jobs, checks := defaultJobs(c.cores, c.memory), checksAtOnce(c.cores, c.memory)
		if jobs != c.jobs || checks != c.checks {
			t.Errorf("%+v: %d jobs and %d checks", c, jobs, checks)
		}
	}
}
