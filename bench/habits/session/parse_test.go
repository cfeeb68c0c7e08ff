package session

import (
	"os"
	"reflect"
	"testing"
	"time"

	"muster/internal/testing/require"
)

// load parses an export in testdata.
func load(t *testing.T, name string) Session {
	return Parse(string(require.Value(os.ReadFile("testdata/" + name + ".md"))(t)))
}

// calls returns the calls of a session.
func calls(s Session) (all []Call) {
	for _, e := range s.Events {
		if e.Call != nil {
			all = append(all, *e.Call)
		}
	}
	return all
}

func TestCallsOfEachFormat(t *testing.T) {
	none := map[string]string{}
	for name, want := range map[string][]Call{
		"claude": {
			{Tool: "Read", Does: Read, Args: none, Paths: []string{"./src/parser.txt"},
				Result: "     1→alpha\n     2→beta", HasResult: true},
			{Tool: "Grep", Does: Search, Args: map[string]string{"path": "./src", "pattern": "alpha"},
				Result: "Found 1 file\nsrc/parser.txt", HasResult: true},
			{Tool: "Bash", Does: Shell, Args: none, Command: "cd /home/someone/project && make test > /tmp/log",
				Result: "Exit code 2\na fence in the output:\n```\nnot the end", HasResult: true, Failed: true},
			{Tool: "Read", Does: Read, Args: none, Paths: []string{"./src/other.txt"}, Result: "     1→gamma", HasResult: true},
			{Tool: "Edit", Does: Edit, Args: none, HasResult: true, Failed: true,
				Result: "<tool_use_error>String to replace not found in file.</tool_use_error>"},
			{Tool: "Edit", Does: Edit, Args: none, Paths: []string{"/home/someone/project/src/parser.txt"}, HasResult: true,
				Result: "The file /home/someone/project/src/parser.txt has been updated successfully."},
			{Tool: "Edit", Does: Edit, Args: none, Paths: []string{"/home/someone/project/src/other.txt"}, HasResult: true,
				Result: "The file /home/someone/project/src/other.txt has been updated successfully. " +
					"(file state is current in your context)"},
			{Tool: "Write", Does: Write, Args: map[string]string{"content": "new content"}, HasResult: true,
				Paths:  []string{"/home/someone/project/notes.txt"},
				Result: "File created successfully at: /home/someone/project/notes.txt"},
			{Tool: "Edit", Does: Edit, Args: none, HasResult: true, Refused: true,
				Result: "The user doesn't want to proceed with this tool use. The tool use was rejected."},
		},
		"codex": {
			{Tool: "exec_command", Does: Shell, Args: none, Command: "sed -n '1,20p' docs/words.md", HasResult: true,
				Result: "Chunk ID: aaaaaa\nProcess exited with code 0\nOriginal token count: 4000\nOutput:\none\n... (truncated)"},
			{Tool: "apply_patch", Does: Edit, Paths: []string{"docs/words.md", "docs/old.md"}, HasResult: true,
				Args:   map[string]string{"input": "*** Update File: docs/words.md\n@@\n-one\n+two\n*** Delete File: docs/old.md\n"},
				Result: "Exit code: 0\nOutput:\nSuccess. Updated the following files:\nM docs/words.md\nD docs/old.md"},
		},
		"cursor": {
			{Tool: "read_file_v2", Does: Read, Args: none, Paths: []string{`c:\work\site\index.html`}},
			{Tool: "search_replace", Does: Edit, Paths: []string{`c:\work\site\index.html`},
				Args: map[string]string{"diff": "@@ -3,1 +3,1 @@\n- <h1>Old</h1>\n+ <h1>New</h1>\n"}},
			{Tool: "run_terminal_command_v2", Does: Shell, Args: none, Command: "cd /home/ann/site && npm run build",
				Result: "built", HasResult: true},
			{Tool: "grep", Does: Search, Args: map[string]string{"path": "/home/ann/site", "pattern": "h1"},
				Result: "| `index.html` | L3 |", HasResult: true},
		},
		"older": {
			{Tool: "read_file", Does: Read, Args: none, Paths: []string{"/home/ann/site/settings.json"}},
			{Tool: "run_terminal_cmd", Does: Shell, Args: none, Command: "ls", Result: "settings.json", HasResult: true},
		},
		"copilot": {
			{Tool: "replace_string_in_file", Does: Edit, Paths: []string{"/home/ann/site/list.txt"},
				Names: []string{"filePath", "newString", "oldString"},
				Args:  map[string]string{"filePath": "/home/ann/site/list.txt", "newString": "one", "oldString": "one\ntwo"}},
			{Tool: "run_in_terminal", Does: Shell, Args: none, Command: "pytest -q && touch done",
				Names:  []string{"commandLine"},
				Result: `{"content": "2 passed"}`, HasResult: true},
		},
	} {
		got := calls(load(t, name))
		for i := range max(len(got), len(want)) {
			switch {
			case i >= len(got):
				t.Errorf("%s: no call %d, want %+v", name, i, want[i])
			case i >= len(want):
				t.Errorf("%s: call %d is %+v, want none", name, i, got[i])
			case !reflect.DeepEqual(got[i], want[i]):
				t.Errorf("%s: call %d is\n%#v, want\n%#v", name, i, got[i], want[i])
			}
		}
	}
}

func TestWhatAnExportSaysOfASession(t *testing.T) {
	s := load(t, "claude")
	if want := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC); s.Agent != "Claude Code" || !s.Start.Equal(want) ||
		s.ID != "11111111-2222-4333-8444-555555555555" {
		t.Errorf("the session is %q %q of %v", s.Agent, s.ID, s.Start)
	}
	var kinds []Kind
	sides := 0
	for _, e := range s.Events {
		kinds = append(kinds, e.Kind)
		if e.Side {
			sides++
		}
	}
	if want := []Kind{Prompt, Thought, Use, Use, Use, Use, Words, Use, Use, Use, Use, Use}; !reflect.DeepEqual(kinds, want) {
		t.Errorf("the events are %v, want %v", kinds, want)
	}
	if sides != 1 {
		t.Errorf("%d events are of a subagent, want 1", sides)
	}
	if s := load(t, "cursor"); s.Copies != 1 {
		t.Errorf("%d calls repeat the one before them, want 1", s.Copies)
	}
}

func TestACallThatDoesNotEndIsCounted(t *testing.T) {
	const open = "<tool-use data-tool-type=\"read\" data-tool-name=\"Read\"><details>\n<summary>Tool use: **Read**</summary>\n"
	for text, broken := range map[string]int{
		open + " `a`\n":               1,
		open + " `a`\n" + open:        2,
		open + "</details>\n":         1,
		"_**User**_\n\nno calls":      0,
		open + "</details>" + toolEnd: 0,
	} {
		if s := Parse(text); s.Broken != broken {
			t.Errorf("%d calls of %q are broken, want %d", s.Broken, text, broken)
		}
	}
}

func TestACutResultHasTheSizeThatTheModelSaw(t *testing.T) {
	all := calls(load(t, "codex"))
	if n, ok := all[0].Cut(); n != "4000" || !ok {
		t.Errorf("the size is %q, %v", n, ok)
	}
	if n, ok := all[1].Cut(); ok {
		t.Errorf("a whole result has the size %q", n)
	}
}
