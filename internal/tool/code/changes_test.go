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
		"--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,1 @@\n+n\n--- a/crlf.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n"
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
		"a new file":                  {"write_file", in{"path": "dir/n", "content": "n"}, "--- /dev/null\n+++ b/dir/n\n@@ -0,0 +1,1 @@\n+n\n"},
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
			got, added, removed := Unified(changes, nil, 10_000)
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

// TestPreviewOfAnUnreadFile does not call a file new that exists and is too long to be read.
func TestPreviewOfAnUnreadFile(t *testing.T) {
	k := newKit(t)
	k.put("big", strings.Repeat("x", maxEditBytes+1))
	changes := Preview(t.Context(), k.place, llm.Call{ID: "1", Name: "write_file", Input: []byte(`{"path":"big","content":"y\n"}`)})
	const want = "--- a/big\n+++ b/big\n" + notRead + "\n@@ -0,0 +1,1 @@\n+y\n"
	if got, _, _ := Unified(changes, nil, 1000); got != want {
		t.Errorf("%q", got)
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
	diff, _, _ := Unified(Preview(t.Context(), k.place, llm.Call{ID: "1", Name: "write_file", Input: input}), nil, 1000)
	if !strings.Contains(diff, "-of somebody else") {
		t.Errorf("the change is %q", diff)
	}
	if r := k.call("write_file", call); !r.IsError || !strings.Contains(r.Text(), "has changed since you read it") {
		t.Errorf("the call says %q", r.Text())
	}
}

// TestPreviewOfMoves names each file of the disk that a patch changes, also where it moves files in turns.
func TestPreviewOfMoves(t *testing.T) {
	for name, c := range map[string]struct{ patch, want string }{
		"moved, and made anew": {"*** Update File: a\n*** Move to: b\n@@\n-1\n+2\n*** Add File: a\n+evil\n",
			"--- a/a\n+++ b/a\n@@ -1,1 +1,1 @@\n-1\n+evil\n--- /dev/null\n+++ b/b\n@@ -0,0 +1,1 @@\n+2\n"},
		"to where one was": {"*** Delete File: c\n*** Update File: a\n*** Move to: c\n@@\n-1\n+2\n",
			"--- a/c\n+++ b/c\n@@ -1,1 +1,1 @@\n-c\n+2\n--- a/a\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-1\n"},
		"moved twice": {"*** Update File: a\n*** Move to: b\n@@\n-1\n+2\n*** Update File: b\n*** Move to: d\n@@\n-2\n+3\n",
			"--- a/a\n+++ b/d\n@@ -1,1 +1,1 @@\n-1\n+3\n"},
		"made, moved away and back": {"*** Add File: n\n+x\n*** Update File: n\n*** Move to: m\n*** Update File: m\n*** Move to: n\n",
			"--- /dev/null\n+++ b/n\n@@ -0,0 +1,1 @@\n+x\n"},
		"moved away and back": {"*** Update File: a\n*** Move to: b\n@@\n-1\n+2\n*** Update File: b\n*** Move to: a\n",
			"--- a/a\n+++ b/a\n@@ -1,1 +1,1 @@\n-1\n+2\n"},
		"moved and deleted": {"*** Update File: a\n*** Move to: b\n@@\n-1\n+2\n*** Delete File: b\n", "--- a/a\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			k.put("a", "1\n")
			k.put("c", "c\n")
			input := require.Value(json.Marshal(in{"input": "*** Begin Patch\n" + c.patch + "*** End Patch"}))(t)
			changes := Preview(t.Context(), k.place, llm.Call{ID: "1", Name: "apply_patch", Input: input})
			if got, _, _ := Unified(changes, nil, 1000); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestUnified checks what a difference says that is not shown whole.
func TestUnified(t *testing.T) {
	lines := func(n int) string { return strings.Repeat("a line\n", n) }
	hide := func(s string) string { return strings.ReplaceAll(s, "secret", "[hidden]") }
	for name, c := range map[string]struct {
		changes []FileChange
		most    int
		want    string
		counts  string
	}{
		"a long file does not hide the next one": {[]FileChange{{Path: "docs", After: lines(1000), IsNew: true}, {Path: "run.sh", Before: "a\n", After: "evil\n"}},
			20, "--- /dev/null\n+++ b/docs\n@@ -0,0 +1,2 @@\n+a line\n+a line\n... +998 -0 not shown\n--- a/run.sh\n+++ b/run.sh\n... +1 -1 not shown\n", "+1001 -1"},
		"a long line is cut": {[]FileChange{{Path: "min.js", Before: "x\n", After: strings.Repeat("y", 30_000)}}, 5000,
			"--- a/min.js\n+++ b/min.js\n@@ -1,1 +1,1 @@\n-x\n+" + strings.Repeat("y", maxDiffLine-4) + " ...\n", "+1 -1"},
		"only the change of a long file is compared": {[]FileChange{{Path: "big", Before: lines(300_000) + "b\n" + lines(300_000), After: lines(300_000) + "c\n" + lines(300_000)}}, 5000,
			"--- a/big\n+++ b/big\n@@ -299998,7 +299998,7 @@\n a line\n a line\n a line\n-b\n+c\n a line\n a line\n a line\n", "+1 -1"},
		"too much to compare": {[]FileChange{{Path: "big", Before: lines(100_000), After: strings.Repeat("new\n", 100_000)}}, 5000,
			"--- a/big\n+++ b/big\n" + tooLong + "\n... +100000 -100000 not shown\n", "+100000 -100000"},
		"what cannot be read": {[]FileChange{{Path: "a", After: "x\n", IsUnread: true}}, 100, "--- a/a\n+++ b/a\n" + notRead + "\n@@ -0,0 +1,1 @@\n+x\n", "+1"},
		"ends of lines":       {[]FileChange{{Path: "a", Before: "#!/bin/sh\n", After: "#!/bin/sh\r\n"}}, 100, "--- a/a\n+++ b/a\n" + onlyEnds + "\n", "+0"},
		"the last newline":    {[]FileChange{{Path: "a", Before: "a\n", After: "a"}}, 100, "--- a/a\n+++ b/a\n" + onlyEnds + "\n", "+0"},
		"secrets":             {[]FileChange{{Path: "secret", Before: "", After: "a secret\n"}}, 100, "--- a/[hidden]\n+++ b/[hidden]\n@@ -0,0 +1,1 @@\n+a [hidden]\n", "+1"},
		"an empty new file":   {[]FileChange{{Path: "a", IsNew: true}}, 100, "--- /dev/null\n+++ b/a\n", "+0"},
		"lines like heads":    {[]FileChange{{Path: "a", Before: "-- a/b\n", After: "++ b/c\n... +1 -1 not shown\n"}}, 100, "--- a/a\n+++ b/a\n@@ -1,1 +1,2 @@\n--- a/b\n+++ b/c\n+... +1 -1 not shown\n", "+2 -1"},
		"a name of two lines": {[]FileChange{{Path: "a\n+++ b/c", Before: "x\n", After: ""}}, 100, "--- a/a +++ b/c\n+++ b/a +++ b/c\n@@ -1,1 +0,0 @@\n-x\n", "-1"},
	} {
		t.Run(name, func(t *testing.T) {
			got, added, removed := Unified(c.changes, hide, c.most)
			if got != c.want {
				t.Errorf("got\n%.600s\nwant\n%.600s", got, c.want)
			}
			e := ReadUnified(got)
			if e.Counts() != c.counts || e.Added != added || e.Removed != removed || len(e.Files) != len(c.changes) {
				t.Errorf("%s of +%d -%d in %q, want %s", e.Counts(), added, removed, e.Files, c.counts)
			}
		})
	}
	many := make([]FileChange, maxDiffFiles+3)
	if got, _, _ := Unified(many, nil, 10); !strings.HasSuffix(got, "\n... 3 more files\n") || !ReadUnified(got).IsCut {
		t.Errorf("it ends with %q", got[len(got)-40:])
	}
}

// TestUnifiedCall says of a call that would fail what it says itself, without numbers.
func TestUnifiedCall(t *testing.T) {
	input := require.Value(json.Marshal(in{"input": "*** Begin Patch\n*** Update File: a\n@@\n c\n-1\n+2\n*** Add File: b\n+n\n*** Delete File: c\n*** End Patch"}))(t)
	e := ReadUnified(UnifiedCall(llm.Call{Name: "apply_patch", Input: input}, nil, 1000))
	if got, want := sketch(e.Preview(9)), asCalled+"\n= a\n c\n-1\n+2\n= b (new)\n+n\n= c (deleted)\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for call, want := range map[string]string{
		`{"content":"x\n"}`: "--- a/\n+++ b/\n@@ -0,0 +1,1 @@\n+x\n", `{"path":"a"}`: "", `{"path":"a (new)","content":"x"}`: "--- a/a (new)\n+++ b/a (new)\n@@ -0,0 +1,1 @@\n+x\n"} {
		got := UnifiedCall(llm.Call{Name: "write_file", Input: []byte(call)}, nil, 1000)
		if want != "" {
			want = asCalled + "\n" + want
		}
		if got != want {
			t.Errorf("%s is\n%s", call, got)
		}
	}
	move := require.Value(json.Marshal(in{"input": "*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-1\n+2\n*** End Patch"}))(t)
	if got, want := UnifiedCall(llm.Call{Name: "apply_patch", Input: move}, nil, 1000), asCalled+"\n--- a/a\n+++ b/b\n@@ -1,1 +1,1 @@\n-1\n+2\n"; got != want {
		t.Errorf("%q", got)
	}
	everywhere := `{"path":"a","old_text":"x","new_text":"y","replace_all":true}`
	if got, want := UnifiedCall(llm.Call{Name: "edit_file", Input: []byte(everywhere)}, nil, 1000), asCalled+"\n--- a/a\n+++ b/a\n@@ -1,1 +1,1 @@\n-x\n+y\n"; got != want {
		t.Errorf("%q", got)
	}
	if got := UnifiedCall(llm.Call{Name: "bash", Input: []byte(`{"command":"ls"}`)}, nil, 1000); got != "" {
		t.Errorf("a command is the edit %q", got)
	}
}
