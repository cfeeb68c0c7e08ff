package code

import (
	"fmt"
	"strings"
	"testing"
)

func TestGrepShowsWhatModelsAskFor(t *testing.T) {
	k := newKit(t)
	k.put("a.go", "package a\n\nfunc Alpha() {\n\treturn\n}\n\nfunc Beta() {\n\treturn\n}\n")
	k.put("b.ts", "export const alpha = 1\r\nconst b = alpha\r\n")
	k.put("sub/c.tsx", "alpha\nalpha\nalpha")
	k.put("sub/d.pyi", "ALPHA = 1\n")
	k.put("sub/Makefile", "alpha:\n")
	k.put("sub/e.gone", "alpha alpha\n")
	for name, c := range map[string]struct {
		in   in
		want string
	}{
		"after":  {in{"pattern": "Alpha", "-A": 2}, "a.go:3:func Alpha() {\na.go-4-\treturn\na.go-5-}\n"},
		"before": {in{"pattern": "Alpha", "-B": 5}, "a.go-1-package a\na.go-2-\na.go:3:func Alpha() {\n"},
		"around, with a gap": {in{"pattern": "func", "-C": 1, "glob": "*.go"}, "a.go-2-\na.go:3:func Alpha() {\n" +
			"a.go-4-\treturn\n--\na.go-6-\na.go:7:func Beta() {\na.go-8-\treturn\n"},
		"around, touching": {in{"pattern": "return", "-C": 2, "glob": "*.go"}, "a.go-2-\na.go-3-func Alpha() {\n" +
			"a.go:4:\treturn\na.go-5-}\na.go-6-\na.go-7-func Beta() {\na.go:8:\treturn\na.go-9-}\n"},
		"of two files": {in{"pattern": "^.*const", "-A": 1, "glob": "*.{go,ts}"},
			"b.ts:1:export const alpha = 1\nb.ts:2:const b = alpha\n"},
		"a match in the lines after another": {in{"pattern": "alpha", "-A": 1, "path": "sub/c.tsx"},
			"sub/c.tsx:1:alpha\nsub/c.tsx:2:alpha\nsub/c.tsx:3:alpha\n"},
		"files": {in{"pattern": "alpha", "output_mode": "files_with_matches"}, "b.ts\nsub/Makefile\nsub/c.tsx\nsub/e.gone\n"},
		"counts": {in{"pattern": "alpha", "output_mode": "count"},
			"b.ts:2\nsub/Makefile:1\nsub/c.tsx:3\nsub/e.gone:1\n[4 files with 7 matches]\n"},
		"the first files": {in{"pattern": "alpha", "output_mode": "files_with_matches", "head_limit": 2},
			"b.ts\nsub/Makefile\n[the first 2 of 4 files: narrow the search, or go on with offset 2]\n"},
		"the next files": {in{"pattern": "alpha", "output_mode": "files_with_matches", "head_limit": 1, "offset": 2},
			"sub/c.tsx\n[3 to 3 of 4 files; go on with offset 3]\n"},
		"the last matches": {in{"pattern": "alpha", "head_limit": 3, "offset": 5},
			"sub/c.tsx:3:alpha\nsub/e.gone:1:alpha alpha\n[6 to 7 of 7 matches in 4 files: these are the last]\n"},
		"none are left": {in{"pattern": "alpha", "offset": 7},
			"[nothing is left after offset 7: there are 7 matches in 4 files]\n"},
		"a type":            {in{"pattern": "alpha", "type": "ts"}, "b.ts:1:export const alpha = 1\nb.ts:2:const b = alpha\nsub/c.tsx:1:alpha\nsub/c.tsx:2:alpha\nsub/c.tsx:3:alpha\n"},
		"by whole names":    {in{"pattern": "alpha", "type": "make"}, "sub/Makefile:1:alpha:\n"},
		"several types":     {in{"pattern": "(?i)alpha =", "type": "py, ts"}, "b.ts:1:export const alpha = 1\nsub/d.pyi:1:ALPHA = 1\n"},
		"type and glob":     {in{"pattern": "alpha", "type": "ts", "glob": "sub/**", "head_limit": 1, "output_mode": "files_with_matches"}, "sub/c.tsx\n"},
		"an excluding glob": {in{"pattern": "alpha", "glob": "!*.ts*", "output_mode": "count"}, "sub/Makefile:1\nsub/e.gone:1\n[2 files with 2 matches]\n"},
		"no such file":      {in{"pattern": "alpha", "type": "rust"}, "There is no file to search: nothing is there that path, glob and type accept."},
		"lines": {in{"pattern": `Alpha\(\) \{.*?\}`, "multiline": true},
			"a.go:3:func Alpha() {\na.go:4:\treturn\na.go:5:}\n"},
		"a newline in the pattern": {in{"pattern": `\}\n\nfunc`}, "a.go:5:}\na.go:6:\na.go:7:func Beta() {\n"},
		"a class of all but some":  {in{"pattern": `return[^ ]`}, "No match in 6 files."},
		"lines, counted":           {in{"pattern": "(?U)func.+}", "multiline": true, "output_mode": "count"}, "a.go:2\n"},
		"the end of a last line":   {in{"pattern": `a$`, "multiline": true, "path": "sub/c.tsx", "offset": 2}, "sub/c.tsx:3:alpha\n[3 to 3 of 3 matches in 1 file: these are the last]\n"},
		"nothing, there":           {in{"pattern": `$|x`, "multiline": true, "path": "sub/c.tsx", "output_mode": "count"}, "sub/c.tsx:3\n"},
		"lines with context": {in{"pattern": `return\s+\}`, "multiline": true, "-A": 1, "head_limit": 1},
			"a.go:4:\treturn\na.go:5:}\na.go-6-\n[the first 1 of 2 matches in 1 file: narrow the search, or go on with offset 1]\n"},
		"matches that share a line": {in{"pattern": "alpha\nalpha|alpha$", "path": "sub/c.tsx"},
			"sub/c.tsx:1:alpha\nsub/c.tsx:2:alpha\nsub/c.tsx:3:alpha\n"},
	} {
		same(t, name, k.ok("grep", c.in), c.want)
	}
	for name, c := range map[string]struct {
		in   in
		want string
	}{
		"a negative count":    {in{"pattern": "a", "-A": -1}, "-A, -B, -C, head_limit and offset are counts: they cannot be negative."},
		"a pattern as a type": {in{"pattern": "a", "type": "*.go"}, "type is a name such as go, py or ts; a pattern such as *.go belongs in glob."},
		"a far offset":        {in{"pattern": "a", "offset": 1_000_000}, "offset may be 50000 at most: narrow the search."},
	} {
		same(t, name, k.sorry("grep", c.in), c.want)
	}
}

// TestGrepReadsLargeFiles: a match behind what a worker reads at once, in a line of any length.
func TestGrepReadsLargeFiles(t *testing.T) {
	k := newKit(t)
	k.put("wide", strings.Repeat("x", 1<<20)+"needle"+strings.Repeat("y", 1<<20))
	k.put("long", strings.Repeat("hay\n", 2<<20)+"needle\nhay\n")
	same(t, "wide", k.ok("grep", in{"pattern": "nee[d]le", "path": "wide"}),
		fmt.Sprintf("wide:1:...%sneedle%s...\n", strings.Repeat("x", 100), strings.Repeat("y", 194)))
	same(t, "long", k.ok("grep", in{"pattern": "needle", "path": "long", "-C": 1}),
		"long-2097152-hay\nlong:2097153:needle\nlong-2097154-hay\n")
}
