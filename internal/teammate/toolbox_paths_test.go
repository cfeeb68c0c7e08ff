package teammate

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/internal/board"
	"muster/internal/paths"
	"muster/internal/testing/gittest"
	"muster/internal/tool/code"
)

// TestOnePath: a path below the repository means the file of the lane, in each tool for files, and in what commands,
// rules and servers get.
func TestOnePath(t *testing.T) {
	live(t, "alice", func(l *life) {
		home := string(l.config.Home)
		gittest.Write(t, l.rows.dir, map[string]string{"sub dir/a.txt": "of the lane\n"})
		gittest.Write(t, home, map[string]string{"sub dir/a.txt": "of the checkout\n"})
		l.create(board.Draft{})
		at := func(rel string) string { return filepath.Join(home, rel) }
		l.start(calls("read_file", map[string]any{"path": at("sub dir/a.txt")}),
			calls("write_file", map[string]any{"path": at("new/b.txt"), "content": at("stays")}),
			calls("edit_file", map[string]any{"file_path": at("sub dir/a.txt"), "old_string": "of the", "new_string": "in the"}),
			calls("glob", map[string]any{"pattern": at("**/*.txt")}),
			calls("glob", map[string]any{"pattern": "*.txt", "path": at("new")}),
			calls("grep", map[string]any{"pattern": "lane", "path": home}),
			calls("read_file", map[string]any{"path": at(".team/run.json")}),
			calls("read_file", map[string]any{"path": home + "-other/x"}),
			calls("bash", map[string]any{"command": "echo go && cd " + home + " && make", "timeout": 60}),
			calls("bash", map[string]any{"command": "cd " + home + " && apply_patch <<'EOF'\n*** Begin Patch\n" +
				"*** Update File: sub dir/a.txt\n@@\n-in the lane\n+patched\n*** End Patch\nEOF"}),
			calls("bash", map[string]any{"command": "apply_patch <<'EOF'\n*** Begin Patch\n" +
				"*** Add File: " + at("new/c.txt") + "\n+added\n*** End Patch\nEOF"}),
			calls("bash", map[string]any{"command": "echo; python3 <<E\nopen('" + at("sub dir/a.txt") + "')\nE"}),
			calls("bash", map[string]any{"command": "echo; perl <<E\nopen('" + at("sub dir/a.txt") + "')\nE"}),
			calls("bash", map[string]any{"command": "echo " + filepath.Join(l.rows.dir, "x") + " " + l.config.Home.Outputs()}),
			says("What now?"))
		heard := l.heard()
		for _, want := range []string{"1\tof the lane", "Made ", "Edited ", "[{new/b.txt\\nsub dir/a.txt}]", "[{new/b.txt}]", "in the lane",
			"is outside of your working directory", "The command was not run: " + home + " is the user's checkout",
			"[" + home + " is the user's checkout, without your changes.",
			"Edited " + l.rows.dir + "/sub dir/a.txt", "Made " + l.rows.dir + "/new/c.txt"} {
			if want = strings.ReplaceAll(want, `\n`, "\n"); !strings.Contains(heard, want) {
				t.Errorf("%q is not in %s", want, heard)
			}
		}
		if n := strings.Count(heard, "is the user's checkout, without"); n != 2 {
			t.Errorf("the checkout is named %d times: %s", n, heard)
		}
		data, err := os.ReadFile(filepath.Join(l.rows.dir, "new/b.txt"))
		l.must(err)
		if mine, err := os.ReadFile(at("sub dir/a.txt")); string(data) != at("stays") || string(mine) != "of the checkout\n" || err != nil {
			t.Errorf("the lane has %q, and the checkout %q, %v", data, mine, err)
		}
	})
}

func TestMappedPaths(t *testing.T) {
	o := &onePath{home: paths.Dir("/home/ann/my repo")}
	at := code.Workdir{Dir: "/home/ann/my repo/.worktrees/task-1", ReadOnly: []string{"/home/ann/my repo/.claude/skills/greet"}}
	for _, c := range []struct{ tool, input, want string }{
		{"read_file", `{"path":"/home/ann/my repo"}`, `{"path":"/home/ann/my repo/.worktrees/task-1"}`},
		{"read_file", `{"path":"/home/ann/my repo/a","offset":12345678901234567890}`,
			`{"offset":12345678901234567890,"path":"/home/ann/my repo/.worktrees/task-1/a"}`},
		{"read_file", `{"path":"/home/ann/my repo/.worktrees/task-1/a"}`, ""},
		{"read_file", `{"path":"/home/ann/my repo/.worktrees/task-2/a"}`, ""},
		{"read_file", `{"path":"/home/ann/my repo/.git/config"}`, ""},
		{"read_file", `{"path":"/home/ann/my repo2/a"}`, ""},
		{"read_file", `{"path":"/home/ann/my repo/.claude/skills/greet/words.txt"}`, ""},
		{"write_file", `{"path":"/home/ann/my repo/.claude/skills/greet/words.txt"}`,
			`{"path":"/home/ann/my repo/.worktrees/task-1/.claude/skills/greet/words.txt"}`},
		{"write_file", `{"path":"a","content":"/home/ann/my repo/a"}`, ""},
		{"edit_file", `{"path":"a","edits":[{"old_text":"/home/ann/my repo/a","new_text":"b"}]}`, ""},
		{"glob", `{"pattern":"/home/ann/my repo/src/**"}`, `{"pattern":"src/**"}`},
		{"mcp__x__y", `{"a":{"uris":["/home/ann/my repo/a"],"text":"see /home/ann/my repo/a"}}`,
			`{"a":{"text":"see /home/ann/my repo/a","uris":["/home/ann/my repo/.worktrees/task-1/a"]}}`},
		{"apply_patch", `{"input":"*** Update File: /home/ann/my repo/a b.go\n@@\n-/home/ann/my repo/a\n+x\n"}`,
			`{"input":"*** Update File: a b.go\n@@\n-/home/ann/my repo/a\n+x\n"}`},
		{"in sub: glob", `{"pattern":"/home/ann/my repo/sub/src/**"}`, `{"pattern":"src/**"}`},
		{"in sub: grep", `{"path":"/home/ann/my repo/b"}`, `{"path":"../b"}`},
	} {
		var isBelow bool
		at := at
		if c.tool, isBelow = strings.CutPrefix(c.tool, "in sub: "); isBelow {
			at.Sub = "sub"
		}
		want := c.want
		if want == "" {
			want = c.input
		}
		if got := string(o.mapped(c.tool, json.RawMessage(c.input), at)); got != want {
			t.Errorf("%s %s: %s, want %s", c.tool, c.input, got, want)
		}
	}
}
