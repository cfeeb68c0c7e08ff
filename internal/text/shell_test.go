package text

import "testing"

func TestShellQuote(t *testing.T) {
	for in, want := range map[string]string{
		"/home/ann/repo":    "/home/ann/repo",
		"/home/ann/my work": "'/home/ann/my work'",
		"it's":              `'it'\''s'`,
		"$HOME":             "'$HOME'",
		"a\nb":              "'a\nb'",
		"":                  "''",
	} {
		if got := ShellQuote(in); got != want {
			t.Errorf("ShellQuote(%q) = %s, want %s", in, got, want)
		}
	}
}
