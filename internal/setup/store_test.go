package setup_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/proc"
	"muster/internal/setup"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
)

// world is a repository with a set-up that a test plays.
type world struct {
	t     *testing.T
	root  string
	cache string
	store *setup.Store
	runs  int

	launcher proc.Launcher
	confined atomic.Int32 // how many programs were started by ForFiles
}

// newWorld makes a repository of npm with the files besides.
func newWorld(t *testing.T, files map[string]string) *world {
	t.Helper()
	all := map[string]string{"package.json": "{}\n", "package-lock.json": "1\n", ".gitignore": "node_modules/\n.venv/\n", "src/a.js": "1\n"}
	for name, text := range files {
		all[name] = text
	}
	cache := require.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	w := &world{t: t, root: gittest.Repo(t, all), cache: cache, launcher: require.Value(proc.New(t.Context()))(t)}
	t.Cleanup(func() { _ = w.launcher.Close() })
	repo, err := git.Open(t.Context(), w.root)
	require.NoError(w.t, err)
	w.store = setup.Open(repo, w.cache, nil)
	return w
}

// commit changes a file and commits it.
func (w *world) commit(file, text string) {
	w.t.Helper()
	require.NoError(w.t, os.WriteFile(filepath.Join(w.root, file), []byte(text), 0o600))
	gittest.Git(w.t, w.root, "add", "-A")
	gittest.Git(w.t, w.root, "commit", "-q", "-m", "change")
}

// checkout returns a clean checkout of HEAD.
func (w *world) checkout() string {
	w.t.Helper()
	dir := filepath.Join(w.t.TempDir(), "words")
	gittest.Git(w.t, w.root, "worktree", "add", "-q", "--detach", dir)
	return dir
}

// job returns the set-up of a checkout, which makes what install makes there.
func (w *world) job(dir string, install func(dir string) error) setup.Job {
	return setup.Job{Dir: dir, Commit: strings.TrimSpace(gittest.Git(w.t, w.root, "rev-parse", "HEAD")), Command: "npm ci",
		Run: func(context.Context) (bool, error) {
			w.runs++
			return true, install(dir)
		}, Launch: w.launch}
}

func (w *world) launch() (proc.Launcher, error) { return fileLauncher{w.launcher, w}, nil }

// fileLauncher is a setup.FileLauncher that confines nothing, and starts nothing otherwise.
type fileLauncher struct {
	proc.Launcher
	w *world
}

func (l fileLauncher) ForFiles(_, _ []string) proc.Launcher {
	l.w.confined.Add(1)
	return l.Launcher
}

func (l fileLauncher) Start(context.Context, proc.Spec) (proc.Process, error) {
	return nil, errors.New("this is not for files")
}

// prepare sets a checkout up.
func (w *world) prepare(dir string, install func(dir string) error) setup.Outcome {
	w.t.Helper()
	o, err := w.store.Prepare(w.t.Context(), w.job(dir, install))
	require.NoError(w.t, err)
	if !o.OK {
		w.t.Fatalf("%+v", o)
	}
	return o
}

// prepares sets a checkout up, and fails the test unless what is kept is reused or not, as it says.
func (w *world) prepares(dir string, install func(dir string) error, isReused bool) {
	w.t.Helper()
	if o := w.prepare(dir, install); o.Reused != isReused {
		w.t.Errorf("%+v", o)
	}
}

// install makes a package with a program, and links as package managers make them.
func install(dir string) error {
	modules := filepath.Join(dir, "node_modules")
	return errors.Join(
		os.MkdirAll(filepath.Join(modules, "a"), 0o755),
		os.MkdirAll(filepath.Join(modules, ".bin"), 0o755),
		os.WriteFile(filepath.Join(modules, "a", "cli.js"), []byte("#!/usr/bin/env node\n"), 0o755),
		os.WriteFile(filepath.Join(modules, "a", "index.js"), []byte("index\n"), 0o644),
		os.Symlink(filepath.Join("..", "a", "cli.js"), filepath.Join(modules, ".bin", "a")),
		os.Symlink("/nowhere", filepath.Join(modules, "out")),
	)
}

// hasIndex fails the test unless a checkout has the file that install makes.
func (w *world) hasIndex(dir string) {
	w.t.Helper()
	if got := gittest.Read(w.t, dir, "node_modules/a/index.js"); got != "index\n" {
		w.t.Errorf("%q", got)
	}
}

// look describes what is in a directory.
func look(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, name)
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %s", rel, info.Mode())
		if link, err := os.Readlink(name); err == nil {
			fmt.Fprintf(&b, " -> %s", link)
		} else if data, err := os.ReadFile(name); err == nil {
			fmt.Fprintf(&b, " %q", data)
		}
		b.WriteString("\n")
		return nil
	})
	require.NoError(t, err)
	return b.String()
}

// only returns the one entry of the store.
func (w *world) only() setup.Entry {
	w.t.Helper()
	all := setup.Entries(w.cache)
	if len(all) != 1 {
		w.t.Fatalf("%d entries: %+v", len(all), all)
	}
	return all[0]
}

func TestSetupRunsOncePerLockfile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	first := w.checkout()
	if o := w.prepare(first, install); o.Reused || o.Note != "" {
		t.Errorf("%+v", o)
	}
	w.commit("src/a.js", "2\n")
	second := w.checkout()
	if o := w.prepare(second, install); !o.Reused || w.runs != 1 {
		t.Errorf("%+v, %d runs", o, w.runs)
	}
	want := look(t, filepath.Join(first, "node_modules"))
	if got := look(t, filepath.Join(second, "node_modules")); got != want {
		t.Errorf("the copy has\n%s\nand not\n%s", got, want)
	}
	if n := w.confined.Load(); n != 3 { // what is there is listed, it is kept, and it is put
		t.Errorf("%d programs were started for files", n)
	}
	// The copy is its owner's: what is written there changes nothing for others.
	require.NoError(w.t, os.WriteFile(filepath.Join(second, "node_modules", "a", "index.js"), []byte("spoiled"), 0o600))
	third := w.checkout()
	w.prepare(third, install)
	w.hasIndex(third)
	for _, change := range []struct{ file, text string }{{"package-lock.json", "2\n"}, {".npmrc", "x=y\n"}} {
		runs := w.runs
		w.commit(change.file, change.text)
		if o := w.prepare(w.checkout(), install); o.Reused || w.runs != runs+1 {
			t.Errorf("after a change of %s: %+v", change.file, o)
		}
	}
	// Another command, and other versions of tools, make another result.
	j := w.job(w.checkout(), install)
	j.Environ = []string{"NODE_ENV=production"}
	if o, err := w.store.Prepare(t.Context(), j); err != nil || o.Reused {
		t.Errorf("%+v, %v", o, err)
	}
}

// Installers link files of their stores into checkouts, and a lane may write the same file of the store: what is kept is
// no link to it.
func TestWhatIsKeptIsNoLinkToAStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	store := filepath.Join(t.TempDir(), "index.js")
	require.NoError(w.t, os.WriteFile(store, []byte("index\n"), 0o600))
	linked := func(dir string) error {
		modules := filepath.Join(dir, "node_modules", "a")
		return errors.Join(os.MkdirAll(modules, 0o700), os.Link(store, filepath.Join(modules, "index.js")))
	}
	first := w.checkout()
	w.prepare(first, linked)
	require.NoError(w.t, os.WriteFile(filepath.Join(first, "node_modules", "a", "index.js"), []byte("evil!\n"), 0o600))
	if data, err := os.ReadFile(store); err != nil || string(data) != "evil!\n" {
		t.Fatalf("%q, %v", data, err)
	}
	second := w.checkout()
	w.prepares(second, linked, true)
	w.hasIndex(second)
}

func TestHalfEntriesAreNotUsed(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"entry.json", "content/node_modules"} {
		t.Log("without ", what)
		w := newWorld(t, nil)
		w.prepare(w.checkout(), install)
		require.NoError(w.t, os.RemoveAll(filepath.Join(w.only().Dir(), filepath.FromSlash(what))))
		dir := w.checkout()
		w.prepares(dir, install, false)
		w.hasIndex(dir)
	}
}

// What works at its own path only is kept for that path, if checkouts have it again.
func TestVirtualEnvironmentsStayAtTheirPath(t *testing.T) {
	t.Parallel()
	venv := func(dir string) error {
		return errors.Join(os.MkdirAll(filepath.Join(dir, ".venv", "bin"), 0o755),
			os.WriteFile(filepath.Join(dir, ".venv", "bin", "pip"), []byte("#!"+dir+"/.venv/bin/python\n"), 0o755))
	}
	w := newWorld(t, nil)
	if o := w.prepare(w.checkout(), venv); !strings.Contains(o.Note, "its own path") || len(setup.Entries(w.cache)) != 0 {
		t.Errorf("%+v", o)
	}
	linked := func(dir string) error {
		return errors.Join(install(dir), os.Symlink(filepath.Join(dir, "src"), filepath.Join(dir, "node_modules", "own")))
	}
	if o := w.prepare(w.checkout(), linked); !strings.Contains(o.Note, "its own path") {
		t.Errorf("%+v", o)
	}
	slot := filepath.Join(w.cache, "checks", "1", "words")
	gittest.Git(t, w.root, "worktree", "add", "-q", "--detach", slot)
	if o := w.prepare(slot, venv); o.Note != "" {
		t.Errorf("%+v", o)
	}
	w.prepares(w.checkout(), venv, false)
	require.NoError(w.t, os.RemoveAll(filepath.Join(slot, ".venv")))
	w.prepares(slot, venv, true)
}

func TestWhatIsNotKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	o := w.prepare(w.checkout(), func(dir string) error {
		return errors.Join(install(dir), os.WriteFile(filepath.Join(dir, "package-lock.json"), []byte("other\n"), 0o600))
	})
	if !strings.Contains(o.Note, "it changes package-lock.json, which git tracks") {
		t.Errorf("%+v", o)
	}
	// What is no file, is too long, though most of it is a hole, or cannot be read.
	modules := func(do func(dir string) error) func(dir string) error {
		return func(dir string) error { return errors.Join(install(dir), do(filepath.Join(dir, "node_modules"))) }
	}
	for want, do := range map[string]func(dir string) error{
		"node_modules/pipe is neither a file nor": func(dir string) error {
			return exec.Command("mkfifo", filepath.Join(dir, "pipe")).Run()
		},
		"it has more than 4 GB": func(dir string) error {
			name := filepath.Join(dir, "hole")
			return errors.Join(os.WriteFile(name, nil, 0o600), os.Truncate(name, 1<<40))
		},
		"git cannot tell": func(dir string) error { return os.WriteFile(filepath.Join(dir, "..", ".git"), nil, 0o600) },
	} {
		if o := w.prepare(w.checkout(), modules(do)); !strings.Contains(o.Note, want) {
			t.Errorf("%s: %+v", want, o)
		}
	}
	j := w.job(w.checkout(), install)
	j.Run = func(context.Context) (bool, error) { return false, nil }
	if o, err := w.store.Prepare(t.Context(), j); err != nil || o.OK {
		t.Errorf("%+v, %v", o, err)
	}
	if all := setup.Entries(w.cache); len(all) != 0 {
		t.Errorf("%+v", all)
	}
	// A set-up of which nobody knows what it reads is made anew for each tree, and kept for that.
	j = w.job(w.checkout(), install)
	j.Command = "make deps"
	if o, err := w.store.Prepare(t.Context(), j); err != nil || o.Note != "" {
		t.Errorf("%+v, %v", o, err)
	}
	w.commit("src/a.js", "3\n")
	j = w.job(w.checkout(), install)
	j.Command = "make deps"
	if o, err := w.store.Prepare(t.Context(), j); err != nil || o.Reused {
		t.Errorf("%+v, %v", o, err)
	}
}

// A tree with the same lockfile may have a link where the first one had a directory.
func TestNothingIsPutBehindALink(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"web/a.js": "1\n", ".gitignore": "node_modules\n"})
	w.prepare(w.checkout(), func(dir string) error { return install(filepath.Join(dir, "web")) })
	outside := t.TempDir()
	require.NoError(w.t, os.RemoveAll(filepath.Join(w.root, "web")))
	require.NoError(w.t, os.Symlink(outside, filepath.Join(w.root, "web")))
	w.commit("src/a.js", "2\n")
	w.prepares(w.checkout(), func(string) error { return nil }, false)
	if got := look(t, outside); strings.Count(got, "\n") != 1 {
		t.Errorf("outside there is now\n%s", got)
	}
}

func TestReadyPutsOnlyWhatIsIgnored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	lane := w.checkout()
	if s, err := w.store.Ready(t.Context(), w.job(lane, nil)); s.IsReady || err != nil {
		t.Errorf("nothing is kept: %+v, %v", s, err)
	}
	w.prepare(w.checkout(), func(dir string) error {
		return errors.Join(install(dir), os.WriteFile(filepath.Join(dir, "generated.js"), nil, 0o600))
	})
	s, err := w.store.Ready(t.Context(), w.job(lane, nil))
	if !s.IsReady || err != nil || len(s.Left) != 1 || s.Left[0] != "generated.js" {
		t.Errorf("%+v, %v", s, err)
	}
	if status := gittest.Git(t, lane, "status", "--porcelain"); status != "" {
		t.Errorf("git sees\n%s", status)
	}
	w.hasIndex(lane)
	// What a member has there already is left alone.
	if s, err := w.store.Ready(t.Context(), w.job(lane, nil)); !s.IsUsed || s.IsReady || err != nil {
		t.Errorf("%+v, %v", s, err)
	}
	w.hasIndex(lane)
	// What a process that died has put in part is put again.
	require.NoError(w.t, os.Remove(filepath.Join(lane, "node_modules", "a", "index.js")))
	require.NoError(w.t, os.WriteFile(w.store.Marker(lane), nil, 0o600))
	if s, err := w.store.Ready(t.Context(), w.job(lane, nil)); !s.IsReady || err != nil {
		t.Errorf("%+v, %v", s, err)
	}
	w.hasIndex(lane)
}

func TestPreparingAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	var all sync.WaitGroup
	for range 4 {
		dir := w.checkout()
		j := w.job(dir, nil)
		j.Run = func(context.Context) (bool, error) { return true, install(dir) }
		all.Go(func() {
			if o, err := w.store.Prepare(t.Context(), j); err != nil || !o.OK || o.Note != "" {
				t.Errorf("%+v, %v", o, err)
			}
		})
	}
	all.Wait()
	w.only()
}

func TestOldEntriesGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.prepare(w.checkout(), install)
	old := w.only()
	now := time.Now()
	setup.Tidy(w.cache, now.Add(29*24*time.Hour))
	w.only()
	setup.Tidy(w.cache, now.Add(31*24*time.Hour))
	if !durable.IsMissing(old.Dir()) {
		t.Error("it is still there")
	}
	half := filepath.Join(filepath.Dir(old.Dir()), "new-abc")
	require.NoError(w.t, os.MkdirAll(half, 0o700))
	setup.Tidy(w.cache, now)
	if durable.IsMissing(half) {
		t.Error("an entry that is being made was removed")
	}
	setup.Tidy(w.cache, now.Add(2*time.Hour))
	if !durable.IsMissing(half) {
		t.Error("half an entry is still there")
	}
}

func TestNoStoreInTheRepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	repo, err := git.Open(t.Context(), w.root)
	require.NoError(w.t, err)
	for _, cache := range []string{"", w.root, filepath.Join(w.root, "cache")} {
		if s := setup.Open(repo, cache, nil); s != nil {
			t.Errorf("a store in %q", cache)
		}
	}
	var none *setup.Store
	o, err := none.Prepare(t.Context(), w.job(w.checkout(), install))
	if err != nil || !o.OK || w.runs != 1 {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestMain(m *testing.M) {
	proc.GuardMain()
	gittest.Main(m)
}
