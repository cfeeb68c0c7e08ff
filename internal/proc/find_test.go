//go:build unix

package proc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/internal/testing/require"
)

// A program of the repository never stands in for the user's own, whatever the PATH says.
func TestFindOutside(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"repo/bin/p", "repo2/p", "mine/p", "mine/repo-p", "other/p"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(at(name)), 0o700))
		if err := os.WriteFile(at(name), []byte("#!/bin/sh\n"), 0o700); err != nil { //nolint:gosec // A program.
			t.Fatal(err)
		}
	}
	require.NoError(t, os.WriteFile(at("other/data"), nil, 0o600))
	for name, to := range map[string]string{"links/p": "repo/bin/p", "linked": "repo", "repo/bin/out": "mine/p", "near/p": "mine/p"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(at(name)), 0o700))
		require.NoError(t, os.Symlink(at(to), at(name)))
	}
	t.Chdir(at("repo/bin"))
	for _, c := range []struct{ program, path, want string }{
		{"p", at("mine"), at("mine/p")},
		{"p", at("repo/bin") + ":" + at("mine"), at("mine/p")},
		{"p", at("linked/bin") + ":" + at("links"), ""},
		{"p", ".:bin::" + at("other"), at("other/p")},
		{"p", at("near"), at("near/p")},
		{"p", at("repo2"), at("repo2/p")}, // beside the repository
		{"out", at("repo/bin"), ""},
		{"data", at("other"), ""},
		{"p", "", ""},
	} {
		got, env := FindOutside(c.program, []string{"PATH=/none", "PATH=" + c.path}, at("repo"), "")
		if path := Variable(env, "PATH"); strings.Contains(path, at("repo")+"/") || len(env) != 1 || strings.Contains(path, "linked") ||
			!strings.HasPrefix(path, "/") && path != "" {
			t.Errorf("a PATH of %s becomes %s", c.path, path)
		}
		if got != c.want {
			t.Errorf("%s in %s: %q, want %q", c.program, c.path, got, c.want)
		}
	}
	if got, _ := FindOutside("p", nil); got != "" {
		t.Errorf("without a PATH: %q", got)
	}
	if got, _ := FindOutside("p", []string{"PATH=" + at("mine")}, at("linked"), at("none")); got != at("mine/p") {
		t.Errorf("a link to the repository: %q", got)
	}
	if got, _ := FindOutside("p", []string{"PATH=" + at("repo/bin")}, at("linked")); got != "" {
		t.Errorf("a repository named by a link: %q", got)
	}
}
