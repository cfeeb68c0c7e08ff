package trust

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"muster"
	"muster/internal/durable"
	"muster/internal/testing/require"
)

func newRegistry(t *testing.T) *Registry {
	t.Helper()
	dir := t.TempDir()
	return Open(func(name string) string { return map[string]string{"XDG_STATE_HOME": dir}[name] })
}

// newRepo returns a repository with a board, as far as this package looks.
func newRepo(t *testing.T) Repository {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{".git", ".tasks"} {
		require.NoError(t, os.Mkdir(filepath.Join(root, dir), 0o755))
	}
	return Repository{Root: root, Common: filepath.Join(root, ".git"),
		Tracked: func([]string) ([]string, error) { return nil, nil }}
}

func mustMark(t *testing.T, r *Registry, repo Repository) string {
	t.Helper()
	return require.Value(r.Mark(t.Context(), repo.Common, repo.Root))(t)
}

// mustMarkAs marks a repository again, which keeps its mark.
func mustMarkAs(t *testing.T, r *Registry, repo Repository, id string) {
	t.Helper()
	if again := mustMark(t, r, repo); again != id {
		t.Errorf("the mark %s became %s", id, again)
	}
}

func refused(t *testing.T, err error, hint string) {
	t.Helper()
	if !errors.Is(err, muster.ErrInvalid) || !strings.Contains(muster.HintOf(err), hint) {
		t.Errorf("%v, with the hint: %s", err, muster.HintOf(err))
	}
}

func TestStateNeedsAMark(t *testing.T) {
	r, repo := newRegistry(t), newRepo(t)
	refused(t, r.CheckState(repo), "muster adopt")
	id := mustMark(t, r, repo)
	require.NoError(t, r.CheckState(repo))
	mustMarkAs(t, r, repo, id)
	if rec, err := r.Get(id); err != nil || rec.GitDir != repo.Common || rec.Root != repo.Root {
		t.Errorf("the record is %+v, %v", rec, err)
	}
}

// A mark of another user or machine, or one that was made up, is none.
func TestForeignMarks(t *testing.T) {
	mine, other, repo := newRegistry(t), newRegistry(t), newRepo(t)
	mustMark(t, mine, newRepo(t)) // the user has a key
	mustMark(t, other, repo)
	foreign := require.Value(os.ReadFile(markPath(repo.Common)))(t)
	id, _, _ := strings.Cut(string(foreign), " ")
	for _, text := range []string{string(foreign), id, id + " ", "", "../../../x " + strings.Repeat("0", 64), strings.Repeat("a", 1<<20)} {
		require.NoError(t, os.WriteFile(markPath(repo.Common), []byte(text), 0o600))
		refused(t, mine.CheckState(repo), "")
	}
	mustMark(t, mine, repo)
	require.NoError(t, mine.CheckState(repo))
}

// A moved repository keeps its mark, also where its record is gone. A copy has none while the original exists.
func TestMovedAndCopied(t *testing.T) {
	r, repo := newRegistry(t), newRepo(t)
	id := mustMark(t, r, repo)
	copied := repo
	copied.Root = filepath.Join(t.TempDir(), "copy")
	copied.Common = filepath.Join(copied.Root, ".git")
	require.NoError(t, os.CopyFS(copied.Root, os.DirFS(repo.Root)))
	err := r.CheckState(copied)
	if !errors.Is(err, muster.ErrInvalid) || !strings.Contains(err.Error(), "copy") || !strings.Contains(err.Error(), repo.Root) {
		t.Errorf("a copy: %v", err)
	}
	require.NoError(t, r.CheckState(repo))

	moved := filepath.Join(t.TempDir(), "moved")
	require.NoError(t, os.Rename(repo.Root, moved))
	repo.Root, repo.Common = moved, filepath.Join(moved, ".git")
	require.NoError(t, os.Remove(r.recordPath(id)))
	require.NoError(t, r.CheckState(repo))
	mustMarkAs(t, r, repo, id)
	refused(t, r.CheckState(copied), "")
	if other := mustMark(t, r, copied); other == id {
		t.Error("an adopted copy has the id of the original")
	}
	require.NoError(t, errors.Join(r.CheckState(copied), r.CheckState(repo)))
}

// Two processes that mark one repository at once agree on its mark.
func TestMarkedAtOnce(t *testing.T) {
	r, repo := newRegistry(t), newRepo(t)
	ids := make([]string, 8)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			other := &Registry{r.dir, nil, r.files}
			id, err := other.Mark(t.Context(), repo.Common, repo.Root)
			if err != nil {
				t.Error(err)
			}
			ids[i] = id
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("the ids are %v", ids)
		}
	}
	if records := durable.Glob(filepath.Join(r.dir, "repositories"), "*.json"); len(records) != 1 {
		t.Errorf("the records are %v", records)
	}
}

func TestStatePaths(t *testing.T) {
	r := newRegistry(t)
	for name, make := range map[string]func(root string) error{
		"a link": func(root string) error { return os.Symlink(t.TempDir(), filepath.Join(root, ".team")) },
		"a file": func(root string) error { return os.WriteFile(filepath.Join(root, ".worktrees"), nil, 0o600) },
		"a link below": func(root string) error {
			return errors.Join(os.Mkdir(filepath.Join(root, ".team"), 0o700),
				os.Symlink(t.TempDir(), filepath.Join(root, ".team", "inbox")))
		},
	} {
		t.Log("with", name)
		repo := newRepo(t)
		mustMark(t, r, repo)
		require.NoError(t, make(repo.Root))
		refused(t, r.CheckState(repo), " ")
	}
}

func TestTrackedState(t *testing.T) {
	r, repo := newRegistry(t), newRepo(t)
	mustMark(t, r, repo)
	repo.Tracked = func(below []string) ([]string, error) { return []string{".tasks/a", ".tasks/b", ".team/c"}, nil }
	err := r.CheckState(repo)
	if !errors.Is(err, muster.ErrInvalid) || muster.HintOf(err) != "git rm -r --cached .tasks .team" {
		t.Errorf("%v: %s", err, muster.HintOf(err))
	}
}

// State that git has tracked since muster marked the repository counts after the user has taken it over only, and trust
// is kept.
func TestTrackedStateIsDoubted(t *testing.T) {
	r, repo := newRegistry(t), newRepo(t)
	id := mustMark(t, r, repo)
	forgotten := repo.Tracked
	repo.Tracked = func([]string) ([]string, error) { return []string{".tasks/a"}, nil }
	refused(t, r.CheckState(repo), "")
	repo.Tracked = forgotten
	refused(t, r.CheckState(repo), "muster adopt")
	mustMarkAs(t, r, repo, id)
	require.NoError(t, r.CheckState(repo))
}

// Without a place for the registry nothing is used, and nothing is made.
func TestNoRegistry(t *testing.T) {
	repo := newRepo(t)
	r := Open(func(string) string { return "" })
	if err := r.CheckState(repo); err == nil {
		t.Error("state is used without a registry")
	}
	_, err := r.Mark(t.Context(), repo.Common, repo.Root)
	if !errors.Is(err, muster.ErrUnavailable) || !strings.Contains(muster.HintOf(err), "XDG_STATE_HOME") {
		t.Errorf("%v", err)
	}
	if os.Geteuid() != 0 {
		sealed := t.TempDir()
		require.NoError(t, os.Chmod(sealed, 0o500))
		r = Open(func(name string) string { return map[string]string{"XDG_STATE_HOME": sealed}[name] })
	} else { // for root everything is writable but what is no directory
		file := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		r = Open(func(name string) string { return map[string]string{"XDG_STATE_HOME": file}[name] })
	}
	if _, err = r.Mark(t.Context(), repo.Common, repo.Root); !errors.Is(err, muster.ErrUnavailable) ||
		!strings.Contains(err.Error(), "XDG_STATE_HOME") || !strings.Contains(muster.HintOf(err), "XDG_STATE_HOME") {
		t.Errorf("%v: %s", err, muster.HintOf(err))
	}
	if _, err := os.Stat(markPath(repo.Common)); err == nil {
		t.Error("a mark was made without a record")
	}
}

// A mark that another user has made may be one that this user cannot read. State beside it can be adopted.
func TestMarkOfAnotherUser(t *testing.T) {
	r, repo := newRegistry(t), newRepo(t)
	mustMark(t, r, repo)
	sealed := &Registry{r.dir, nil, durable.New(sealedFS{path: markPath(repo.Common)})}
	refused(t, sealed.CheckState(repo), "muster adopt")
	mustMark(t, sealed, repo)
	require.NoError(t, r.CheckState(repo))
}

// sealedFS does not let one file be read. Root can read every file of a real one.
type sealedFS struct {
	durable.OS
	path string
}

func (f sealedFS) OpenFile(name string, flag int, perm fs.FileMode) (durable.File, error) {
	if name == f.path && flag == os.O_RDONLY {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return f.OS.OpenFile(name, flag, perm)
}

// A record that is damaged stands in the way of its own repository only.
func TestDamagedRecord(t *testing.T) {
	r, damaged, other := newRegistry(t), newRepo(t), newRepo(t)
	path := r.recordPath(mustMark(t, r, damaged))
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	mustMark(t, r, other)
	require.NoError(t, r.CheckState(other))
	if err := r.CheckState(damaged); !strings.Contains(muster.HintOf(err), "rm "+path) {
		t.Errorf("%v: %s", err, muster.HintOf(err))
	}
	require.NoError(t, os.Remove(path))
	require.NoError(t, r.CheckState(damaged))
}

// An item is trusted under its name and its file, with just its content. Those of muster.yaml keep the names that were
// remembered before there were items of other files.
func TestItemsAreTrustedByFileNameAndContent(t *testing.T) {
	var s Settings
	own := Item{Name: "hooks.Stop", File: "muster.yaml", Text: "a"}
	other := Item{Name: "hooks.Stop", File: ".claude/settings.json", Text: "a"}
	s.Trust(own.Key(), own.Text)
	changed := own
	changed.Text = "b"
	if own.Key() != "hooks.Stop" || !s.TrustsItem(own) || s.TrustsItem(other) || s.TrustsItem(changed) {
		t.Errorf("trusted are %+v", s.Trusted)
	}
	s.Trust(other.Key(), other.Text)
	if !s.TrustsItem(own) || !s.TrustsItem(other) {
		t.Errorf("trusted are %+v", s.Trusted)
	}
}
