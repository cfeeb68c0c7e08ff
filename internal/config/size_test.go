package config

import "testing"

// Sizes are read as people write them, and nothing else is taken for one.
func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "": 0, "1KB": 1 << 10, "512MB": 512 << 20, "1.5gb": 3 << 29, " 2 TB": 2 << 40,
		"75%": 150, "100%": 200} {
		if got, err := ParseSize(text, 200); err != nil || got != want {
			t.Errorf("%q is %d, %v and not %d", text, got, err, want)
		}
	}
	for _, text := range []string{"8", "-1GB", "GB", "%", "NaNGB", "InfGB", "1e30TB", "8 GiB", "8GBs", "0x8GB0", "-5%"} {
		if got, err := ParseSize(text, 200); err == nil {
			t.Errorf("%q is taken for %d bytes", text, got)
		}
	}
}
