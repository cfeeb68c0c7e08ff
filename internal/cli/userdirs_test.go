package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/internal/proc"
)

// Where nothing can be written in the directory that TMPDIR names, another one is used, and people are told.
func TestWithTemporary(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for named, isUsed := range map[string]bool{"": true, dir: true, "/gone/tmp": false, file: false, "relative": false} {
		env := []string{"A=b", "TMPDIR=" + named}
		got, line := withTemporary(env)
		is := proc.Variable(got, "TMPDIR")
		if (is == named) != isUsed || (line == "") != isUsed || !isUsed && !strings.Contains(line, named) || proc.Variable(got, "A") != "b" {
			t.Errorf("%q: %q, %q", named, is, line)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "muster-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// Where the user's cache cannot be made, there is none.
func TestUnusableDirs(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for cache, want := range map[string]int{t.TempDir(): 0, file: 1} {
		a := &App{Env: []string{"XDG_CACHE_HOME=" + cache}}
		lines := a.unusableDirs()
		if len(lines) != want || (cacheDir(a) == "") != (want > 0) || want > 0 && !strings.Contains(lines[0], "XDG_CACHE_HOME") {
			t.Errorf("%s: %q, %q", cache, lines, cacheDir(a))
		}
	}
}
