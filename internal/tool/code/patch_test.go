package code

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
	if err != nil {
		k.t.Fatal(err)
	}
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
