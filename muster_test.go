package muster_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"muster"
)

func TestCheckName(t *testing.T) {
	for _, n := range []muster.Name{"a", "alice", "worker-12", "a--b", "a-", "comet", "com", "lpt", "lpt10", muster.Name("a" + strings.Repeat("b", 31))} {
		if err := muster.CheckName(n); err != nil {
			t.Errorf("%q: %v", n, err)
		}
	}
	for _, n := range []muster.Name{"", "Alice", "1st", "-a", "a b", "a_b", "ä", "a\n", "a/b", "..", "a.b", muster.Name("a" + strings.Repeat("b", 32)),
		muster.Lead, muster.User, muster.All, muster.System, "con", "nul", "aux", "prn", "com1", "lpt0"} {
		err := muster.CheckName(n)
		if !errors.Is(err, muster.ErrInvalid) {
			t.Errorf("%q: %v", n, err)
		}
	}
	if err := muster.CheckName("Bob"); !strings.Contains(err.Error(), muster.NameRule) || !strings.Contains(err.Error(), `"Bob"`) {
		t.Errorf("the rule is not said: %v", err)
	}
}

func TestSlug(t *testing.T) {
	for text, want := range map[string]muster.Name{
		"api-v2": "api-v2", "API v2": "api-v2", "My  Project!!": "my-project", "2048": "none", "2048-game": "game", "lead": "none",
		"CON": "none", "": "none", "设计": "none", "ünï": "n", "a" + strings.Repeat("b", 40): muster.Name("a" + strings.Repeat("b", 31)),
		"x" + strings.Repeat("-", 50) + "y": "x-y",
	} {
		if got := muster.Slug(text, "none"); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestLaneName(t *testing.T) {
	for subject, want := range map[string]muster.Name{
		"Tokenizer":                         "task-7-tokenizer",
		"重构":                                "task-7",
		"Make the word counter count words": "task-7-make-the-word-counter-cou",
		"lead":                              "task-7",
	} {
		if got := muster.LaneName(7, subject); got != want {
			t.Errorf("%q: got %q, want %q", subject, got, want)
		}
	}
}

func TestErrors(t *testing.T) {
	sentinels := map[muster.Code]error{
		muster.NotFound: muster.ErrNotFound, muster.Stale: muster.ErrStale, muster.Fenced: muster.ErrFenced, muster.Held: muster.ErrHeld,
		muster.Invalid: muster.ErrInvalid, muster.Corrupt: muster.ErrCorrupt, muster.Trimmed: muster.ErrTrimmed, muster.Unavailable: muster.ErrUnavailable,
	}
	for code := range sentinels {
		err := error(muster.Errorf(code, "task %d: %w", 7, fs.ErrNotExist))
		wrapped := fmt.Errorf("while asking: %w", err)
		for other, sentinel := range sentinels {
			if got := errors.Is(wrapped, sentinel); got != (other == code) {
				t.Errorf("%s is %s: %v", code, other, got)
			}
		}
		if !errors.Is(wrapped, fs.ErrNotExist) {
			t.Errorf("%s lost its cause", code)
		}
		if err.Error() != "task 7: file does not exist" {
			t.Errorf("got %q", err)
		}
		if sentinels[code].Error() != string(code) {
			t.Errorf("got %q", sentinels[code])
		}
	}
	// Two errors of one code are not each other.
	if errors.Is(muster.Errorf(muster.Held, "a"), muster.Errorf(muster.Held, "b")) {
		t.Error("an error matched another one's sentence")
	}
	plain := muster.Errorf(muster.Held, "task 7 is bob's")
	hinted := plain.WithHint("muster task release %d", 7)
	if plain.Hint != "" || hinted.Hint != "muster task release 7" || hinted.Error() != plain.Error() || !errors.Is(hinted, muster.ErrHeld) {
		t.Errorf("%+v, %+v", plain, hinted)
	}
}
