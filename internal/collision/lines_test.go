package collision

import (
	"strings"
	"testing"
)

// TestConflictLines checks that the lines of both sides are named as each has them in its own file.
func TestConflictLines(t *testing.T) {
	const a, b = "aaaa", "bbbb"
	text := func(lines string) []byte { return []byte(strings.ReplaceAll(lines, " ", "\n") + "\n") }
	conflict := func(ours, theirs string) string {
		return strings.Join(strings.Fields("<<<<<<<_aaaa "+ours+" ======= "+theirs+" >>>>>>>_bbbb"), " ")
	}
	for name, c := range map[string]struct{ merged, ours, theirs, inOurs, inTheirs string }{
		"one line": {"1 " + conflict("A", "B") + " 3", "1 A 3", "1 B 3", "2", "2"},
		"the other side has added lines before": {"n n 1 " + conflict("A A", "B") + " 3", "1 A A 3", "n n 1 B 3", "2-3",
			"4"},
		"two places": {"1 " + conflict("A", "B") + " 3 n " + conflict("C", "D D"), "1 A 3 C", "1 B 3 n D D", "2, 4",
			"2, 5-6"},
		"deleted here":               {"1 " + conflict("", "B") + " 3", "1 3", "1 B 3", "2", "2"},
		"deleted at the end":         {"1 " + conflict("", "B"), "1", "1 B", "1", "2"},
		"with the base":              {"1 <<<<<<<_aaaa A |||||||_base O ======= B >>>>>>>_bbbb 3", "1 A 3", "1 B 3", "2", "2"},
		"no markers":                 {"1 2 3", "1 2", "2 3", "", ""},
		"markers of the file itself": {"1 <<<<<<<_HEAD 2 ======= 3 >>>>>>>_x", "1", "1", "", ""},
		"never ends":                 {"<<<<<<<_aaaa A", "A", "B", "", ""},
		"not there":                  {conflict("A", "B"), "", "", "1", "1"},
	} {
		merged := strings.ReplaceAll(string(text(c.merged)), "_", " ")
		inOurs, inTheirs := conflictLines([]byte(merged), text(c.ours), text(c.theirs), a, b)
		if inOurs != c.inOurs || inTheirs != c.inTheirs {
			t.Errorf("%s: %q and %q, want %q and %q", name, inOurs, inTheirs, c.inOurs, c.inTheirs)
		}
	}
}

// TestConflictLinesAreBounded checks that a file that is made to be searched for ever is not, and that many places are
// only counted.
func TestConflictLinesAreBounded(t *testing.T) {
	same := strings.Repeat("x\n", 100_000)
	block := strings.Repeat("x\n", 50_000) + "y\n"
	merged := strings.Repeat("<<<<<<< a\n"+block+"=======\n>>>>>>> b\n", 5)
	if ours, _ := conflictLines([]byte(merged), []byte(same), nil, "a", "b"); ours == "" {
		t.Error("no lines are named")
	}
	many := strings.Repeat("<<<<<<< a\n1\n=======\n2\n>>>>>>> b\n", 9)
	ours, _ := conflictLines([]byte(many), []byte(strings.Repeat("1\n", 9)), []byte(strings.Repeat("2\n", 9)), "a", "b")
	if ours != "1, 2, 3, 4, 5 and 4 more places" {
		t.Errorf("many places: %q", ours)
	}
}
