package replay

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"muster/bench/habits/session"
	"muster/internal/testing/require"
)

// began is when the invented sessions begin.
var began = time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)

// commit makes a git directory with one commit from an hour before the sessions.
func commit(t *testing.T, files map[string]string) (gitDir string) {
	dir := t.TempDir()
	root := require.Value(os.OpenRoot(dir))(t)
	defer root.Close()
	for name, content := range files {
		require.NoError(t, put(root, name, content))
	}
	at := began.Add(-time.Hour).Format(time.RFC3339)
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"},
		{"-c", "user.name=n", "-c", "user.email=e@example.com", "commit", "-qm", "all"}} {
		c := exec.CommandContext(t.Context(), "git", args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_DATE="+at,
			"GIT_COMMITTER_DATE="+at)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	return dir + "/.git"
}

// use is an event with a call.
func use(c session.Call) session.Event {
	if c.Args == nil {
		c.Args = map[string]string{}
	}
	return session.Event{Kind: session.Use, Call: &c}
}

// numbered returns lines as Claude Code shows them.
func numbered(text string) string {
	var b strings.Builder
	for i, line := range strings.Split(text, "\n") {
		fmt.Fprintf(&b, "%6d→%s\n", i+1, line)
	}
	return b.String()
}

func TestVerdictsOfCalls(t *testing.T) {
	const text, long = "one\ntwo\nthree\n", "the same line again and again, which is long enough to be cut somewhere\n"
	files := map[string]string{"src/a.txt": text, "src/b.txt": "x\ny\nx\n", "long.txt": strings.Repeat(long, 900),
		"sub/deep/c.txt": "alpha(1)\nalpha1\n"}
	const at = "/home/someone/project/"
	read := func(path, result string) session.Call {
		return session.Call{Tool: "Read", Does: session.Read, Paths: []string{path}, Result: result, HasResult: true}
	}
	for name, c := range map[string]struct {
		agent string
		call  session.Call
		want  Verdict
		kind  string
	}{
		"read": {"Claude Code", read("./src/a.txt", numbered("one\ntwo\nthree")), Same, ""},
		"read of other lines than the commit has": {"Claude Code", read("./src/a.txt", numbered("one\n2\nthree")), Drifted, ""},
		"read of a file that is not there yet":    {"Claude Code", read(at+"src/new.txt", numbered("one")), Drifted, ""},
		"read that failed then, too": {"Claude Code", session.Call{Tool: "Read", Does: session.Read, Failed: true,
			Paths: []string{at + "none.txt"}, Result: "File does not exist.", HasResult: true}, AsBefore, ""},
		"read of a longer file": {"Claude Code", read("./long.txt", numbered(strings.TrimSuffix(files["long.txt"], "\n"))),
			Cut, ""},
		"read elsewhere": {"Claude Code", read("/home/someone/.agent/plan.md", numbered("plan")), Refused,
			"a path outside of the repository"},
		"read below a drive": {"Cursor", session.Call{Tool: "read_file", Does: session.Read,
			Paths: []string{`D:\other\x.txt`}}, Refused, "a path outside of the repository"},
		"read by an editor's name": {"Cursor", session.Call{Tool: "read_file_v2", Does: session.Read,
			Paths: []string{at + "src/a.txt"}}, Done, ""},
		"edit whose texts are not known": {"Claude Code", session.Call{Tool: "Edit", Does: session.Edit, HasResult: true,
			Paths: []string{at + "src/a.txt"}, Result: "The file has been updated"}, NoArguments, ""},
		"edit by a diff": {"Cursor", session.Call{Tool: "search_replace", Does: session.Edit, Paths: []string{at + "src/a.txt"},
			Args: map[string]string{"diff": "@@ -1,2 +1,2 @@\n  one\n- two\n+ 2\n"}}, Same, ""},
		"edit by a diff of lines that are there twice": {"Cursor", session.Call{Tool: "search_replace", Does: session.Edit,
			Paths: []string{at + "src/b.txt"}, Args: map[string]string{"diff": "@@ -3,1 +3,1 @@\n- x\n+ z\n"}}, NoArguments, ""},
		"edit by a diff of lines that the commit does not have": {"Cursor", session.Call{Tool: "search_replace",
			Does: session.Edit, Paths: []string{at + "src/a.txt"},
			Args: map[string]string{"diff": "@@ -1,1 +1,1 @@\n- zero\n+ 0\n"}}, Drifted, ""},
		"edit with a name that muster does not know": {"Copilot", session.Call{Tool: "insert_edit_into_file",
			Does: session.Edit, Paths: []string{at + "src/a.txt"}, Names: []string{"filePath", "oldString", "newString"},
			Args: map[string]string{"filePath": at + "src/a.txt", "oldString": "two", "newString": "2"}}, Refused,
			"no tool of this name"},
		"patch": {"Codex", session.Call{Tool: "apply_patch", Does: session.Edit, Paths: []string{"src/a.txt"},
			Args: map[string]string{"input": "*** Update File: src/a.txt\n@@\n one\n-two\n+2\n"}}, Same, ""},
		"write": {"Claude Code", session.Call{Tool: "Write", Does: session.Write, Paths: []string{at + "new/d.txt"},
			Args: map[string]string{"content": "text"}, HasResult: true}, Same, ""},
		"search": {"Claude Code", session.Call{Tool: "Grep", Does: session.Search,
			Args: map[string]string{"pattern": "alpha", "path": "./sub"}, Result: "Found 1 file\nsub/deep/c.txt"}, Same, ""},
		"search for a text that is no pattern": {"Copilot", session.Call{Tool: "grep_search", Does: session.Search,
			Names: []string{"query", "isRegexp"}, Args: map[string]string{"query": "alpha(1)", "isRegexp": "false"}}, Same, ""},
		"names": {"Claude Code", session.Call{Tool: "Glob", Does: session.Search,
			Args: map[string]string{"pattern": "**/c.txt"}, Result: at + "sub/deep/c.txt", HasResult: true}, Same, ""},
		"names below a path": {"Claude Code", session.Call{Tool: "Glob", Does: session.Search,
			Args: map[string]string{"pattern": "deep/*", "path": at + "sub"}, Result: at + "sub/deep/c.txt", HasResult: true},
			Same, ""},
		"other names": {"Claude Code", session.Call{Tool: "Glob", Does: session.Search,
			Args: map[string]string{"pattern": "**/a.txt"}, Result: at + "sub/deep/c.txt", HasResult: true}, Other, ""},
	} {
		t.Run(name, func(t *testing.T) {
			// The first read says where the session worked.
			first := use(session.Call{Tool: "read_file", Does: session.Read, Paths: []string{at + "src/b.txt"}})
			s := session.Session{Events: []session.Event{first, use(c.call)}}
			r := require.Value(Session(t.Context(), s, c.agent, began, commit(t, files), t.TempDir()))(t)
			got := r.Outcomes[len(r.Outcomes)-1]
			if got.Verdict != c.want {
				t.Errorf("the verdict is %q, want %q: %s", got.Verdict, c.want, got.Said)
			}
			if kind := Kind(got.Said); c.want == Refused && kind != c.kind {
				t.Errorf("it is refused because of %q, want %q: %s", kind, c.kind, got.Said)
			}
		})
	}
}

func TestAnEditOfAStaleFileIsNotCompared(t *testing.T) {
	const at = "/home/someone/project/"
	path := []string{at + "src/a.txt"}
	s := session.Session{Events: []session.Event{
		use(session.Call{Tool: "Read", Does: session.Read, Paths: path, Result: numbered("one\ntwo"), HasResult: true}),
		use(session.Call{Tool: "Bash", Does: session.Shell, Command: "touch " + at + "ran", Result: strings.Repeat("word ", 40)}),
		use(session.Call{Tool: "Edit", Does: session.Edit, Paths: path, HasResult: true, Result: "updated"}),
		use(session.Call{Tool: "Read", Does: session.Read, Paths: path, Result: numbered("one\n2"), HasResult: true}),
		use(session.Call{Tool: "Write", Does: session.Write, Paths: path, Args: map[string]string{"content": "one\n3"}}),
		use(session.Call{Tool: "Read", Does: session.Read, Paths: path, Result: numbered("one\n3"), HasResult: true}),
	}}
	dir := t.TempDir()
	r := require.Value(Session(t.Context(), s, "Claude Code", began, commit(t, map[string]string{"src/a.txt": "one\ntwo\n"}),
		dir))(t)
	var got []Verdict
	for _, o := range r.Outcomes {
		got = append(got, o.Verdict)
	}
	if want := []Verdict{Same, NoArguments, Drifted, Same, Same}; !reflect.DeepEqual(got, want) {
		t.Errorf("the verdicts are %q, want %q", got, want)
	}
	if _, err := os.Stat(dir + "/ran"); r.Commands != 1 || err == nil {
		t.Errorf("%d commands were counted, and one may have run", r.Commands)
	}
	// The read has "1\tone\n2\ttwo\n", the command 200 characters.
	if want := []int{(12+3)/4 + 50}; !reflect.DeepEqual(r.Distances, want) {
		t.Errorf("the distances are %v, want %v", r.Distances, want)
	}
}

func TestASessionFromBeforeTheHistoryIsNotAvailable(t *testing.T) {
	git := commit(t, map[string]string{"a": "b"})
	if _, err := Session(context.Background(), session.Session{}, "", began.Add(-48*time.Hour), git, t.TempDir()); !IsNone(err) {
		t.Errorf("the error is %v, want none from before", err)
	}
}

func TestWhereASessionWorked(t *testing.T) {
	files := map[string]bool{"app/src/a.go": true, "app/src/b.go": true, "b.go": true}
	call := func(paths ...string) *session.Call { return &session.Call{Paths: paths} }
	w := find([]*session.Call{call("/home/x/p/app/src/a.go"), call("./src/a.go"), call("src/b.go"),
		call("/home/x/p/app/src/b.go", "/etc/hosts")}, files)
	if want := (places{root: "/home/x/p", base: "app", hasRoot: true}); w != want {
		t.Fatalf("the places are %+v, want %+v", w, want)
	}
	for recorded, want := range map[string]string{"/home/x/p/app/src/a.go": "/l/app/src/a.go", "./src/a.go": "/l/app/src/a.go",
		"/etc/hosts": "/etc/hosts", `c:\x\y`: "/c/x/y", "/home/x/p": "/l"} {
		if got := w.here(recorded, "/l", true); got != want {
			t.Errorf("%s is %s here, want %s", recorded, got, want)
		}
	}
}
