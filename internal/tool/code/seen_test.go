package code

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A model is told when a file is not what it has seen of it. Edits keep their exact effect; what would replace or delete
// the change unseen is refused once.
func TestAFileThatHasChangedSinceItWasRead(t *testing.T) {
	const note = "\n[f.txt had changed since you read it, and not by your tools for files: read it again before you change " +
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
			got := text(k.call(c.tool, c.call))
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
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
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
