package text

import "testing"

// TestCutBytes checks that a longer text is cut between two characters.
func TestCutBytes(t *testing.T) {
	for text, want := range map[string]string{"": "", "abc": "abc", "abcd": "abc ...", "abé": "ab ..."} {
		if got := CutBytes(text, 3); got != want {
			t.Errorf("CutBytes(%q, 3) = %q, want %q", text, got, want)
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

// TestBadLine checks that the first line that is not UTF-8 is found.
func TestBadLine(t *testing.T) {
	for text, want := range map[string]int{"": 0, "a\né\n": 0, "\xff": 1, "a\n\xff\n\xff": 2, "a\n\n\xc3": 3} {
		if got := BadLine([]byte(text)); got != want {
			t.Errorf("BadLine(%q) = %d, want %d", text, got, want)
		}
	}
}
