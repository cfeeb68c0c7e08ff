package permissions

import (
	"slices"
	"strings"
	"testing"

	"muster/internal/testing/gittest"
)

// claude is a settings file with rules as people have them for Claude Code.
const claude = `{"permissions": {
  "allow": ["Bash(git push:*)", "WebFetch"],
  "defaultMode": "plan",
  "deny": ["Bash(touch:*)", "Bash(rm -rf *)", "Read(./.env)", "Read(./secrets/**)", "Read(~/.ssh/**)", "Read(//etc/shadow)",
    "Edit(/docs/**)", "Write(*.lock)", "mcp__github", "mcp__db__drop_*", "Task", "LS", "NotebookEdit(x.ipynb)",
    "WebFetch(domain:example.com)", "WebSearch", "Agent(Explore)", "PowerShell(rm *)", "Bash(", 5],
  "ask": "Bash(docker *)"}}`

// isTool knows a few tools.
func isTool(name string) bool {
	return slices.Contains([]string{"bash", "worktree_run", "read_file", "write_file", "edit_file", "glob", "subagent"}, name)
}

// The rules of a repository to deny and to ask hold where they map, and what does not is named. None allows anything.
func TestRulesForClaude(t *testing.T) {
	root := t.TempDir()
	gittest.Write(t, root, map[string]string{".claude/settings.json": claude,
		".claude/settings.local.json": `{"permissions": {"deny": ["Bash(curl *)"], "ask": {}, "allow": ["Bash"]}}`})
	rules, notes := FromClaude(root, isTool)
	p := Policy{Mode: Auto, Rules: rules}
	shell := func(command string) Call { return Call{Tool: "bash", Command: command} }
	for _, c := range []struct {
		call Call
		want Action
	}{
		{shell("touch a"), Deny}, {shell("rm -r -f x"), Deny}, {shell("docker ps"), Ask}, {shell("curl x"), Deny},
		{shell("git push"), Allow}, {shell("ls"), Allow},
		{Call{Tool: "read_file", Paths: []string{".env"}}, Deny}, {Call{Tool: "read_file", Paths: []string{"a"}}, Allow},
		{Call{Tool: "read_file", Paths: []string{"secrets/a/b"}}, Deny}, {Call{Tool: "grep", Paths: []string{"secrets"}}, Deny},
		{Call{Tool: "read_file", Paths: []string{"/home/u/.ssh/id"}}, Deny},
		{Call{Tool: "read_file", Paths: []string{"/etc/shadow"}}, Deny},
		{Call{Tool: "write_file", Paths: []string{"docs/a.md"}, Writes: true}, Deny},
		{Call{Tool: "edit_file", Paths: []string{"a/go.lock"}, Writes: true}, Deny},
		{Call{Tool: "mcp__github__x", Writes: true}, Deny}, {Call{Tool: "mcp__db__drop_all", Writes: true}, Deny},
		{Call{Tool: "mcp__db__list"}, Allow}, {Call{Tool: "subagent"}, Deny}, {Call{Tool: "glob"}, Deny},
		{shell("cat .env"), Deny}, {shell("head -n 3 ./secrets/key | wc"), Deny}, {shell("git show HEAD:.env"), Deny},
		{shell("grep -r key secrets/a"), Deny}, {shell("python3 x.py --file=.env"), Ask}, {shell("cp .env x"), Ask},
		{shell(". ./.env"), Ask}, {shell("grep .env README"), Allow}, {shell("echo .env"), Allow}, {shell("ls secrets"), Allow},
		{shell("cat .env.example"), Allow},
	} {
		if d := p.Decide(c.call, nil); d.Action != c.want {
			t.Errorf("%+v: %s by %s, want %s", c.call, d.Action, d.Rule, c.want)
		}
	}
	all := strings.Join(notes, "\n")
	for _, want := range []string{"permissions of .claude/settings.json that do not hold here: ",
		`deny "WebFetch(domain:example.com)" (`, `deny "WebSearch" (`, `deny "Agent(Explore)" (muster can only have a rule for the `,
		`deny "PowerShell(rm *)" (muster has no such tool)`, `deny "Bash(" (`, " and 2 more",
		"permissions of .claude/settings.local.json that do not hold here: ask, which is no list"} {
		if !strings.Contains(all, want) {
			t.Errorf("the notes have no %s:\n%s", want, all)
		}
	}
}

// Files without such rules, and files that cannot be read, have none and say nothing here.
func TestFilesWithoutRulesForClaude(t *testing.T) {
	for _, text := range []string{"", "{", "{}", "[]", `{"permissions": null}`, `{"permissions": {"allow": ["Bash"]}}`,
		`{"permissions": {"deny": [], "defaultMode": "acceptEdits"}}`} {
		root := t.TempDir()
		gittest.Write(t, root, map[string]string{".claude/settings.json": text})
		if rules, notes := FromClaude(root, isTool); rules != nil || notes != nil {
			t.Errorf("%q: %v, %q", text, rules, notes)
		}
	}
	root := t.TempDir()
	gittest.Write(t, root, map[string]string{".claude/settings.json": `{"permissions": ["Bash"]}`})
	if _, notes := FromClaude(root, isTool); len(notes) != 1 || !strings.HasSuffix(notes[0], "all, because they are no object") {
		t.Errorf("%q", notes)
	}
}
