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
