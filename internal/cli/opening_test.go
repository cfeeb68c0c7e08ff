package cli

import "testing"

// TestLandsOn checks what the start of a conversation says about where work lands.
func TestLandsOn(t *testing.T) {
	for _, c := range []struct{ land, branch, want string }{
		{"", "main", "lands on muster/words; main changes only with /merge"},
		{"", "", "lands on muster/words"},
		{"", "muster/words", "cannot land on muster/words while it is checked out: switch to your branch"},
		{"main", "main", "lands on main"},
		{"next", "main", "lands on next; main changes only with /merge"},
	} {
		if got := landsOn(c.land, "words", c.branch); got != c.want {
			t.Errorf("%q on %q: %q", c.land, c.branch, got)
		}
	}
}

func TestIsLight(t *testing.T) {
	for colours, want := range map[string]bool{"": false, "15;0": false, "0;15": true, "0;7": true, "0;default;15": true, "7;8": false} {
		if isLight(colours) != want {
			t.Errorf("%q is light: %v", colours, !want)
		}
	}
}
