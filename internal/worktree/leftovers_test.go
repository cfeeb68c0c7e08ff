package worktree_test

import (
	"os"
	"strings"
	"testing"

	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/worktree"
)

const cacheTag = "Signature: 8a477f597d28d172789f06886806bc55\n"

// What builds leave is left out, unless the project commits such files there, says that it is none, or its owner adds
// it.
func TestLeftoversDoNotLand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n", "action/node_modules/m.js": "m\n", "t/f.pyc": "f\n", "Cargo.toml": "",
		"src/target/x": "x\n", "src/Cargo.toml": "", "wanted/.gitignore": "!__pycache__/\n!*.pyc\n"})
	lane := w.create("one", map[string]string{"a b/ü.py": "new\n", "poetry.lock": "new\n", "build/x": "new\n",
		"action/node_modules/new.js": "new\n", "t/g.pyc": "new\n", "src/target/y": "new\n", "wanted/__pycache__/w.pyc": "new\n",
		"a b/__pycache__/ü.pyc": "no\n", "node_modules/m/i.js": "no\n", "target/debug/x": "no\n", "forced/__pycache__/f": "new\n",
		"[k]*/CACHEDIR.TAG": cacheTag, "[k]*/a": "no\n", "other/CACHEDIR.TAG": "none\n", "new/Cargo.toml": "new\n",
		"new/target/t": "no\n"})
	w.git(lane.Path, "add", "-f", "forced/__pycache__/f")
	head, _, err := w.Commit(w.ctx(), "one", "Work\n")
	require.NoError(t, err)
	equal(t, "landing", w.git(w.root, "-c", "core.quotePath=false", "diff", "--name-only", lane.Base, head), strings.Join([]string{
		"a b/ü.py", "action/node_modules/new.js", "build/x", "forced/__pycache__/f", "new/Cargo.toml", "other/CACHEDIR.TAG",
		"poetry.lock", "src/target/y", "t/g.pyc", "wanted/__pycache__/w.pyc"}, "\n"))
	left, err := w.LeftOut(w.ctx(), "one")
	require.NoError(t, err)
	equal(t, "left out", strings.Join(left, " "), "[k]*/ a b/__pycache__/ new/target/ node_modules/ target/")
}

// Where many files are staged at once, git is told of the whole lane, and leaves out the same.
func TestLeftoversAmongManyFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	files := map[string]string{"x.pyc": "no\n", "cache/CACHEDIR.TAG": cacheTag}
	for i := range 150 {
		files["dir/"+strings.Repeat("x", i+1)] = "new\n"
	}
	lane := w.create("one", files)
	head, _, err := w.Commit(w.ctx(), "one", "Work\n")
	require.NoError(t, err)
	equal(t, "files", strings.Count(w.git(w.root, "diff", "--name-only", lane.Base, head)+"\n", "dir/"), 150)
	equal(t, "others", w.git(w.root, "ls-tree", "--name-only", head), "a\ndir")
}

// What is left out stays in the archive, as far as there is not too much of it, and is no work that has not landed.
func TestLeftoversAreArchived(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n", ".gitignore": "*.log\nhidden/\n"})
	lane := w.create("one", map[string]string{"b": "landed\n", "node_modules/i.js": "left\n", "x.log": "noise\n",
		"hidden/__pycache__/x": "noise\n", "c d/__pycache__/ü.pyc": "left\n", ".venv/big": ""})
	require.NoError(t, os.Truncate(lane.Path+"/.venv/big", 65<<20))
	w.ok2(w.Commit(w.ctx(), "one", "Work\n"))
	status := w.git(lane.Path, "status", "--porcelain")
	ref, err := w.Preserve(w.ctx(), "one")
	require.NoError(t, err)
	equal(t, "the lane", w.git(lane.Path, "status", "--porcelain"), status)
	returns(t, ref)(w.Archive(w.ctx(), "one"))
	equal(t, "in the archive", w.git(w.root, "-c", "core.quotePath=false", "ls-tree", "-r", "--name-only", ref),
		".gitignore\na\nb\nc d/__pycache__/ü.pyc\nnode_modules/i.js")
	tip := w.land(map[string]string{"b": "landed\n"})
	for _, hasLanded := range []bool{true, false} {
		all, err := w.Unlanded(w.ctx(), []string{tip}, []worktree.Archived{{Lane: "one", Ref: ref, HasLanded: hasLanded}})
		if err != nil || len(all) > 0 {
			t.Errorf("not landed: %v, %v", all, err)
		}
	}
	// A lane with nothing else holds no work.
	w.create("two", map[string]string{"__pycache__/x": "left\n", "cache/CACHEDIR.TAG": cacheTag})
	returns(t, false)(w.Changed(w.ctx(), "two"))
	returns(t, "")(w.Archive(w.ctx(), "two"))
	// What came after the landing is told, and what builds left beside it is not.
	w.create("late", map[string]string{"e": "mine\n", "e.pyc": "left\n"})
	ref, err = w.Archive(w.ctx(), "late")
	require.NoError(t, err)
	all, err := w.Unlanded(w.ctx(), []string{tip}, []worktree.Archived{{Lane: "late", Ref: ref, HasLanded: true}})
	if err != nil || len(all) != 1 || strings.Join(all[0].Files, " ") != "e" {
		t.Errorf("not landed: %v, %v", all, err)
	}
}

// What the member's own git does in a lane is what landings do, and the user's patterns take back what is listed.
func TestLeftoversInTheExcludeFile(t *testing.T) {
	t.Parallel()
	root := gittest.Repo(t, map[string]string{"a": "a\n"})
	users := t.TempDir() + "/ignore"
	require.NoError(t, os.WriteFile(users, []byte("\ufeff!node_modules\n*.mine"), 0o600))
	gittest.Git(t, root, "config", "core.excludesFile", users)
	gittest.Write(t, root, map[string]string{".git/info/exclude": "!*.pyo\n"})
	w := openWorld(t, root, worktree.Options{})
	lane := w.create("one", map[string]string{"x.pyc": "no\n", "x.pyo": "new\n", "x.mine": "no\n", "node_modules/x": "new\n"})
	equal(t, "status", w.git(lane.Path, "status", "--porcelain", "--untracked-files=all"), "?? node_modules/x\n?? x.pyo")
	head, _, err := w.Commit(w.ctx(), "one", "Work\n")
	require.NoError(t, err)
	equal(t, "landing", w.git(w.root, "diff", "--name-only", lane.Base, head), "node_modules/x\nx.pyo")
	left, err := w.LeftOut(w.ctx(), "one")
	require.NoError(t, err)
	equal(t, "left out", strings.Join(left, " "), "x.pyc")
}
