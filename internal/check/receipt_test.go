package check_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster/internal/check"
	"muster/internal/proc"
	"muster/internal/testing/gittest"
)

// A green receipt is not earned twice, by whichever process; a red one is never used.
func TestAGreenReceiptIsNotEarnedTwice(t *testing.T) {
	t.Parallel()
	w, dir := newWorld(t, threeFiles), t.TempDir()
	runs, receipts := filepath.Join(dir, "runs"), filepath.Join(dir, "receipts")
	count := func() int {
		data, _ := os.ReadFile(runs)
		return strings.Count(string(data), "run\n")
	}
	for _, c := range []struct {
		name    string
		command string
		before  func()
		env     string
		green   bool
		cached  bool
	}{
		{name: "first", command: "true", green: true},
		{name: "again", command: "true", green: true, cached: true},
		{name: "another command", command: "true #", green: true},
		{name: "another environment", command: "true", env: "CI=1", green: true},
		{name: "another terminal", command: "true", env: "TERM=vt100", green: true, cached: true},
		{name: "red", command: "test -e " + dir + "/ok", green: false},
		{name: "red again", command: "test -e " + dir + "/ok", green: false},
		{name: "red and then green", command: "test -e " + dir + "/ok", green: true, before: func() {
			gittest.Write(t, dir, map[string]string{"ok": ""})
		}},
		{name: "another commit of the tree", command: "true", green: true, cached: true, before: func() {
			w.git("commit", "-q", "--allow-empty", "-m", "Same")
		}},
		{name: "flaky is kept", command: "true", green: true, cached: true, before: func() {
			if n := len(slices.DeleteFunc(check.Receipts(receipts), func(x check.Receipt) bool { return !x.Flaky })); n != 1 {
				t.Errorf("%d receipts are flaky", n)
			}
		}},
		{name: "a damaged one", command: "true", green: true, before: func() {
			for _, x := range check.Receipts(receipts) {
				must(t, os.WriteFile(filepath.Join(receipts, x.Key+".json"), []byte(`{"green":true}`), 0o600))
			}
		}},
		{name: "another tree", command: "true", green: true, before: func() {
			gittest.Write(t, w.root, map[string]string{"a.txt": "other\n"})
			w.git("commit", "-qam", "Other")
		}},
	} {
		if c.before != nil {
			c.before()
		}
		before := count()
		res := w.head(w.runner("echo run >> "+runs+"; "+c.command, func(o *check.Options) {
			o.Receipts = receipts
			if c.env != "" {
				o.Environ = proc.WithVariables(o.Environ, c.env)
			}
		}))
		if ran := count() > before; res.Green != c.green || res.Cached != c.cached || ran == c.cached || res.Log == "" {
			t.Errorf("%s: %+v, ran %v", c.name, res, ran)
		}
	}
}

// Where a hook decides after the check, it sees the files also when the check need not run again.
func TestAHookSeesTheFilesOfAKnownTree(t *testing.T) {
	t.Parallel()
	w, receipts := newWorld(t, threeFiles), t.TempDir()
	for _, cached := range []bool{false, true} {
		seen := ""
		res, err := w.runner("true", func(o *check.Options) { o.Receipts = receipts }).Run(t.Context(),
			w.git("rev-parse", "HEAD"), "head", func(_ context.Context, dir string, _ []string, res *check.Result, _ io.Writer) error {
				seen = gittest.Read(t, dir, "a.txt")
				return nil
			})
		if err != nil || !res.Green || res.Cached != cached || seen != "a\n" {
			t.Errorf("%+v, %v, the hook saw %q", res, err, seen)
		}
	}
}
