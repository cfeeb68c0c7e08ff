package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/internal/config"
	"muster/internal/testing/require"
	"muster/internal/trust"
	"muster/internal/workspace"
)

// TestModelOfARole: the settings are stronger than the file of a role. The user's own file counts at once, and a
// repository's when the user trusts just what it says. Neither a repository's server nor a name that no model has counts.
func TestModelOfARole(t *testing.T) {
	w := newWorld(t)
	home := t.TempDir()
	w.app.Env = append(w.app.Env, "HOME="+home, "OPENAI_API_KEY=x")
	write := func(dir, name, head string) {
		t.Helper()
		name = filepath.Join(dir, ".claude", "agents", name+".md")
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, []byte("---\n"+head+"\n---\nText.\n"), 0o600))
	}
	write(home, "mine", "model: openai/gpt-5.5\neffort: high")
	write(home, "local", "model: openai/x@http://127.0.0.1:1/v1")
	write(home, "keyless", "model: anthropic/claude-opus-5")
	write(home, "explore", "model: openai/gpt-5.5")
	write(home, "set", "model: openai/gpt-5.5\neffort: high")
	write(w.dir, "theirs", "model: openai/gpt-5.5\neffort: max")
	write(w.dir, "server", "model: openai/x@https://elsewhere.example/v1")
	write(w.dir, "script", "model: script/x.yaml")
	write(w.dir, "alias", "model: sonnet\neffort: enormous")
	write(w.dir, "same", "model: inherit")
	opened := require.Value(workspace.OpenRoot(w.dir, w.app.workspaceOptions(t.Context())))(t)
	defer opened.Close()
	s, _, err := config.Load(config.Options{})
	require.NoError(t, err)
	s.Model, s.UserModel = "openai/gpt-5.4", "openai/gpt-5.4"
	s.Roles = map[string]*config.Role{"set": {Model: "openai/gpt-5.4-mini"}}
	check := func(want map[string]string) {
		t.Helper()
		files := require.Value(readRoleFiles(w.app, opened, s))(t)
		for name, want := range want {
			r := role(w.app.model, opened, s, files, name)
			got := r.Model
			if r.Open != nil {
				model, err := r.Open(r.Model)
				got += fmt.Sprintf(" %v %v", model != nil, err)
			}
			if _, why, isNoted := strings.Cut(r.Note, "do not get: "); isNoted {
				got += " because " + why
			}
			if got += " " + files[name].effort; !strings.HasPrefix(got, want) || want == " " && got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	}
	check(map[string]string{
		"mine": "openai/gpt-5.5 true <nil> high", "MINE": "openai/gpt-5.5 true <nil>", "explore": " ", "nobody": " ", "same": " ",
		"local": "openai/x@http://127.0.0.1:1/v1 true <nil>", "keyless": " because ", "set": "openai/gpt-5.4-mini true <nil> high",
		"theirs": " ", "server": " because a repository may not choose a server", "script": " because a repository may not choose a server",
		"alias": " because muster has no model of this name (name one as PROVIDER/MODEL, or set roles.alias.model)",
	})
	items := repositoryRoleItems(w.app, w.dir)
	if text := fmt.Sprint(items); len(items) != 2 || !strings.Contains(text, "{model .claude/agents/theirs.md openai/gpt-5.5 }") {
		t.Errorf("to be trusted are %s", text)
	}
	if err := opened.Trust().Change(t.Context(), func(t *trust.Settings) {
		for _, item := range items {
			t.Trust(item.Key(), item.Text)
		}
	}); err != nil {
		t.Fatal(err)
	}
	check(map[string]string{"theirs": "openai/gpt-5.5 true <nil> max"})
	write(w.dir, "theirs", "model: openai/gpt-5.5-pro\neffort: max")
	check(map[string]string{"theirs": " true <nil> max"}) // what has changed is not what was trusted
}
