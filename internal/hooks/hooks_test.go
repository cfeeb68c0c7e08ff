package hooks_test

import (
	"slices"
	"strings"
	"testing"

	"muster/internal/config"
	"muster/internal/hooks"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/trust"
)

// published is a settings file with the shapes that people's files have.
const published = `{
  "permissions": {"allow": ["Bash(npm run lint)"]},
  "hooks": {
    "PreToolUse": [
      {"matcher": "Bash", "hooks": [{"type": "command", "command": "guard.py", "timeout": 5, "statusMessage": "x"}]},
      {"matcher": "Edit|Write|MultiEdit", "hooks": [
        {"type": "command", "command": "protect.sh"}, {"type": "command", "command": "protect2.sh"}]},
      {"matcher": "mcp__memory__.*", "hooks": [{"type": "command", "command": "memory.sh"}]},
      {"matcher": "Bash", "hooks": [{"type": "command", "if": "Bash(git *)", "command": "git.sh"}]},
      {"matcher": {"tool_name": "Bash"}, "hooks": []},
      {"matcher": "(?=x)", "hooks": [{"type": "command", "command": "look.sh"}]}
    ],
    "PostToolUse": [{"matcher": "*", "hooks": [{"type": "http", "url": "http://localhost/x"}]}],
    "Stop": [{"hooks": [{"type": "command", "command": "long.sh", "timeout": 60000}]}],
    "PreCompact": [{"matcher": "", "hooks": [{"type": "command", "command": "save.sh"}]}],
    "Notification": "say"
  }
}`

// find returns the hooks of a repository with a settings file and a muster.yaml.
func find(t *testing.T, settings, yaml string, trusts func(trust.Item) bool) ([]hooks.Hook, error) {
	t.Helper()
	root := t.TempDir()
	gittest.Write(t, root, map[string]string{".claude/settings.json": settings, "muster.yaml": yaml})
	s, _, err := config.Load(config.Options{Root: root, UserDir: t.TempDir()})
	require.NoError(t, err)
	return hooks.Find(root, "", s.SectionsNamed("hooks"), trusts)
}

// all trusts everything, and nothing trusts nothing.
func all(trust.Item) bool     { return true }
func nothing(trust.Item) bool { return false }

// A settings file is read as it was published: what fits runs, and the rest says why it does not.
func TestPublishedSettings(t *testing.T) {
	found := require.Value(find(t, published, "", all))(t)
	var got []string
	for _, h := range found {
		got = append(got, string(h.Event)+" "+strings.TrimSpace(h.String())+" | "+h.Problem)
	}
	want := []string{
		"Notification * (60 s): | a list of matchers with hooks is expected",
		"PostToolUse * (60 s): | its type is http, and muster only runs commands",
		"PreCompact * (60 s): save.sh | muster has no event PreCompact",
		"PreToolUse Bash (5 s): guard.py | ",
		"PreToolUse Edit|Write|MultiEdit (60 s): protect.sh | ",
		"PreToolUse Edit|Write|MultiEdit (60 s): protect2.sh | ",
		`PreToolUse "mcp__memory__.*" (60 s): memory.sh | `,
		"PreToolUse Bash (60 s): git.sh | its condition Bash(git *) is not read by muster: test it in the command",
		"PreToolUse * (60 s): | it has another form than a matcher with a list of hooks",
		`PreToolUse "(?=x)" (60 s): look.sh | its matcher is neither a list of names nor a regular expression of RE2`,
		"Stop * (600 s): long.sh | ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Nothing of the repository runs without trust, and a change of any part of what runs is another item.
func TestOnlyTrustedHooksRun(t *testing.T) {
	found := require.Value(find(t, published, "hooks:\n  Stop:\n    - command: a.sh\n", nothing))(t)
	for _, h := range found {
		if h.Problem == "" {
			t.Errorf("%v of %s runs without trust", h, h.File)
		}
	}
	items := hooks.Items(found)
	var names []string
	for _, i := range items {
		names = append(names, i.Key())
	}
	want := []string{"hooks.Stop", ".claude/settings.json: hooks.PreToolUse", ".claude/settings.json: hooks.Stop"}
	if !slices.Equal(names, want) {
		t.Fatalf("the items are %q, want %q", names, want)
	}
	for _, change := range [][2]string{{"guard.py", "guard2.py"}, {`"Bash"`, `"Bash|Read"`}, {`"timeout": 5`, `"timeout": 6`},
		{"protect.sh", `protect.sh\n* (60 s): x`}} {
		changed, err := find(t, strings.Replace(published, change[0], change[1], 1), "", func(i trust.Item) bool {
			return slices.Contains(items, i)
		})
		require.NoError(t, err)
		for _, h := range changed {
			if h.Event == hooks.PreToolUse && h.Problem == "" {
				t.Errorf("%q runs after the change of %q", h, change[0])
			}
			if h.Event == hooks.Stop && h.Problem != "" {
				t.Errorf("%q does not run any more: %s", h, h.Problem)
			}
		}
	}
}

// A mistake in muster's own file is an error with its place; one in another program's file stops nobody.
func TestMistakesInFiles(t *testing.T) {
	for text, want := range map[string]string{
		"hooks:\n  PreToolUs:\n    - command: x\n":                         `muster.yaml:2:3: there is no event "PreToolUs": there are [SessionStart`,
		"hooks:\n  Stop: {command: x}\n":                                   "muster.yaml:2:",
		"hooks:\n  Stop:\n    - matcher: x\n      hooks: [{type: http}]\n": "muster.yaml:3:5: a hook of Stop cannot run: its type is http",
		"hooks:\n  Stop:\n    - comand: x\n":                               "muster.yaml:3:7: ",
		"hooks:\n  PreToolUse:\n    - matcher: '('\n      command: x\n":    "a hook of PreToolUse cannot run: its matcher",
		"hooks: []\n": "muster.yaml:1:8: hooks has named entries",
	} {
		if _, err := find(t, "{}", text, all); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{"{", `{"hooks": []}`, `{"hooks": {"Stop": [1, null, {"hooks": [2]}]}}`, "", "\xff",
		strings.Repeat("[", 100_000), strings.Repeat(" ", 300<<10)} {
		found, err := find(t, text, "hooks:\n  Stop:\n    - {matcher: '*', command: own.sh, timeout: 1.5}\n", all)
		if err != nil || len(found) == 0 || found[0].Problem != "" || found[0].Timeout.Seconds() != 1.5 {
			t.Errorf("%.20q: %+v, %v", text, found, err)
		}
		for _, h := range found[min(1, len(found)):] {
			if h.Problem == "" {
				t.Errorf("%.20q: %v runs", text, h)
			}
		}
	}
}

// Hooks of the user's home run where the user's own settings say so, without any trust.
func TestHooksOfTheHome(t *testing.T) {
	home := t.TempDir()
	gittest.Write(t, home, map[string]string{".claude/settings.json": published})
	for in, want := range map[string]int{"": 0, home: 5} {
		found, err := hooks.Find(t.TempDir(), in, nil, nothing)
		run := slices.DeleteFunc(found, func(h hooks.Hook) bool { return h.Problem != "" })
		if err != nil || len(run) != want || want > 0 && run[0].File != "~/.claude/settings.json" {
			t.Errorf("home %q: %v, %v", in, run, err)
		}
		if items := hooks.Items(found); len(items) > 0 {
			t.Errorf("home %q: trust is asked for %v", in, items)
		}
	}
}
