package check_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/internal/check"
	"muster/internal/localfiles"
	"muster/internal/setup"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
)

// Set-up and check have the user's local files. The kept set-up has none of them, and is not used with others; nor is a
// receipt. They are gone after the check.
func TestLocalFilesInChecks(t *testing.T) {
	t.Parallel()
	w, cache, receipts := newWorld(t, map[string]string{"a.txt": "a\n", ".gitignore": ".env\nmade/\n"}), t.TempDir(), t.TempDir()
	ran := filepath.Join(t.TempDir(), "ran")
	run := func(key string) (res check.Result, times int) {
		gittest.Write(t, w.root, map[string]string{".env": key})
		set := require.Value(localfiles.Read(t.Context(), w.repo, ".env\n"))(t)
		r := w.runner("test -f .env && test -f made/x && test ! -L .env", func(o *check.Options) {
			o.Check.Setup = "test -f .env && mkdir made && cp a.txt made/x && echo set up >>" + ran
			o.Local, o.Cache, o.Receipts = set, filepath.Join(cache, "checks"), receipts
			o.Setups = setup.Open(w.repo, cache, nil)
		})
		res = w.head(r)
		data, _ := os.ReadFile(ran)
		return res, strings.Count(string(data), "set up")
	}
	for _, c := range []struct {
		key      string
		isCached bool
		times    int
	}{{"one", false, 1}, {"one", true, 1}, {"two", false, 2}, {"one", true, 2}} {
		if res, times := run(c.key); !res.Green || res.Cached != c.isCached || times != c.times {
			t.Errorf("%+v: %+v, set up %d times", c, res, times)
		}
	}
	require.NoError(t, os.RemoveAll(receipts))
	if res, times := run("one"); !res.Green || res.Cached || times != 2 {
		t.Errorf("with the kept set-up: %+v, set up %d times", res, times)
	}
	require.NoError(t, filepath.WalkDir(cache, func(path string, _ os.DirEntry, err error) error {
		if filepath.Base(path) == ".env" {
			t.Errorf("%s is left", path)
		}
		return err
	}))
}
