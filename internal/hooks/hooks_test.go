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
		`PreToolUse Bash (60 s, if "Bash(git *)"): git.sh | `,
		"PreToolUse * (60 s): | it has another form than a matcher with a list of hooks",
		`PreToolUse "(?=x)" (60 s): look.sh | its matcher (?=x) is neither a list of names nor a regular expression of RE2`,
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
		"hooks:\n  Stop:\n    - {command: x, args: 5}\n":                   "muster.yaml:3:",
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

// Muster's own file has the same fields, also in the short form.
func TestFieldsInOwnFile(t *testing.T) {
	yaml := "hooks:\n  PreToolUse:\n    - {matcher: [Edit, Write], command: sh, args: [x], env: {A: b}, cwd: d, if: Edit(*.go)}\n" +
		"    - matcher: NotebookEdit\n      hooks: [{command: y, async: true}]\n"
	found := require.Value(find(t, "{}", yaml, all))(t)
	if len(found) != 2 || found[0].Problem != "" || found[1].Problem != "its matcher NotebookEdit fits no tool of muster" ||
		found[0].String() != `"Edit, Write" (60 s, args ["x"], env {"A":"b"}, cwd "d", if "Edit(*.go)"): sh` {
		t.Errorf("%v", found)
	}
}

// Hooks of the user's home run where the user's own settings say so, without any trust.
func TestHooksOfTheHome(t *testing.T) {
	home := t.TempDir()
	gittest.Write(t, home, map[string]string{".claude/settings.json": published})
	for in, want := range map[string]int{"": 0, home: 6} {
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

// fields is a settings file with fields of other programs.
const fields = `{"hooks": {
  "preToolUse": [
    {"matcher": ["Edit", "Write"], "hooks": [{"type": "command", "command": "sh", "args": ["a b.sh", "x"]}]},
    {"matcher": "Bash", "hooks": [
      {"type": "command", "command": "a", "env": {"A": "1", "N": 2}, "cwd": "sub", "timeout": "30s", "shell": "bash"},
      {"type": "command", "command": "b", "once": true, "envFile": ".env", "statusMessage": "x", "asyncRewake": false},
      {"type": "command", "command": "c", "enabled": false},
      {"type": "command", "command": "d", "disabled": true},
      {"type": "command", "command": "e", "args": "x"},
      {"type": "command", "command": "f", "shell": "powershell"},
      {"type": "command", "command": "g", "async": true},
      {"type": "command", "command": "h", "if": "Bash("},
      {"type": "prompt", "prompt": "is it right?", "model": "x"}, 5]},
    {"matcher": "Wriet", "hooks": [{"command": "i", "timeoutSec": 7}]},
    {"matcher": "Bash", "sequential": true, "hooks": [{"command": "j", "enabled": true, "once": null}]},
    {"matcher": "Bash", "enabled": false, "hooks": [{"command": "k"}]},
    {"matcher": "Bash", "url": "http://x"}, {"type": "command", "bash": "n", "timeoutSec": 5}],
  "SessionStart": {"matcher": "startup", "hooks": [{"command": "o"}]},
  "PreCompact": [{"hooks": [{"command": "l"}]}],
  "BeforeTool": [{"hooks": [{"command": "m"}]}]}}`

// Fields of other programs that change what a hook means are read and trusted, or named.
func TestForeignFields(t *testing.T) {
	found := require.Value(find(t, fields, "", all))(t)
	var got []string
	for _, h := range found {
		got = append(got, string(h.Event)+" "+strings.TrimSpace(h.String())+" | "+h.Problem+" | "+strings.Join(h.Notes(), "; "))
	}
	want := []string{
		"BeforeTool * (60 s): m | muster has no event BeforeTool | ",
		"PreCompact * (60 s): l | muster has no event PreCompact | ",
		"SessionStart startup (60 s): o |  | ",
		`PreToolUse "Edit, Write" (60 s, args ["a b.sh","x"]): sh |  | `,
		`PreToolUse Bash (30 s, env {"A":"1","N":"2"}, cwd "sub"): a |  | `,
		`PreToolUse Bash (60 s, ignored ["envFile","once"]): b |  | muster does not read envFile, once`,
		"PreToolUse Bash (60 s): c | the file says that it is not enabled | ",
		"PreToolUse Bash (60 s): d | the file says that it is not enabled | ",
		`PreToolUse Bash (60 s): e | its field args has a value that muster does not read: "x" | `,
		"PreToolUse Bash (60 s): f | its shell is powershell | ",
		"PreToolUse Bash (60 s, async true): g |  | it is async, so it refuses nothing",
		`PreToolUse Bash (60 s, if "Bash("): h | its condition Bash( is not one that muster reads: test it in the command | `,
		"PreToolUse Bash (60 s): | its type is prompt, and muster only runs commands | ",
		"PreToolUse Bash (60 s): | it has another form than a hook | ",
		"PreToolUse Wriet (7 s): i | its matcher Wriet fits no tool of muster | ",
		`PreToolUse Bash (60 s, ignored ["sequential of the matcher"]): j |  | muster does not read sequential of the matcher`,
		"PreToolUse Bash (60 s): k | the file says that it is not enabled | ",
		"PreToolUse * (60 s): | it has another form than a matcher with a list of hooks | ",
		"PreToolUse * (5 s): n |  | ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	warnings := strings.Join(hooks.Warnings(found), "\n")
	if want := "hooks of .claude/settings.json do not run as they stand there (muster hooks): BeforeTool m: muster has no " +
		"event BeforeTool; PreToolUse b: muster does not read envFile, once; PreToolUse e: its field args has a value that " +
		`muster does not read: "x"; and 8 more`; warnings != want {
		t.Errorf("the warnings are\n%s\nwant\n%s", warnings, want)
	}
	for _, change := range [][2]string{{`"a b.sh"`, `"c.sh"`}, {`"A": "1"`, `"A": "2"`}, {`"sub"`, `"sup"`}, {`"async": true`, `"async": false`},
		{`"once": true`, `"other": true`}, {`"enabled": false}`, `"enabled": true}`}} {
		items := hooks.Items(found)
		changed, err := find(t, strings.Replace(fields, change[0], change[1], 1), "", func(i trust.Item) bool { return slices.Contains(items, i) })
		require.NoError(t, err)
		for _, h := range changed {
			if h.Event == hooks.PreToolUse && h.Problem == "" {
				t.Errorf("%q runs after the change of %q", h, change[0])
			}
		}
	}
}
