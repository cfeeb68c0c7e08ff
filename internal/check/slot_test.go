package check_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster"
	"muster/internal/check"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
)

// kept makes checks run in slots.
func kept(cache string) func(*check.Options) { return func(o *check.Options) { o.Cache = cache } }

// green fails the test unless the check is green on HEAD.
func (w *world) green(cache, command string) {
	w.t.Helper()
	if res := w.head(w.runner(command, kept(cache))); !res.Green {
		w.t.Errorf("%s: %s\n%s", command, res.How, res.Output)
	}
}

// isClean is a check that finds the three files of the test's repository as they were committed, and nothing else.
const isClean = `set -ex
test "$(cat a.txt b.txt d/c.txt)" = "$(printf 'a\nb\nc')"
test "$(find . -name .git -prune -o -print | sort | tr '\n' ' ')" = '. ./.gitignore ./a.txt ./b.txt ./d ./d/c.txt '
find . -name .git -prune -o -printf '%p %m\n' | sort | diff - "$OUT"
test -z "$(git status --porcelain --ignored)"; test "$(git ls-files -v | cut -c1 | sort -u)" = H
test -z "$(git config user.evil)"; test -z "$(ls -A "$TMPDIR")"
test "$(ls -A ..)" = "$(printf 'repo\ntemporary')"`

var threeFiles = map[string]string{"a.txt": "a\n", "b.txt": "b\n", "d/c.txt": "c\n", ".gitignore": "*.ignored\n"}

// Whatever a check does to its directory, the next one finds nothing of it.
func TestASlotIsCleanForEachCheck(t *testing.T) {
	t.Parallel()
	w, cache := newWorld(t, threeFiles), t.TempDir()
	out := filepath.Join(t.TempDir(), "modes")
	elsewhere := out + ".elsewhere"
	gittest.Write(t, elsewhere, map[string]string{"keep": "mine\n"})
	env := `OUT='` + out + `'; export OUT; `
	w.green(cache, env+`find . -name .git -prune -o -printf '%p %m\n' | sort > "$OUT"`)
	for name, mess := range map[string]string{
		"files":             `echo x > new; echo x > y.ignored; mkdir -p e/f; echo x > e/f/g; rm b.txt; echo x > a.txt`,
		"a nested git":      `git init -q nested; touch nested/file`,
		"modes":             `chmod 700 a.txt; chmod 500 d; chmod 444 b.txt`,
		"hidden changes":    `echo x > a.txt; git update-index --assume-unchanged a.txt; echo x > b.txt; git update-index --skip-worktree b.txt`,
		"times set back":    `touch -r a.txt stamp; printf 'x\n' > a.txt; touch -r stamp a.txt; rm stamp`,
		"another git":       `rm -rf .git; git init -q; git config user.evil x; git config core.worktree /; echo ref: refs/heads/x > .git/HEAD`,
		"git as a file":     `rm -rf .git; echo "gitdir: /nowhere" > .git`,
		"locks":             `touch .git/index.lock .git/HEAD.lock`,
		"half a git":        `: > .git/HEAD; : > .git/index; rm -rf .git/objects`,
		"links":             `rm -rf d; ln -s / d; rm a.txt; ln -s b.txt a.txt; ln b.txt ../hard`,
		"files for dirs":    `rm -rf d; echo x > d; rm a.txt; mkdir a.txt`,
		"unreadable":        `mkdir -p no/no; touch no/no/no; chmod 000 no/no; chmod 000 no`,
		"beside":            `touch ../beside; mkdir ../more; touch "$TMPDIR/left"`,
		"everything":        `rm -rf ../* .git a.txt b.txt d .gitignore; true`,
		"itself a link":     `cd ..; rm -rf repo; ln -s "$OUT.elsewhere" repo`,
		"itself unwritable": `chmod 500 .`,
		"the index of ours": `printf junk > ../../slot-1.git/index`,
		"a lock of ours":    `touch ../../slot-1.git/index.lock`,
		"the list of ours":  `printf '{"a.txt":' > ../../slot-1.files`,
		"no list":           `rm ../../slot-1.files`,
	} {
		w.green(cache, env+mess)
		w.green(cache, env+isClean)
		if gittest.Read(t, elsewhere, "keep") != "mine\n" {
			t.Error("a file elsewhere has changed")
		}
		if t.Failed() {
			t.Fatalf("after %s", name)
		}
	}
}

// A slot has the same path each time, and a file that is the same in the next commit keeps its time. What is not the
// same changes.
func TestASlotKeepsWhatStaysTheSame(t *testing.T) {
	t.Parallel()
	w, cache, out := newWorld(t, threeFiles), t.TempDir(), filepath.Join(t.TempDir(), "out")
	w.green(cache, `{ pwd; stat -c '%n %.9Y' a.txt d/c.txt; } >> `+out)
	gittest.Write(t, w.root, map[string]string{"b.txt": "other\n", "new.txt": "new\n"})
	w.git("add", ".")
	w.git("commit", "-qm", "Other")
	w.green(cache, `{ pwd; stat -c '%n %.9Y' a.txt d/c.txt; } >> `+out+`; test "$(cat b.txt new.txt)" = "$(printf 'other\nnew')"`)
	lines := strings.Split(strings.TrimSpace(gittest.Read(t, filepath.Dir(out), "out")), "\n")
	if len(lines) != 6 || !slices.Equal(lines[:3], lines[3:]) {
		t.Errorf("%q", lines)
	}
	w.git("reset", "-q", "--hard", "HEAD^")
	w.green(cache, `test "$(cat b.txt)" = b && ! test -e new.txt`)
}

// Two checks at once have a slot each, and neither has one of a check that runs.
func TestChecksAtOnceHaveSlotsOfTheirOwn(t *testing.T) {
	t.Parallel()
	w, cache, out := newWorld(t, threeFiles), t.TempDir(), t.TempDir()
	command := "pwd >> " + out + "/dirs"
	// The hook of the first one runs while it still has its slot. The second Runner is as that of another process.
	if _, err := w.runner(command, kept(cache)).Run(t.Context(), check.Job{Commit: w.git("rev-parse", "HEAD"), Name: "head"},
		func(context.Context, string, []string, *check.Result, io.Writer) error {
			w.green(cache, command)
			return nil
		}); err != nil {
		t.Fatal(err)
	}
	w.green(cache, command)
	dirs := strings.Fields(gittest.Read(t, out, "dirs"))
	if len(dirs) != 3 || dirs[0] == dirs[1] || dirs[0] != dirs[2] {
		t.Errorf("%q", dirs)
	}
}

// Without a directory for caches, or with one that cannot be used, checks run in temporary directories.
func TestWhereThereIsNoCache(t *testing.T) {
	t.Parallel()
	w := newWorld(t, threeFiles)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for name, cache := range map[string]string{"none": "", "in the repository": filepath.Join(w.root, ".cache", "x"), "a file": file} {
		out := filepath.Join(t.TempDir(), "pwd")
		w.green(cache, "pwd > "+out+"; touch mess; test -d ${XDG_CACHE_HOME%/*}")
		dir := strings.TrimSpace(gittest.Read(t, filepath.Dir(out), "pwd"))
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) || strings.HasPrefix(dir, w.root) {
			t.Errorf("%s: it ran in %s, which is still there", name, dir)
		}
	}
	if _, err := os.Stat(filepath.Join(w.root, ".cache")); !errors.Is(err, os.ErrNotExist) {
		t.Error("there is a cache in the repository")
	}
}

// What checks keep is listed and removed, unless a check is running there.
func TestWhatIsKeptIsListedAndRemoved(t *testing.T) {
	t.Parallel()
	w, cache := newWorld(t, threeFiles), t.TempDir()
	if got := check.Caches(cache); len(got) != 0 {
		t.Errorf("%v", got)
	}
	var busy error
	w.green(cache, `echo kept > "$XDG_CACHE_HOME.x"; test "$GOCACHE" != "" && mkdir -p "$GOCACHE"`)
	r := w.runner("true", kept(cache))
	if _, err := r.Run(t.Context(), check.Job{Commit: w.git("rev-parse", "HEAD"), Name: "head"}, func(context.Context, string, []string, *check.Result, io.Writer) error {
		busy = check.Caches(cache)[0].Remove()
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(busy, muster.ErrHeld) {
		t.Errorf("removed while a check runs: %v", busy)
	}
	all := check.Caches(cache)
	if len(all) != 1 || all[0].Repository != w.root || all[0].Size == 0 || all[0].Used.IsZero() {
		t.Fatalf("%+v", all)
	}
	require.NoError(t, all[0].Remove())
	if got := check.Caches(cache); len(got) != 0 {
		t.Errorf("%v", got)
	}
	w.green(cache, "test -e a.txt")
}

// A cache that is a link to a directory of the user's is neither listed nor removed: muster has not made what is there.
func TestACacheThatIsALinkIsTheUsers(t *testing.T) {
	t.Parallel()
	cache, own := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(own, "trim.txt"), []byte("0"), 0o600))
	require.NoError(t, os.Symlink(own, check.GoCache(cache)))
	if got := check.Caches(cache); len(got) != 0 {
		t.Errorf("listed: %v", got)
	}
	if _, err := os.Stat(filepath.Join(own, "trim.txt")); err != nil {
		t.Error(err)
	}
}
