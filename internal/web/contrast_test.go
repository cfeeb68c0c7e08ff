package web

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"muster/internal/testing/require"
)

// colours reads the colours of both themes from the style sheet: the second block replaces some of the first.
func colours(t *testing.T) map[string]map[string]string {
	t.Helper()
	data := require.Value(files.ReadFile("static/style.css"))(t)
	themes := map[string]map[string]string{"light": {}, "dark": {}}
	blocks := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllStringSubmatch(string(data), -1)
	if len(blocks) != 2 {
		t.Fatalf("%d blocks of colours", len(blocks))
	}
	for i, b := range blocks {
		for _, m := range regexp.MustCompile(`--([\w-]+): (#[0-9a-f]{6})\b`).FindAllStringSubmatch(b[1], -1) {
			if i == 0 {
				themes["light"][m[1]] = m[2]
			}
			themes["dark"][m[1]] = m[2]
		}
	}
	return themes
}

// contrast is that of two colours as WCAG 2 computes it.
func contrast(a, b string) float64 {
	light := func(colour string) float64 {
		n, _ := strconv.ParseUint(strings.TrimPrefix(colour, "#"), 16, 32)
		linear := func(c uint64) float64 {
			v := float64(c&255) / 255
			if v <= 0.04045 {
				return v / 12.92
			}
			return math.Pow((v+0.055)/1.055, 2.4)
		}
		return 0.2126*linear(n>>16) + 0.7152*linear(n>>8) + 0.0722*linear(n)
	}
	x, y := light(a), light(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// Every text can be read on every ground that it may stand on, in both themes (WCAG AA), and what is drawn is seen.
func TestContrast(t *testing.T) {
	if got := contrast("#000000", "#ffffff"); math.Abs(got-21) > 0.01 {
		t.Fatalf("black on white has %v", got)
	}
	grounds := []string{"ground", "raised", "sunken", "accent-ground", "good-ground", "bad-ground", "warn-ground"}
	for theme, c := range colours(t) {
		check := func(front, back string, least float64) {
			if c[front] == "" || c[back] == "" {
				t.Fatalf("%s: %s or %s is missing", theme, front, back)
			}
			if got := contrast(c[front], c[back]); got < least {
				t.Errorf("%s: %s on %s has a contrast of %.2f, and needs %.1f", theme, front, back, got, least)
			}
		}
		for _, text := range []string{"text", "faint", "accent", "good", "bad", "warn"} {
			for _, ground := range grounds {
				check(text, ground, 4.5)
			}
		}
		for _, code := range []string{"text", "keyword", "string", "number", "faint"} {
			for _, ground := range []string{"ground", "raised", "sunken", "good-ground", "bad-ground"} {
				check(code, ground, 4.5)
			}
		}
		for _, code := range []string{"text", "keyword", "string", "number"} {
			check(code, "good-word", 4.5)
			check(code, "bad-word", 4.5)
		}
		check("on-accent", "accent", 4.5)
		for _, drawn := range []string{"s0", "s1", "s2", "s3", "s4", "s5", "s6"} {
			check(drawn, "raised", 3)
		}
	}
}
