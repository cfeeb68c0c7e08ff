package code

import (
	"strings"
	"testing"
	"time"

	"muster/internal/testing/tier"
)

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
	both := edits(two)
	both["old_text"], both["new_text"] = "a", "b"
	same(t, "both", k.sorry("edit_file", both), "give either old_text and new_text, or edits: nothing is changed")
	same(t, "broken", k.ok("edit_file", edits(in{"old_text": "main() {", "new_text": "main( {"})),
		"Edited main.go:\n2\t\n3\timport \"fmt\"\n4\t\n5\tfunc main( {\n6\t\tfmt.Println(\"a\")\n7\t\tfmt.Println(\"b\")\n"+
			"8\t\tfmt.Println(\"a\")\n\n[main.go has errors of syntax since this change:\n"+
			"line 5: expected ')', found '{'\nline 7: expected declaration, found fmt]\n")
}

func TestNearestLines(t *testing.T) {
	const file = "alpha beta\n\tgamma(delta, epsilon)\nzeta\n"
	for _, c := range []struct{ old, want string }{
		{"gamma(delta, epsilom)", "old_text is not in f. The nearest lines are:\n1\talpha beta\n2\t\tgamma(delta, epsilon)\n3\tzeta\n"},
		{"zeta\nother", "old_text is not in f. Its line 1 is there as line 3, but what is around it differs:\n2\t\tgamma(delta, epsilon)\n3\tzeta\n4\t\n"},
		{"nothing of it", "old_text is not in f: read the file again, it may have changed"},
	} {
		same(t, c.old, explainMissing("f", file, c.old).Error(), c.want)
	}
}
