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

// TestCommonEnds checks that what two texts share is counted once.
func TestCommonEnds(t *testing.T) {
	for _, c := range []struct {
		a, b       string
		head, tail int
	}{
		{"", "", 0, 0}, {"abc", "abc", 3, 0}, {"abc", "axc", 1, 1}, {"aa", "aaa", 2, 0}, {"ab", "xab", 0, 2},
	} {
		if head, tail := CommonEnds([]byte(c.a), []byte(c.b)); head != c.head || tail != c.tail {
			t.Errorf("CommonEnds(%q, %q) = %d, %d, want %d, %d", c.a, c.b, head, tail, c.head, c.tail)
		}
	}
}

func TestSuggest(t *testing.T) {
	words := []string{"subject", "role"}
	for word, want := range map[string]string{"rol": " (did you mean role?)", "subjetc": " (did you mean subject?)",
		"owner": ""} {
		if got := Suggest(word, words); got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
	if got := Suggest("word", nil); got != "" {
		t.Errorf("of no words: %q", got)
	}
}
