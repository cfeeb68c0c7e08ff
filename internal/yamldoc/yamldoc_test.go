package yamldoc

import (
	"strings"
	"testing"
)

// What lies too deep is refused before the parser sees it: it takes minutes and gigabytes for some of these.
func TestDepthIsBounded(t *testing.T) {
	const n = 16 << 10
	steps := ""
	for i := range 100 {
		steps += strings.Repeat(" ", i) + "a:\n"
	}
	for _, text := range []string{
		strings.Repeat("[", n), strings.Repeat("[", n) + strings.Repeat("]", n), strings.Repeat("{a: ", n),
		strings.Repeat("{", n), strings.Repeat("- ", n) + "x", strings.Repeat("? ", n), steps,
		"a: " + strings.Repeat("[{b: ", n), "- a:\n    - " + strings.Repeat("- ", 63) + "x",
	} {
		_, err := Parse("deep.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), "deeper in each other than 64") {
			t.Errorf("%.20q: %v", text, err)
		}
	}
	// What people write stays far below, and long lists are not deep.
	for _, text := range []string{
		strings.Repeat("- a: [1, {b: c}]\n", 1000), "a:\n" + strings.Repeat("  - x\n  -  - y\n", 1000), "a: '" +
			strings.Repeat("[", n) + "'\nb: |\n" + strings.Repeat(" [ { -\n", 1000), strings.Repeat("- ", 60) + "x",
	} {
		if _, err := Parse("flat.yaml", []byte(text)); err != nil {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}
