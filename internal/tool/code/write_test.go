package code

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestWriteFile(t *testing.T) {
	k := newKit(t)
	same(t, "new", k.ok("write_file", in{"path": "a/b/c.txt", "content": "one\ntwo"}), "Made a/b/c.txt: 2 lines.")
	same(t, "content", k.get("a/b/c.txt"), "one\ntwo")
	if err := os.Chmod(filepath.Join(k.dir, "a/b/c.txt"), 0o751); err != nil {
		t.Fatal(err)
	}
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
