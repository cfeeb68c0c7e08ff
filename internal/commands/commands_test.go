package commands

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster/internal/testing/gittest"
)

func TestFind(t *testing.T) {
	root, home := gittest.Unpack(t, "testdata/published.txtar"), t.TempDir()
	gittest.Write(t, home, map[string]string{".claude/commands/mine.md": "The user's own."})
	gittest.Write(t, home, map[string]string{".claude/commands/commit.md": "Another one."})
	want := []string{
		"/plan  Think about the whole change first.",
		"/commit  Create a git commit",
		"/empty  has a head only | it has no text below its front matter",
		"/fix-issue [issue-number] [priority] Fix an issue: find it, fix it, test it",
		"/project:help  Help me with $1.",
		"/my-notes  Read my notes.",
		"/optimize  Analyze this code for performance issues.",
		"/project:plan  The second of its name. | another command has its name: .agents/commands/plan.md",
		"/backend:test  Test the backend. (backend)",
		"/component <name> Creates a component (frontend)",
		"/frontend:test  Test the frontend. (frontend)",
		"/user:commit  Another one.",
		"/mine  The user's own.",
	}
	var got []string
	for _, c := range Find(root, home, "", []string{"help", "quit"}) {
		line := "/" + c.Name + " " + c.Hint + " " + c.Description
		if c.Problem != "" {
			line += " | " + c.Problem
		}
		got = append(got, line)
	}
	if !slices.Equal(got, want) {
		t.Errorf("found:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestExpand(t *testing.T) {
	all := Find(gittest.Unpack(t, "testdata/published.txtar"), "", "", []string{"help"})
	const runIt = "\n\nWhere this text has !`COMMAND`, run COMMAND with bash first, and go on with what it prints. It was not run for you."
	for _, c := range []struct{ call, want, notes string }{
		{"fix-issue 12 'very high'", "Fix issue #12 with priority very high. Follow @docs/style.md. It may cost $20, not $0.", "haiku"},
		{"fix-issue", "Fix issue # with priority . Follow @docs/style.md. It may cost $20, not $0.", "haiku"},
		{"optimize  all of $1 and !`ls` ", "Analyze this code for performance issues. Suggest three optimizations.\n\nall of $1 and !`ls`", ""},
		{"component Button", "Create the component Button in src/components. Its test is Button.test.tsx.", ""},
		{"frontend:component B", "Create the component B in src/components. Its test is B.test.tsx.", ""},
		{"project:frontend:component B", "Create the component B in src/components. Its test is B.test.tsx.", ""},
		{"plan the parser", "# Plan\n\nThink about the whole change first. Then write the steps.\n\nARGUMENTS: the parser", ""},
		{"frontend:test", "Test the frontend.", ""},
		{"project:help me", "Help me with me.", ""},
		{"commit", "## Context\n\n- Current status: !`git status`\n- Recent commits: !`git log --oneline -10`\n\n## Your task\n\n" +
			"Based on the above changes, create a single git commit." + runIt, ""},
	} {
		name, args, _ := strings.Cut(c.call, " ")
		found, ok := Named(all, name)
		if !ok {
			t.Errorf("there is no command %s", name)
			continue
		}
		text, notes, err := found.Expand(t.Context(), args)
		if text != c.want || err != nil || !strings.Contains(strings.Join(notes, "\n"), c.notes) || (len(notes) > 0) != (c.notes != "") {
			t.Errorf("%s is %q, %q, %v; want %q", c.call, text, notes, err, c.want)
		}
	}
	for _, name := range []string{"help", "test", "empty", "README", "../plan", ""} {
		if c, ok := Named(all, name); ok {
			t.Errorf("/%s is %s", name, c.Place)
		}
	}
}

// TestSkills: a skill is called by its name, in lower case too, or by its directory, and comes before a command.
func TestSkills(t *testing.T) {
	root, home := t.TempDir(), t.TempDir()
	gittest.Write(t, root, map[string]string{
		".claude/skills/ship/SKILL.md":   "---\nname: Deploy It\ndescription: d\nargument-hint: [where]\nmodel: haiku\ncontext: fork\n---\nShip $ARGUMENTS.",
		".claude/skills/help/SKILL.md":   "---\ndescription: d\n---\nHelp.",
		".claude/skills/hidden/SKILL.md": "---\ndescription: d\nuser-invocable: false\n---\nx",
		".claude/skills/args/SKILL.md":   "---\ndescription: d\narguments: [issue, branch-name]\n---\n$0 $1 $2 $ARGUMENTS[1] $ARGUMENTS[7] $issue $branch-name \\$0 \\$ARGUMENTS $HOME $20 !`ls`",
		".claude/skills/files/SKILL.md":  "---\ndescription: d\n---\nRead ${CLAUDE_SKILL_DIR}/a.",
		".claude/skills/files/a":         "",
		".claude/commands/args.md":       "The command.",
	})
	gittest.Write(t, home, map[string]string{".claude/skills/mine/SKILL.md": "---\ndescription: d\n---\nMine."})
	all := Find(root, home, "", []string{"help"})
	const runIt = "\n\nWhere this text has !`COMMAND`, run COMMAND with bash first, and go on with what it prints. It was not run for you."
	for _, c := range []struct{ call, want, notes string }{
		{"Deploy-It to the customers", "Do what the skill Deploy It says:\n\nShip to the customers.", "haiku"},
		{"deploy-it", "Do what the skill Deploy It says:\n\nShip .", "fork"},
		{"ship x", "Do what the skill Deploy It says:\n\nShip x.", "haiku"},
		{"project:help me", "Do what the skill help says:\n\nHelp.\n\nARGUMENTS: me", ""},
		{"args 'a b' c", "Do what the skill args says:\n\na b c $2 c $ARGUMENTS[7] a b c $0 $ARGUMENTS $HOME $20 !`ls`" + runIt, ""},
		{"args", "Do what the skill args says:\n\n$0 $1 $2 $ARGUMENTS[1] $ARGUMENTS[7]   $0 $ARGUMENTS $HOME $20 !`ls`" + runIt, ""},
		{"files", "Do what the skill files says:\n\nRead DIR/a.\n\nFiles of this skill, in DIR: a", ""},
		{"mine", "Do what the skill mine says:\n\nMine.", ""},
		{"user:mine", "Do what the skill mine says:\n\nMine.", ""},
	} {
		name, args, _ := strings.Cut(c.call, " ")
		found, ok := Named(all, name)
		if !ok {
			t.Errorf("there is no /%s", name)
			continue
		}
		text, notes, err := found.Expand(t.Context(), args)
		want := strings.ReplaceAll(c.want, "DIR", filepath.Join(root, ".claude/skills/files"))
		if text != want || err != nil || !strings.Contains(strings.Join(notes, "\n"), c.notes) || (len(notes) > 0) != (c.notes != "") {
			t.Errorf("%s is %q, %q, %v; want %q", c.call, text, notes, err, want)
		}
	}
	for _, name := range []string{"help", "hidden"} {
		if c, ok := Named(all, name); ok {
			t.Errorf("/%s is %s", name, c.Place)
		}
	}
	if i := slices.IndexFunc(all, func(c Command) bool { return c.Body == "The command." }); i < 0 || all[i].Problem == "" {
		t.Errorf("%+v", all)
	}
}
