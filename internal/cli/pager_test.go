package cli

import (
	"os"
	"path/filepath"
	"testing"

	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
)

func TestPagerCommand(t *testing.T) {
	home, repo, bin := t.TempDir(), gittest.Repo(t, nil), t.TempDir()
	gittest.Git(t, repo, "config", "core.pager", "repositorys")
	t.Chdir(repo)
	require.NoError(t, os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[core]\n\tpager = users\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "less"), []byte("#!/bin/sh\n"), 0o700))
	programs := t.TempDir()
	for _, name := range []string{"mine", "users", "given", "other"} {
		require.NoError(t, os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\n"), 0o700))
	}
	own, none, path := "HOME="+home, "HOME="+t.TempDir(), "PATH="+programs+":"+os.Getenv("PATH")
	for _, c := range []struct {
		want    string
		environ []string
	}{
		{"mine", []string{own, path, "GIT_PAGER=mine", "PAGER=other"}},
		{"", []string{own, path, "GIT_PAGER=", "PAGER=other"}},
		{"users", []string{own, path, "PAGER=other"}},
		{"given", []string{own, path, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.pager", "GIT_CONFIG_VALUE_0=given"}},
		{"other -x", []string{none, path, "PAGER=other -x"}},
		{"", []string{none, path, "PAGER=cat"}},
		{"", []string{none, path, "PAGER=not-there -R"}}, // what is printed is not lost
		{"X=1 not-there", []string{none, path, "PAGER=X=1 not-there"}},
		{"", []string{none, path, "PAGER="}},
		{"less -FRX", []string{none, "PATH=" + bin}},
		{"", []string{none, "PATH="}},
	} {
		environ := append(c.environ, "GIT_CONFIG_NOSYSTEM=1", "GIT_DIR="+filepath.Join(repo, ".git"))
		if got := pagerCommand(t.Context(), environ); got != c.want {
			t.Errorf("%v: %q, want %q", c.environ, got, c.want)
		}
	}
}

// A pager that draws differences by itself gets them as git prints them.
func TestPagersOfPatches(t *testing.T) {
	for command, want := range map[string]bool{"delta --dark": true, "/opt/bin/diff-so-fancy": true, "less -R": false, "": false} {
		if got := readsPatches(command); got != want {
			t.Errorf("%q: %v", command, got)
		}
	}
}
