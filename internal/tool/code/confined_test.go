package code

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"muster"
	"muster/internal/testing/require"
)

// TestConfined: no path leads out, whichever tool takes it.
func TestConfined(t *testing.T) {
	k := newKit(t)
	above := filepath.Dir(k.dir)
	secret := filepath.Join(above, "secret")
	require.NoError(t, os.WriteFile(secret, []byte("SECRET"), 0o600))
	k.put("sub/a.txt", "inside")
	for link, to := range map[string]string{"out": secret, "up": "../secret", "dir": above,
		"nowhere": filepath.Join(above, "none"), "chain": "dir/secret"} {
		require.NoError(t, os.Symlink(to, filepath.Join(k.dir, link)))
	}
	leads := " leads out of your working directory (" + k.dir + "): use a path below it"
	outside := " is outside of your working directory (" + k.dir + "): use a path below it"
	isLink := " is a link that leads out of your working directory: use a path below " + k.dir
	for path, want := range map[string]string{
		"../secret":                leads,
		"sub/../../secret":         leads,
		secret:                     outside,
		"/etc/passwd":              outside,
		k.dir + "/../secret":       outside,
		"out":                      isLink,
		"up":                       isLink,
		"dir/secret":               isLink,
		"chain":                    isLink,
		"dir/new":                  isLink,
		filepath.Join(k.dir, "up"): isLink,
	} {
		same(t, "read "+path, k.sorry("read_file", in{"path": path}), path+want)
		same(t, "write "+path, k.sorry("write_file", in{"path": path, "content": "x"}), path+want)
		same(t, "edit "+path, k.sorry("edit_file", in{"path": path, "old_text": "SECRET", "new_text": "x"}), path+want)
		same(t, "grep "+path, k.sorry("grep", in{"path": path, "pattern": "SECRET"}), path+want)
		if got := k.call("glob", in{"pattern": path + "/*"}).Text(); strings.Contains(got, "secret\n") {
			t.Errorf("glob %s: %s", path, got)
		}
	}
	k.sorry("write_file", in{"path": "nowhere", "content": "x"})
	if _, err := os.Stat(filepath.Join(above, "none")); err == nil {
		t.Error("written through a link to nowhere")
	}
	same(t, "grep of links", k.ok("grep", in{"pattern": "SECRET"}), "No match in 6 files.")
	if data, _ := os.ReadFile(secret); string(data) != "SECRET" {
		t.Errorf("the secret is %q", data)
	}
	k.sorry("read_file", in{"path": "a\x00b"})
	k.put(".git/config", "SECRET")
	require.NoError(t, os.Symlink(".git/config", filepath.Join(k.dir, "innocent")))
	for _, path := range []string{".git", ".git/config", "sub/.git/hooks/pre-commit", ".GIT/config", "innocent"} {
		for tool, args := range map[string]in{"write_file": {"content": "x"}, "read_file": {}, "grep": {"pattern": "SECRET"}} {
			args["path"] = path
			same(t, tool+" "+path, k.sorry(tool, args), path+" is git's own: only git reads and changes it")
		}
	}
}

// TestWaysIn: the same file under each of its names.
func TestWaysIn(t *testing.T) {
	k := newKit(t)
	k.put("sub/a.txt", "inside")
	for link, to := range map[string]string{"rel": "sub/a.txt", "abs": filepath.Join(k.dir, "sub/a.txt"),
		"subdir": "sub", filepath.Join("..", "alias"): k.dir} {
		require.NoError(t, os.Symlink(to, filepath.Join(k.dir, link)))
	}
	for _, path := range []string{"sub/a.txt", "./sub//a.txt", "sub/../sub/a.txt", filepath.Join(k.dir, "sub/a.txt"),
		"rel", "abs", "subdir/a.txt"} {
		same(t, path, k.ok("read_file", in{"path": path}), "1\tinside\n")
	}
	// A working directory that is named through a link takes either name.
	k.place.Dir = filepath.Join(filepath.Dir(k.dir), "alias")
	for _, path := range []string{filepath.Join(k.dir, "sub/a.txt"), filepath.Join(k.place.Dir, "sub/a.txt")} {
		same(t, path, k.ok("read_file", in{"path": path}), "1\tinside\n")
	}
	// Writing through a link changes what it points to, and leaves the link.
	k.ok("write_file", in{"path": "rel", "content": "changed"})
	same(t, "the file", k.get("sub/a.txt"), "changed")
	if fi, err := os.Lstat(filepath.Join(k.dir, "rel")); err != nil || fi.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v", err)
	}
}

// TestSub: commands start in a directory below the working directory, and relative paths of all tools begin there.
func TestSub(t *testing.T) {
	k := newKit(t)
	k.put("web/app/a.txt", "of the app")
	k.put("web/go.work", "go 1.24\n")
	k.put("api/b.txt", "of the api")
	require.NoError(t, exec.Command("git", "init", "-q", k.dir).Run())
	if k.place.Enter("none") || k.place.Enter("api/b.txt") || k.place.Enter("..") || !k.place.Enter("web/app") {
		t.Fatal(k.place.Sub)
	}
	at := filepath.Join(k.dir, "web/app")
	same(t, "bash", k.ok("bash", in{"command": "pwd; echo $PWD $GOWORK"}), at+"\n"+at)
	same(t, "workdir", k.ok("bash", in{"command": "pwd; echo $GOWORK", "workdir": "../../api"}), filepath.Join(k.dir, "api")+"\noff")
	same(t, "read", k.ok("read_file", in{"path": "a.txt"}), "1\tof the app\n")
	same(t, "read above", k.ok("read_file", in{"path": "../../api/b.txt"}), "1\tof the api\n")
	same(t, "glob", k.ok("glob", in{"pattern": "*"}), "a.txt")
	same(t, "glob above", k.ok("glob", in{"pattern": "../../api/*"}), "../../api/b.txt")
	same(t, "grep", k.ok("grep", in{"pattern": "of the"}), "a.txt:1:of the app\n")
	k.ok("bash", in{"command": "apply_patch <<E\n*** Begin Patch\n*** Add File: new.txt\n+new\n*** End Patch\nE"})
	same(t, "patched", k.ok("read_file", in{"path": filepath.Join(at, "new.txt")}), "1\tnew\n")
	same(t, "from the top", k.sorry("read_file", in{"path": "api/b.txt"}),
		"there is no api/b.txt below web/app, where relative paths begin; the one at the top is ../../api/b.txt")
	k.sorry("read_file", in{"path": "../../../secret"})
}

func TestReadOnlyRoots(t *testing.T) {
	k := newKit(t)
	outputs := k.place.ReadOnly[0]
	path := filepath.Join(outputs, "bob", "check.txt")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte("one\ntwo\n"), 0o600))
	same(t, "read", k.ok("read_file", in{"path": path}), "1\tone\n2\ttwo\n")
	same(t, "grep", k.ok("grep", in{"pattern": "w", "path": outputs}), path+":2:two\n")
	same(t, "glob", k.ok("glob", in{"pattern": outputs + "/**/*.txt"}), path)
	same(t, "write", k.sorry("write_file", in{"path": path, "content": "x"}),
		path+" can only be read: write below "+k.dir)
	same(t, "relative", k.sorry("read_file", in{"path": "../outputs/bob/check.txt"}),
		"../outputs/bob/check.txt leads out of your working directory ("+k.dir+"): use a path below it")
}

func TestWhereNothingIsWritten(t *testing.T) {
	k := newKit(t)
	k.put("a.txt", "a")
	k.place.Writable, k.place.Why = false, "claim a task first"
	same(t, "write", k.sorry("write_file", in{"path": "a.txt", "content": "b"}), "claim a task first")
	same(t, "edit", k.sorry("edit_file", in{"path": "a.txt", "old_text": "a", "new_text": "b"}), "claim a task first")
	same(t, "read", k.ok("read_file", in{"path": "a.txt"}), "1\ta\n")
	same(t, "bash", k.ok("bash", in{"command": "cat a.txt"}), "a")
}

func TestFailingWorkdir(t *testing.T) {
	k := newKit(t)
	for name, input := range map[string]in{"read_file": {"path": "a"}, "write_file": {"path": "a", "content": ""},
		"edit_file": {"path": "a", "old_text": "a", "new_text": "b"}, "glob": {"pattern": "*"}, "grep": {"pattern": "a"},
		"bash": {"command": "true"}} {
		k.place.err = muster.Errorf(muster.Fenced, "task 3 was taken from you").WithHint("claim another")
		same(t, name, k.sorry(name, input), "task 3 was taken from you: claim another")
		k.place.err = muster.Errorf(muster.Unavailable, "the store is gone")
		if _, err := k.try(t.Context(), name, input); !errors.Is(err, muster.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	k.place.err = nil
	k.place.Dir = filepath.Join(k.dir, "none")
	if _, err := k.try(t.Context(), "read_file", in{"path": "a"}); err == nil {
		t.Error("a place that is not there is the runtime's trouble")
	}
}
