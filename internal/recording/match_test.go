package recording

import (
	"testing"

	"muster/internal/testing/tier"
)

// Names that differ from run to run belong together in pairs. All else that differs is a difference, at its place.
func TestCompare(t *testing.T) {
	tier.All(t)
	for name, c := range map[string]struct {
		recorded, now []string
		at            int // of the last text; -1: there is no difference
	}{
		"the same":          {[]string{"ok"}, []string{"ok"}, -1},
		"words":             {[]string{"all is well"}, []string{"all is bad"}, 7},
		"an id":             {[]string{"id 0a1b2c3d4e5f6071 of"}, []string{"id 1111111111111111 of"}, -1},
		"its beginning":     {[]string{"0a1b2c3d4e", "0a1b2c3"}, []string{"1234567890", "1234567"}, -1},
		"another beginning": {[]string{"0a1b2c3d4e", "0a1b2c3"}, []string{"1234567890", "7654321"}, 0},
		"two for one":       {[]string{"id 0a1b2c3", "id 0a1b2c3"}, []string{"id 1234567", "id 7654321"}, 3},
		"durations":         {[]string{"ok 0.31s, 2m3s, 4.5 s (cached)"}, []string{"ok (cached), 7ms, 12 s 1h"}, -1},
		"times":             {[]string{"at 12:01:02 on 2026-11-23 (Monday)"}, []string{"at 03:04:05 on 2027-01-02 (Saturday)"}, -1},
		"a port":            {[]string{"at 127.0.0.1:43211"}, []string{"at 127.0.0.1:50001"}, -1},
		"the directory":     {[]string{"/home/a/r/.worktrees/x"}, []string{"/tmp/b/.worktrees/x"}, -1},
		"the checkout":      {[]string{"a\nThe user's checkout: on main\nb"}, []string{"a\nb"}, -1},
		"nothing":           {[]string{""}, []string{"1234567"}, 0},
	} {
		m := newMatcher("/home/a/r", "/tmp/b")
		var d *difference
		for i := range c.recorded {
			if d = m.compare(c.recorded[i], c.now[i]); d != nil && i < len(c.recorded)-1 {
				t.Errorf("%s: the text %d differs: %+v", name, i, d)
			}
		}
		if got := map[bool]int{true: -1}[d == nil]; d == nil && got != c.at || d != nil && d.at != c.at {
			t.Errorf("%s: got %+v, want a difference at %d", name, d, c.at)
		}
	}
}
