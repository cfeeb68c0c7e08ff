package code

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"muster/internal/testing/require"
	"muster/llm"
)

// TestPreview checks what a call is said to change before it runs, and that this changes nothing.
func TestPreview(t *testing.T) {
	k := newKit(t)
	files := map[string]string{"a.txt": "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "crlf.txt": "a\r\nb\r\n", "old.txt": "x\ny\n"}
	for name, content := range files {
		k.put(name, content)
	}
	patch := "*** Begin Patch\n*** Update File: a.txt\n@@\n-2\n+two\n*** Update File: old.txt\n*** Move to: moved.txt\n@@\n-x\n+z\n" +
		"*** Add File: new.txt\n+n\n*** Delete File: crlf.txt\n*** End Patch"
	const ofPatch = "--- a/a.txt\n+++ b/a.txt\n@@ -1,5 +1,5 @@\n 1\n-2\n+two\n 3\n 4\n 5\n--- a/old.txt\n+++ b/moved.txt\n@@ -1,2 +1,2 @@\n-x\n+z\n y\n" +
		"--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+n\n--- a/crlf.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n"
	for name, c := range map[string]struct {
		tool string
		in   any
		want string
	}{
		"an edit": {"edit_file", in{"path": "a.txt", "old_text": "5", "new_text": "five"},
			"--- a/a.txt\n+++ b/a.txt\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"},
		"a file that is replaced": {"write_file", in{"path": "a.txt", "content": strings.Replace(files["a.txt"], "1\n", "", 1)},
			"--- a/a.txt\n+++ b/a.txt\n@@ -1,4 +1,3 @@\n-1\n 2\n 3\n 4\n"},
		"line ends that stay":         {"write_file", in{"path": "crlf.txt", "content": "a\nc\n"}, "--- a/crlf.txt\n+++ b/crlf.txt\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"},
		"a new file":                  {"write_file", in{"path": "dir/n", "content": "n"}, "--- /dev/null\n+++ b/dir/n\n@@ -0,0 +1 @@\n+n\n"},
		"a patch":                     {"apply_patch", in{"input": patch}, ofPatch},
		"a patch in a shell":          {"bash", in{"command": "apply_patch <<'EOF'\n" + patch + "\nEOF"}, ofPatch},
		"a call that fails":           {"edit_file", in{"path": "a.txt", "old_text": "none", "new_text": "b"}, ""},
		"a command":                   {"bash", in{"command": "touch ran"}, ""},
		"a file outside":              {"write_file", in{"path": "../x", "content": "n"}, ""},
		"a command in the background": {"bash", in{"command": "touch ran", "background": true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			input := require.Value(json.Marshal(c.in))(t)
			changes := Preview(t.Context(), k.place, llm.Call{ID: "1", Name: c.tool, Input: input})
			got, added, removed := Unified(changes)
			if got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			e := ReadUnified(got)
			if e.Added != added || e.Removed != removed || len(e.Files) != strings.Count(got, "\n+++ ") {
				t.Errorf("+%d -%d, %d files, of +%d -%d: %s", e.Added, e.Removed, len(e.Files), added, removed, got)
			}
		})
	}
	for name, content := range files {
		if got := k.get(name); got != content {
			t.Errorf("%s is %q", name, got)
		}
	}
	if all := require.Value(filepath.Glob(filepath.Join(k.dir, "*")))(t); len(all) != len(files) {
		t.Errorf("there are %q", all)
	}
}

// TestPreviewRefusesNothing checks that a look at what a call would change does not count as the warning that the file
// was changed meanwhile.
func TestPreviewRefusesNothing(t *testing.T) {
	k := newKit(t)
	k.show("a.txt", "mine\n")
	k.put("a.txt", "of somebody else\n")
	call := in{"path": "a.txt", "content": "mine again\n"}
	input := require.Value(json.Marshal(call))(t)
	diff, _, _ := Unified(Preview(t.Context(), k.place, llm.Call{ID: "1", Name: "write_file", Input: input}))
	if !strings.Contains(diff, "-of somebody else") {
		t.Errorf("the change is %q", diff)
	}
	if r := k.call("write_file", call); !r.IsError || !strings.Contains(r.Text(), "has changed since you read it") {
		t.Errorf("the call says %q", r.Text())
	}
}

// TestLongDifference cuts a difference after whole lines, and compares no file that is too long.
func TestLongDifference(t *testing.T) {
	diff, added, _ := Unified([]FileChange{{Path: "a", After: strings.Repeat("ä line\n", 1000), IsNew: true}})
	cut := CutUnified(diff, 101)
	if e := ReadUnified(cut); added != 1000 || len(cut) > 120 || !strings.HasSuffix(cut, "\n... more\n") || e.Added != 6 {
		t.Errorf("+%d, %d bytes, %+v", added, len(cut), e)
	}
	diff, added, _ = Unified([]FileChange{{Path: "a", Before: strings.Repeat("x", maxDiffed), After: "y"}})
	if diff != "--- a/a\n+++ b/a\n" || added != 0 {
		t.Errorf("+%d, %d bytes", added, len(diff))
	}
}
