package clock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"muster/internal/clock"
)

func TestZeroClockIsTheSystems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clock.Clock
		before := c.UnixTime()
		time.Sleep(3 * time.Second)
		if got := c.UnixTime() - before; got != 3 {
			t.Errorf("after 3 s the clock has moved by %v s", got)
		}
	})
	var c clock.Clock
	if a, b := c.NewText(), c.NewText(); a == b || len(a) < 26 {
		t.Errorf("two texts are %q and %q: they must differ and have 128 bits", a, b)
	}
}

func TestClockIsReplaced(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	c := clock.Clock{Time: func() time.Time { return at }, Text: func() string { return "A" }}
	if c.Now() != at || c.UnixTime() != 1_700_000_000 || c.NewText() != "A" {
		t.Errorf("the clock gives %v, %v, %q", c.Now(), c.UnixTime(), c.NewText())
	}
}

func TestDuration(t *testing.T) {
	for want, d := range map[string]time.Duration{"10m": 10 * time.Minute, "20m10s": 20*time.Minute + 10*time.Second,
		"1h": time.Hour, "1h5m": time.Hour + 5*time.Minute, "30s": 30 * time.Second, "10h0m1s": 10*time.Hour + time.Second, "200ms": 200 * time.Millisecond, "0s": 0} {
		if got := clock.Duration(d); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
