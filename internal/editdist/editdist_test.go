package editdist

import (
	"testing"

	"pgregory.net/rapid"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"alice", "alice", 0}, {"", "abc", 3}, {"alcie", "alice", 1}, {"alic", "alice", 1},
		{"alixe", "alice", 1},
		{"ab", "ba", 1}, {"lead", "leda", 1}, {"bob", "rob", 1}, {"tester", "texter2", 2},
		{"bob", "alice", 5}, {"kitten", "sitting", 3}} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("from %q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestDistanceIsSymmetric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-c]{0,6}`)
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		d := Distance(a, b)
		if d != Distance(b, a) || (d == 0) != (a == b) || d > max(len(a), len(b)) {
			t.Fatalf("from %q to %q: %d, back: %d", a, b, d, Distance(b, a))
		}
	})
}
