package code

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster/internal/testing/require"
	"muster/internal/testing/tier"
)

func TestWriteFile(t *testing.T) {
	k := newKit(t)
	same(t, "new", k.ok("write_file", in{"path": "a/b/c.txt", "content": "one\ntwo"}), "Made a/b/c.txt: 2 lines.")
	same(t, "content", k.get("a/b/c.txt"), "one\ntwo")
	require.NoError(t, os.Chmod(filepath.Join(k.dir, "a/b/c.txt"), 0o751))
	same(t, "again", k.ok("write_file", in{"path": "a/b/c.txt", "content": "x\n"}), "Wrote a/b/c.txt: 1 line.")
	same(t, "empty", k.ok("write_file", in{"path": "a/b/c.txt", "content": ""}), "Wrote a/b/c.txt: 0 lines.")
	if fi, err := os.Stat(filepath.Join(k.dir, "a/b/c.txt")); err != nil || fi.Mode() != 0o751 {
		t.Errorf("mode %v, error %v", fi.Mode(), err)
	}
	same(t, "a directory", k.sorry("write_file", in{"path": "a", "content": "x"}), "a is a directory: b/")
	same(t, "below a file", k.sorry("write_file", in{"path": "a/b/c.txt/d", "content": "x"}),
		"a/b/c.txt/d: not a directory")
	left, err := os.ReadDir(filepath.Join(k.dir, "a/b"))
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, error %v", left, err)
	}
}

const program = `package main

import "fmt"

func main() {
	fmt.Println("a")
	fmt.Println("b")
	fmt.Println("a")
}
`

func TestEditFile(t *testing.T) {
	k := newKit(t)
	edit := func(old, new string, all bool) in {
		return in{"path": "main.go", "old_text": old, "new_text": new, "replace_all": all}
	}
	k.show("main.go", program)
	same(t, "one", k.ok("edit_file", edit("Println(\"b\")", "Print(\"b\\n\")", false)),
		"Edited main.go:\n4\t\n5\tfunc main() {\n6\t\tfmt.Println(\"a\")\n7\t\tfmt.Print(\"b\\n\")\n"+
			"8\t\tfmt.Println(\"a\")\n9\t}\n")
	same(t, "content", k.get("main.go"), strings.Replace(program, `Println("b")`, `Print("b\n")`, 1))
	k.show("main.go", program)
	same(t, "several", k.sorry("edit_file", edit("\"a\"", "\"c\"", false)),
		"old_text occurs 2 times in main.go (lines 6, 8): give more lines around it, or set replace_all")
	same(t, "untouched", k.get("main.go"), program)
	same(t, "all", k.ok("edit_file", edit("\"a\"", "\"c\"", true)),
		"Edited main.go at 2 places (lines 6, 8). The first:\n3\timport \"fmt\"\n4\t\n5\tfunc main() {\n"+
			"6\t\tfmt.Println(\"c\")\n7\t\tfmt.Println(\"b\")\n8\t\tfmt.Println(\"c\")\n9\t}\n")
	same(t, "all, content", k.get("main.go"), strings.ReplaceAll(program, `"a"`, `"c"`))
	k.show("main.go", program)
	same(t, "deletion", k.ok("edit_file", edit("\tfmt.Println(\"b\")\n", "", false)),
		"Edited main.go:\n4\t\n5\tfunc main() {\n6\t\tfmt.Println(\"a\")\n7\t\tfmt.Println(\"a\")\n8\t}\n")

	k.show("main.go", program)
	for name, c := range map[string]struct{ old, want string }{
		"other neighbours": {"\tfmt.Println(\"b\")\n\tfmt.Println(\"z\")\n",
			"old_text is not in main.go. Its line 1 is there as line 7, but what is around it differs:\n" +
				"6\t\tfmt.Println(\"a\")\n7\t\tfmt.Println(\"b\")\n8\t\tfmt.Println(\"a\")\n9\t}\n"},
		"not at all": {"no such line", "old_text is not in main.go: read the file again, it may have changed"},
		"empty":      {"", "old_text is empty: give the text to replace (write_file makes new files)"},
		"the same":   {"new", "old_text and new_text are the same: nothing would change"},
	} {
		same(t, name, k.sorry("edit_file", edit(c.old, "new", false)), c.want)
	}
	same(t, "untouched by errors", k.get("main.go"), program)
	same(t, "missing", k.sorry("edit_file", in{"path": "mein.go", "old_text": "a", "new_text": "b"}),
		"there is no mein.go; in the same directory: main.go (write_file makes new files)")
	k.ok("edit_file", edit("func main() {\n    fmt.Println(\"a\")\n    fmt.Println(\"b\")",
		"func main() {\n    fmt.Println(\"a\")\n    if true {\n        fmt.Println(\"c\")\n    }", false))
	same(t, "other indentation", k.get("main.go"), strings.Replace(program, "\tfmt.Println(\"b\")\n",
		"\tif true {\n\t\tfmt.Println(\"c\")\n\t}\n", 1))
	k.show("main.go", program)
	k.ok("edit_file", edit("6\t\tfmt.Println(\"a\")\n7\t\tfmt.Println(\"b\")\n", "6\t\tfmt.Println(\"z\")\n", false))
	same(t, "with line numbers", k.get("main.go"), strings.Replace(program, "(\"a\")\n\tfmt.Println(\"b\")", "(\"z\")", 1))
	k.put("program", "\x7fELF\x00\x00\x01")
	same(t, "binary", k.sorry("edit_file", in{"path": "program", "old_text": "ELF", "new_text": "b"}),
		"program is not text: use bash")
	k.put("long", strings.Repeat("x\n", 100))
	got := k.ok("edit_file", in{"path": "long", "old_text": strings.Repeat("x\n", 100),
		"new_text": strings.Repeat("y\n", 100)})
	if n := strings.Count(got, "\n"); n > 45 || !strings.Contains(got, "20\ty\n...\n81\ty\n") {
		t.Errorf("%d lines: %s", n, got)
	}
}

func TestEditKeepsLineEnds(t *testing.T) {
	k := newKit(t)
	k.put("w.txt", "one\r\ntwo\r\nthree\r\n")
	same(t, "shown", k.ok("edit_file", in{"path": "w.txt", "old_text": "one\ntwo", "new_text": "1\n2\n2.5"}),
		"Edited w.txt:\n1\t1\n2\t2\n3\t2.5\n4\tthree\n")
	same(t, "content", k.get("w.txt"), "1\r\n2\r\n2.5\r\nthree\r\n")
	k.ok("edit_file", in{"path": "w.txt", "old_text": "three", "new_text": "3\n4"})
	same(t, "a new line", k.get("w.txt"), "1\r\n2\r\n2.5\r\n3\r\n4\r\n")
	k.put("mixed", "a\nb\r\nc\nd\n")
	k.ok("edit_file", in{"path": "mixed", "old_text": "c\nd", "new_text": "c\nD"})
	same(t, "mixed", k.get("mixed"), "a\nb\r\nc\nD\n")
}

// TestEditIsReplace: what edit does with a text that is in the file is what strings.Replace does, or nothing.
func TestEditIsReplace(t *testing.T) {
	gen := rapid.StringOf(rapid.RuneFrom([]rune("ab \n\tä")))
	rapid.Check(t, func(t *rapid.T) {
		text, old, new := gen.Draw(t, "text"), gen.Draw(t, "old"), gen.Draw(t, "new")
		all := rapid.Bool().Draw(t, "all")
		after, places, changed, err := replaceText("f", text, change{OldText: old, NewText: new, ReplaceAll: all})
		n := 0 // occurrences, also those that overlap
		for i := range text {
			if old != "" && strings.HasPrefix(text[i:], old) {
				n++
			}
		}
		if wanted := old != "" && old != new && n > 0 && (n == 1 || all); wanted != (err == nil) && n > 0 {
			t.Fatalf("%d occurrences: %v", n, err)
		}
		if err != nil {
			if err.Error() == "" {
				t.Fatal("an error that says nothing")
			}
			return
		}
		if want := strings.ReplaceAll(text, old, new); n > 0 && (after != want || len(changed) != strings.Count(text, old)) {
			t.Fatalf("%q, want %q", after, want)
		}
		for i, c := range changed {
			if !strings.HasPrefix(after[c:], places[i].New) {
				t.Fatalf("%q is not where the new text is said to be", after[c:])
			}
		}
		if s := describeEdit("f", after, places[0].New, changed); !strings.HasPrefix(s, "Edited f") {
			t.Fatal(s)
		}
	})
}

// patchKit returns a kit with apply_patch and some files.
func patchKit(t *testing.T) *kit {
	k := newKit(t)
	k.tools = Tools(k.place, k.jobs.launcher, k.jobs, Options{Patches: true})
	k.put("main.go", program)
	k.put("a/x.txt", "one\ntwo\nthree\n")
	k.put("f.py", "def f():\n    x = 1\n    return x\n\n\ndef g():\n    x = 1\n    return x\n")
	return k
}

// files returns all files below the lane with their content.
func (k *kit) files() map[string]string {
	all := map[string]string{}
	err := filepath.WalkDir(k.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(k.dir, path)
			all[rel] = k.get(rel)
		}
		return err
	})
	require.NoError(k.t, err)
	return all
}

func TestApplyPatch(t *testing.T) {
	for _, c := range []struct {
		what, patch string
		want        map[string]string // what differs; "-" is for a file that is gone
	}{
		{"all kinds", "*** Begin Patch\n*** Add File: new/b.txt\n+hello\n+\n+world\n*** Update File: a/x.txt\n@@\n one\n-two\n+2\n+2.5\n three\n" +
			"*** Delete File: f.py\n*** End Patch", map[string]string{"new/b.txt": "hello\n\nworld\n", "a/x.txt": "one\n2\n2.5\nthree\n", "f.py": "-"}},
		{"move", "*** Begin Patch\n*** Update File: a/x.txt\n*** Move to: b/y.txt\n@@\n-two\n+2\n*** End Patch",
			map[string]string{"a/x.txt": "-", "b/y.txt": "one\n2\nthree\n"}},
		{"only a move", "*** Begin Patch\n*** Update File: a/x.txt\n*** Move to: y.txt\n*** End Patch",
			map[string]string{"a/x.txt": "-", "y.txt": "one\ntwo\nthree\n"}},
		{"header", "*** Begin Patch\n*** Update File: f.py\n@@ def g():\n-    x = 1\n+    x = 2\n*** End Patch",
			map[string]string{"f.py": "def f():\n    x = 1\n    return x\n\n\ndef g():\n    x = 2\n    return x\n"}},
		{"header of the first", "*** Update File: f.py\n@@ def f():\n-    x = 1\n+    x = 2\n",
			map[string]string{"f.py": "def f():\n    x = 2\n    return x\n\n\ndef g():\n    x = 1\n    return x\n"}},
		{"wrong indentation", "*** Begin Patch\n*** Update File: main.go\n@@ func main() {\n     fmt.Println(\"a\")\n-    fmt.Println(\"b\")\n+    if x {\n+        y()\n+    }\n*** End Patch",
			map[string]string{"main.go": strings.Replace(program, "\tfmt.Println(\"b\")\n", "\tif x {\n\t\ty()\n\t}\n", 1)}},
		{"two hunks", "*** Begin Patch\n*** Update File: a/x.txt\n@@\n-one\n+1\n@@\n-three\n+3\n*** End of File\n*** End Patch",
			map[string]string{"a/x.txt": "1\ntwo\n3\n"}},
		{"a file twice", "*** Begin Patch\n*** Update File: a/x.txt\n-one\n+1\n*** Update File: a/x.txt\n-1\n+I\n*** End Patch",
			map[string]string{"a/x.txt": "I\ntwo\nthree\n"}},
		{"unified", "diff --git a/a/x.txt b/a/x.txt\nindex 1..2 100644\n--- a/a/x.txt\n+++ b/a/x.txt\n@@ -1,3 +1,2 @@\n one\n-two\n three\n",
			map[string]string{"a/x.txt": "one\nthree\n"}},
		{"unified, new and gone", "--- /dev/null\n+++ b/n.txt\n@@ -0,0 +1 @@\n+n\n\\ No newline at end of file\n--- a/f.py\n+++ /dev/null\n@@ -1,8 +0,0 @@\n-def f():\n",
			map[string]string{"n.txt": "n", "f.py": "-"}},
		{"unified, without prefixes", "--- a/x.txt\n+++ a/x.txt\n@@ -9,9 +9,9 @@ where\n-two\n+--- 2\n",
			map[string]string{"a/x.txt": "one\n--- 2\nthree\n"}},
		{"a marker as context", "*** Begin Patch\n*** Add File: p\n+*** End Patch\n+b\n*** Update File: p\n *** End Patch\n-b\n+c\n*** End Patch",
			map[string]string{"p": "*** End Patch\nc\n"}},
		{"an add below a", "*** Begin Patch\n*** Add File: a/z\n+z\n*** End Patch", map[string]string{"a/z": "z\n"}},
		{"a deleted line of dashes", "*** Begin Patch\n*** Add File: d\n+-- x\n*** Update File: d\n--- x\n+y\n*** End Patch", map[string]string{"d": "y\n"}},
	} {
		k := patchKit(t)
		want := k.files()
		for name, content := range c.want {
			if want[name] = content; content == "-" {
				delete(want, name)
			}
		}
		said := k.ok("apply_patch", in{"input": c.patch})
		k.compare(c.what, want)
		if said == "" {
			t.Errorf("%s: nothing is said", c.what)
		}
	}
}

// compare compares all files with want.
func (k *kit) compare(what string, want map[string]string) {
	k.t.Helper()
	got := k.files()
	for name := range want {
		same(k.t, what+": "+name, got[name], want[name])
		delete(got, name)
	}
	if len(got) > 0 {
		k.t.Errorf("%s: there are also %v", what, got)
	}
}

func TestPatchThatDoesNotFit(t *testing.T) {
	const head = "*** Begin Patch\n*** Update File: a/x.txt\n-one\n+1\n"
	for what, patch := range map[string]string{
		"nothing":              "",
		"no file":              "-one\n+1\n",
		"missing lines":        head + "*** Update File: main.go\n-no such line at all\n+x\n*** End Patch",
		"two places":           head + "*** Update File: f.py\n-    x = 1\n+    x = 2\n*** End Patch",
		"a part of a line":     head + "*** Update File: main.go\n-Println(\"b\")\n+x\n*** End Patch",
		"a missing header":     head + "*** Update File: f.py\n@@ def h():\n-    x = 1\n+    x = 2\n*** End Patch",
		"no context":           head + "*** Update File: f.py\n@@ def g():\n+    y = 2\n*** End Patch",
		"a missing file":       head + "*** Update File: none\n-a\n+b\n*** End Patch",
		"another file":         head + "*** Update File: a/main.go\n-\tfmt.Println(\"b\")\n+b\n*** End Patch",
		"added twice":          head + "*** Add File: f.py\n+b\n*** End Patch",
		"moved onto another":   head + "*** Update File: f.py\n*** Move to: main.go\n*** End Patch",
		"out of the directory": head + "*** Add File: ../out\n+b\n*** End Patch",
		"in .git":              head + "*** Add File: .git/config\n+b\n*** End Patch",
		"deleted, then used":   head + "*** Delete File: f.py\n*** Update File: f.py\n-a\n+b\n*** End Patch",
		"no change":            head + "*** Update File: f.py\n def f():\n*** End Patch",
		"a line without sign":  head + "*** Add File: q\n+b\nc\n*** End Patch",
	} {
		k := patchKit(t)
		want := k.files()
		if said := k.sorry("apply_patch", in{"input": patch}); !strings.Contains(said, "Nothing is changed") {
			t.Errorf("%s: %s", what, said)
		}
		k.compare(what, want)
	}
}

// Where a file of a patch cannot be written, those before it get their content back.
func TestPatchThatCannotBeWritten(t *testing.T) {
	k := patchKit(t)
	k.put("d", "a file\n")
	want := k.files()
	k.sorry("apply_patch", in{"input": "*** Begin Patch\n*** Update File: a/x.txt\n-one\n+1\n*** Add File: n/o\n+x\n*** Delete File: f.py\n" +
		"*** Add File: n/o/p\n+x\n*** End Patch"})
	k.compare("restored", want)
}

// A model is told when a file is not what it has seen of it. Edits keep their exact effect; what would replace or delete
// the change unseen is refused once.
func TestAFileThatHasChangedSinceItWasRead(t *testing.T) {
	const note = "\n[f.txt was changed by a command since you read it: read it again before you change " +
		"more of it]\n"
	const refused = "f.txt has changed since you read it, and writing it would undo that. Read it again; " +
		"if you still mean it, make the same call once more"
	edit := in{"path": "f.txt", "old_text": "two", "new_text": "2"}
	write := in{"path": "f.txt", "content": "mine\n"}
	update := in{"input": "*** Begin Patch\n*** Update File: f.txt\n@@\n-two\n+2\n*** End Patch"}
	remove := in{"input": "*** Begin Patch\n*** Delete File: f.txt\n*** Add File: g.txt\n+g\n*** End Patch"}
	read := in{"path": "f.txt"}

	for name, c := range map[string]struct {
		before      func(k *kit) // what the model does with "one\ntwo\n"
		change      string       // what somebody else then writes; "" for nothing
		tool        string
		call        in
		want        string // of f.txt
		says, isnot string
	}{
		"never read":          {func(*kit) {}, "0\ntwo\n", "edit_file", edit, "0\n2\n", "Edited", "changed since"},
		"not changed":         {func(k *kit) { k.ok("read_file", read) }, "", "edit_file", edit, "one\n2\n", "Edited", "changed since"},
		"written as it was":   {func(k *kit) { k.ok("read_file", read) }, "one\ntwo\n", "write_file", write, "mine\n", "Wrote", "changed"},
		"an edit":             {func(k *kit) { k.ok("read_file", read) }, "0\ntwo\n", "edit_file", edit, "0\n2\n", note, "xxx"},
		"an edit of a part":   {func(k *kit) { k.ok("read_file", in{"path": "f.txt", "limit": 1}) }, "one\ntwo\n3\n", "edit_file", edit, "one\n2\n3\n", note, "xxx"},
		"an edit that is off": {func(k *kit) { k.ok("read_file", read) }, "one\nTWO\n", "edit_file", edit, "one\nTWO\n", "\nf.txt has changed since you read it", "Edited"},
		"a patch":             {func(k *kit) { k.ok("read_file", read) }, "0\ntwo\n", "apply_patch", update, "0\n2\n", note, "xxx"},
		"a write":             {func(k *kit) { k.ok("read_file", read) }, "0\ntwo\n", "write_file", write, "0\ntwo\n", refused, "Wrote"},
		"a deletion": {func(k *kit) { k.ok("read_file", read) }, "0\ntwo\n", "apply_patch", remove, "0\ntwo\n",
			strings.Replace(refused, "writing", "deleting", 1) + "\nNothing is changed", "Deleted"},
		"after its own write": {func(k *kit) { k.ok("write_file", in{"path": "f.txt", "content": "x"}) }, "two\n", "write_file", write,
			"two\n", refused, "Wrote"},
		"after its own edit": {func(k *kit) { k.ok("edit_file", in{"path": "f.txt", "old_text": "one", "new_text": "1"}) }, "two\n",
			"edit_file", edit, "2\n", note, "xxx"},
		"after its own patch": {func(k *kit) {
			k.ok("apply_patch", in{"input": "*** Begin Patch\n*** Update File: f.txt\n@@\n-one\n+1\n*** End Patch"})
		}, "two\n", "write_file", write, "two\n", refused, "Wrote"},
		"by another name": {func(k *kit) { k.ok("read_file", in{"path": filepath.Join(k.dir, "f.txt")}) }, "0\ntwo\n", "write_file", write,
			"0\ntwo\n", refused, "Wrote"},
		"by its own command": {func(k *kit) {
			k.ok("read_file", read)
			k.ok("bash", in{"command": "sed -i s/one/1/ f.txt"})
		}, "", "edit_file", edit, "1\n2\n", note, "xxx"},
		"a conflict": {func(k *kit) { k.ok("read_file", read) }, "one\n<<<<<<< HEAD\ntwo\n=======\n2\n>>>>>>> main\n", "write_file", write,
			"mine\n", "Wrote f.txt", "changed"},
		"read again": {func(k *kit) {
			k.ok("read_file", read)
			k.put("f.txt", "0\ntwo\n")
			k.ok("read_file", read)
		}, "", "write_file", write, "mine\n", "Wrote f.txt", "changed"},
		"asked twice": {func(k *kit) {
			k.ok("read_file", read)
			k.put("f.txt", "0\ntwo\n")
			k.sorry("write_file", write)
		}, "", "write_file", write, "mine\n", "Wrote f.txt", "changed"},
	} {
		t.Run(name, func(t *testing.T) {
			k := patchKit(t)
			k.put("f.txt", "one\ntwo\n")
			c.before(k)
			if c.change != "" {
				k.put("f.txt", c.change)
			}
			got := k.call(c.tool, c.call).Text()
			if !strings.Contains(got, c.says) || strings.Contains(got, c.isnot) {
				t.Errorf("the model reads %q", got)
			}
			same(t, "the file", k.get("f.txt"), c.want)
			if _, err := os.Stat(filepath.Join(k.dir, "g.txt")); !errors.Is(err, os.ErrNotExist) {
				t.Error("half of the patch was made")
			}
		})
	}
}

// What a file had in another lane of the member counts. The memory is bounded.
func TestWhatIsSeenOfAFile(t *testing.T) {
	k := newKit(t)
	k.put("f.txt", "one\n")
	k.ok("read_file", in{"path": "f.txt"})
	other := filepath.Join(filepath.Dir(k.dir), "other")
	require.NoError(t, os.Mkdir(other, 0o700))
	k.dir, k.place.Dir = other, other
	k.put("f.txt", "two\n")
	write := in{"path": "f.txt", "content": "mine\n"}
	k.sorry("write_file", write)
	same(t, "the file", k.get("f.txt"), "two\n")
	s := newSeenFiles()
	for i := range maxSeen + 1 {
		s.noteText(confinedPath{home: true, rel: strconv.Itoa(i)}, "x")
	}
	if len(s.sums) > maxSeen {
		t.Errorf("%d files are remembered", len(s.sums))
	}
}

func TestSyntaxAfterAChange(t *testing.T) {
	for _, c := range []struct{ name, before, after, want string }{
		{"a.go", "package a\n", "package a\nfunc {\n", "a.go has errors of syntax since this change:\nline 2: expected"},
		{"a.go", "package a\nfunc {\n", "package a\nfunc {{\n", ""},
		{"a.go", "package a\n", "package a\nvar x int\n", ""},
		{"A.GO", "", "package\n", "errors of syntax"},
		{"a.json", `{"a": 1}`, "{\"a\": 1,\n}", "line 2: invalid character '}'"},
		{"a.json", `{"a": 1}`, "{\"a\": 1}\n{\"b\": 2}\n", ""},
		{"tsconfig.json", `{"a": 1}`, "{\n// why\n\"a\": 1,}", ""},
		{"a.json", `{"a": 1}`, "{\"a\": \"http://x\",}", "line 1: invalid character '}'"},
		{"a.json", `{"a": 1}`, `{"a": 1`, "line 1: unexpected EOF"},
		{"a.yml", "a: 1\n", "a: 1\n  b: 2\n", "line:1:4: a key is not expected here"},
		{"a.yml", "a: 1\n", "a: 1\n---\nb: 2\n", ""},
		{"a.yml", "a: 1\n", "a: 1\n---\nb: [\n", "line:"},
		{"a.yaml", "a: 1\n", "a: {{ .Values.a }}\n b\n", ""},
		{"a.txt", "", "func {", ""},
	} {
		got := toolset{}.newSyntaxErrors(t.Context(), confinedPath{rel: c.name, show: c.name}, c.before, c.after)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s, %q: %q, want %q", c.name, c.after, got, c.want)
		}
	}
}

// No file keeps a check busy, or ends the program.
func TestSyntaxOfHostileFiles(t *testing.T) {
	tier.All(t) // the time limit is the promise
	for name, unit := range map[string]string{"a.go": "(", "b.go": "package a;func", "a.json": "[", "a.yml": "[", "b.yml": "- ",
		"c.yml": "&a [*a,", "d.yml": "a: \n "} {
		start := time.Now()
		newSyntaxErrors := func(name, before, after string) {
			toolset{}.newSyntaxErrors(t.Context(), confinedPath{rel: name, show: name}, before, after)
		}
		newSyntaxErrors(name, "", strings.Repeat(unit, maxCheckedBytes/len(unit)))
		newSyntaxErrors(name, "", strings.Repeat(unit, 48<<10/len(unit)))
		newSyntaxErrors(name, "", "package a\nvar x = "+strings.Repeat(unit, 100_000))
		// What grows faster than its file takes hours; the rest takes seconds, on a slow machine too.
		if d := time.Since(start); d > time.Minute {
			t.Errorf("%s takes %v", name, d)
		}
	}
}

func TestEditsAllOrNothing(t *testing.T) {
	k := newKit(t)
	k.show("main.go", program)
	edits := func(list ...in) in { return in{"path": "main.go", "edits": list} }
	two := in{"old_text": "func main() {\n", "new_text": "func main() {\n\tx()\n"}
	same(t, "two", k.ok("edit_file", edits(in{"old_text": `"b"`, "new_text": `"B"`}, two)),
		"Edited main.go with 2 edits:\n3\timport \"fmt\"\n4\t\n5\tfunc main() {\n6\t\tx()\n7\t\tfmt.Println(\"a\")\n"+
			"8\t\tfmt.Println(\"B\")\n9\t\tfmt.Println(\"a\")\n10\t}\n")
	k.show("main.go", program)
	same(t, "the second fails", k.sorry("edit_file", edits(two, in{"old_text": `"a"`, "new_text": `"B"`})),
		"edit 2 of 2: old_text occurs 2 times in main.go (lines 7, 9): give more lines around it, or set replace_all\n"+
			"None of the edits is made")
	same(t, "untouched", k.get("main.go"), program)
	same(t, "undone", k.sorry("edit_file", edits(in{"old_text": `"b"`, "new_text": `"B"`},
		in{"old_text": `"B"`, "new_text": `"b"`})), "the edits undo each other: nothing would change in main.go")
	same(t, "another file", k.sorry("edit_file", edits(in{"old_text": "a", "new_text": "b", "file_path": "other.go"})),
		"edit 1 of 1 is of other.go, and one call changes one file: nothing is changed. "+
			"Call edit_file once for each file")
	k.ok("edit_file", edits(in{"old_text": `"b"`, "new_text": `"c"`, "path": "./main.go"}))
	same(t, "the same file", k.get("main.go"), strings.Replace(program, `"b"`, `"c"`, 1))
	k.show("main.go", program)
	for _, tl := range k.tools { // models are not told of a path for each edit
		if s := string(tl.Spec().Schema); tl.Spec().Name == "edit_file" && strings.Count(s, `"path":`) != 1 {
			t.Error(s)
		}
	}
	both := edits(two)
	both["old_text"], both["new_text"] = "a", "b"
	same(t, "both", k.sorry("edit_file", both), "give either old_text and new_text, or edits: nothing is changed")
	same(t, "broken", k.ok("edit_file", edits(in{"old_text": "main() {", "new_text": "main( {"})),
		"Edited main.go:\n2\t\n3\timport \"fmt\"\n4\t\n5\tfunc main( {\n6\t\tfmt.Println(\"a\")\n7\t\tfmt.Println(\"b\")\n"+
			"8\t\tfmt.Println(\"a\")\n\n[main.go has errors of syntax since this change:\n"+
			"line 5: expected ')', found '{'\nline 7: expected declaration, found fmt]\n")
}
