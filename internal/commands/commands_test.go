package commands

import (
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
