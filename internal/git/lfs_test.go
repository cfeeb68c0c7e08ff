package git

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster"
	"muster/internal/testing/require"
)

// Of what lies where git-lfs keeps files in a place, the files that have the sum of their name become the repository's.
// What else is there is not waited for, and too much of it is refused.
func TestFilesOfLFS(t *testing.T) {
	const text = "content\n"
	hash := sha256.Sum256([]byte(text))
	sum := hex.EncodeToString(hash[:])
	dir := "lfs/objects/" + sum[:2] + "/" + sum[2:4]
	other := strings.Replace(dir, sum[:2], "aa", 1) + "/aa" + sum[2:]
	const hole = "dd if=/dev/null bs=1048576 seek=5120 of=" // 5 GB
	good := fmt.Sprintf("mkdir -p %s; printf 'content\\n' >%[1]s/%s; ", dir, sum)
	for name, c := range map[string]struct {
		script  string
		isTaken bool
		err     error
	}{
		"a file":                    {good, true, nil},
		"no git-lfs":                {good + ": none", false, nil},
		"another sum":               {"mkdir -p lfs/objects/aa/" + sum[2:4] + "; echo x >" + other, false, nil},
		"another directory":         {good + "mv lfs/objects/" + sum[:2] + " lfs/objects/00", false, nil},
		"a link to the file":        {good + fmt.Sprintf("mv %s/%s $PLACE/x; ln -s $PLACE/x %[1]s/%[2]s", dir, sum), false, nil},
		"a pipe":                    {fmt.Sprintf("mkdir -p %s; mkfifo %[1]s/%s", dir, sum), false, nil},
		"a file for the directory":  {": >lfs/objects", false, nil},
		"odd names besides":         {good + "mkdir -p 'lfs/objects/a b/c' lfs/objects/00/11/22/33; : >'lfs/objects/a b/c/d\n100 '", true, nil},
		"a hole":                    {good + "mkdir -p $(dirname " + other + "); " + hole + other, false, muster.ErrInvalid},
		"a hole in an odd place":    {good + hole + "lfs/objects/x; " + hole + "lfs/objects/00", true, nil},
		"one that is there already": {good + hole + dir + "/" + sum, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLane(t)
			kept := filepath.Join(l.repo.CommonDir(), filepath.FromSlash(dir), sum)
			if !strings.HasSuffix(c.script, ": none") {
				l.repo.drivers.armed["filter.lfs"] = driver{"clean": "cat"}
			}
			if strings.HasPrefix(name, "one that is there") {
				require.NoError(t, os.MkdirAll(filepath.Dir(kept), 0o755))
				require.NoError(t, os.WriteFile(kept, []byte(text), 0o444))
			}
			l.spoil(c.script)
			if err := l.p.TakeObjects(t.Context(), []string{l.branch()}, []string{l.branch()}); !errors.Is(err, c.err) {
				t.Errorf("%v, want %v", err, c.err)
			}
			data, _ := os.ReadFile(kept)
			if st, err := os.Stat(kept); (err == nil) != c.isTaken || err == nil && (st.Mode().Perm() != 0o444 || string(data) != text) {
				t.Errorf("the repository has %v, %q", st, data)
			}
			if !isMissing(filepath.Join(l.repo.CommonDir(), "muster/quarantine/lanes/a")) {
				t.Error("the copies are still there")
			}
		})
	}
}
