package confined

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster/internal/sandbox"
	"muster/internal/testing/require"
)

// Of a git directory and its submodules only what git needs is shown, and settings without passwords.
func TestGitDir(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	const secret = "[remote \"o\"]\n\turl = https://u:s3cr3t@example.com/x\n"
	for name, text := range map[string]string{"HEAD": "", "config": secret, "config.worktree": "[core]\n\tbare = false\n",
		"objects/x": "", "refs/x": "", "packed-refs": "", "git-crypt/keys/default": "k", "hooks/pre-commit": "", "annex/creds/x": "k",
		"worktrees/lane/index": "", "config.bak": secret, "FETCH_HEAD": "", "modules/a/b/HEAD": "", "modules/a/b/config": secret,
		"modules/a/b/git-crypt/keys/default": "k", "modules/a/b/modules/c/HEAD": "", "modules/a/b/modules/c/config": "[core]\n",
		"modules/plain": "", "packed-refs.lock": "", "BISECT_LOG": ""} {
		require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(at(name)), 0o700), os.WriteFile(at(name), []byte(text), 0o600)))
	}
	require.NoError(t, os.Symlink(at("git-crypt"), at("link"))) // what it leads to is hidden
	for _, hasNamespaces := range []bool{true, false} {
		p := Place{Method: &sandbox.Method{HasNamespaces: hasNamespaces}, CacheDir: t.TempDir()}
		r, err := p.gitDir(dir)
		require.NoError(t, err)
		var got []string
		for _, x := range r {
			line := strings.TrimPrefix(x.Path, dir) + [...]string{"", " write", " empty", " masked"}[x.Access]
			if x.From != "" {
				data, err := os.ReadFile(x.From)
				if err != nil || strings.Contains(string(data), "s3cr3t") || !strings.Contains(string(data), "example.com/x") {
					t.Errorf("%s is shown as %q, %v", x.Path, data, err)
				}
				line += " clean"
			}
			got = append(got, line)
		}
		config := map[bool]string{true: "/config clean", false: "/config masked"}[hasNamespaces]
		want := []string{"", "/annex empty", config, "/config.bak masked", "/config.worktree", "/git-crypt empty",
			"/worktrees empty", "/modules/a/b", "/modules/a/b" + config, "/modules/a/b/git-crypt empty",
			"/modules/a/b/modules/c", "/modules/a/b/modules/c/config"}
		if !slices.Equal(got, want) {
			t.Errorf("with namespaces %v:\n%q\nwant\n%q", hasNamespaces, got, want)
		}
	}
}
