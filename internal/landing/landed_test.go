package landing_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestWhatHasLandedIsSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "! test -e red && ! test -e x.pyc", map[string]string{"a.txt": "1\n2\n", "dist/old.js": "x\n"})
	task, _ := w.task("some", "alice", map[string]string{"a.txt": "1\n3\n4\n", "b\n.bin": "\x00", "dist/new.js": "y\n", "x.pyc": "left\n"})
	v := w.lands(task)
	equal(t, "changes", v.Changes, "3 files, +3 -1: a.txt, b .bin, dist/new.js; left out: x.pyc")
	equal(t, "note", v.Note, "")
	equal(t, "changes after a crash", w.landed(w.try(task)).Changes, "3 files, +3 -1: a.txt, b .bin, dist/new.js")

	files := map[string]string{"build/a": "a\n", "build/b": "b\n", "c/d.log": "c\n", ".idea/x/build/y": "y\n"}
	for i := range 20 {
		files[fmt.Sprintf("f%02d", i)] = "f\n"
		files[fmt.Sprintf("%s/node_modules/n", strings.Repeat("g", i+1))] = "left\n"
	}
	task, _ = w.task("many", "alice", files)
	v = w.lands(task)
	equal(t, "many", v.Changes, "24 files, +24 -0: .idea/x/build/y, build/a, build/b, c/d.log, f00, f01 and 18 more; "+
		"left out: g/node_modules/, gg/node_modules/, ggg/node_modules/, gggg/node_modules/, ggggg/node_modules/, "+
		"gggggg/node_modules/ and 14 more")
	equal(t, "note on many", v.Note, "Other projects ignore such files, and these have landed: .idea/, build/, c/d.log. If "+
		"one does not belong in the repository, a further task must remove it and name it in .gitignore.")

	task, _ = w.task("red", "alice", map[string]string{"red": "r\n", "__pycache__/x.pyc": "left\n"})
	says(t, w.back(task).Text, "left out: __pycache__/. git add -f PATH lands one of them.")
}
