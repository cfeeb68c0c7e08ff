package safetext

import "testing"

// TestCut checks that a longer text is cut between two characters.
func TestCut(t *testing.T) {
	for text, want := range map[string]string{"": "", "abc": "abc", "abcd": "abc ...", "abé": "ab ..."} {
		if got := Cut(text, 3); got != want {
			t.Errorf("Cut(%q, 3) = %q, want %q", text, got, want)
		}
	}
}

// TestList checks that the first names are named and the others counted.
func TestList(t *testing.T) {
	for want, names := range map[string][]string{
		"": nil, "a": {"a"}, "a, b": {"a", "b"}, "a, b and 1 more": {"a", "b", "c"},
	} {
		if got := List(names, 2); got != want {
			t.Errorf("List(%q, 2) = %q, want %q", names, got, want)
		}
	}
}
