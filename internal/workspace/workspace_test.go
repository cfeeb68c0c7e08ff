package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster"
	"muster/internal/board"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/trust"
	"muster/journal"
	"muster/store/file"
)

func openFileStore(root string) (muster.Store, error) { return file.Open(root) }

// newPlainRepository returns a directory that looks like a repository with a team's state, but is none to git.
func newPlainRepository(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, sub := range []string{".git", ".tasks", "sub"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, sub), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".git", "HEAD"), []byte("ref: refs/heads/main\n"), 0o644))
	// As git names it: without symbolic links.
	dir, err := filepath.EvalSymlinks(dir)
	if err == nil {
		_, err = trust.Open(os.Getenv).Mark(t.Context(), filepath.Join(dir, ".git"), dir)
	}
	require.NoError(t, err)
	return dir
}

// In the plain case a command that looks asks git nothing and creates nothing.
func TestLookingAsksGitNothing(t *testing.T) {
	dir := newPlainRepository(t)
	t.Setenv("PATH", t.TempDir()) // no git
	w := require.Value(Open(t.Context(), filepath.Join(dir, "sub"), Options{OpenStore: openFileStore}))(t)
	defer w.Close()
	if all, err := w.Board().List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("the board has %v, %v", all, err)
	}
	if all, err := w.Requests(t.Context()).Pending(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("the requests are %v, %v", all, err)
	}
	if run, err := w.Runs().Look(t.Context()); err != nil || run.StartedAt != 0 {
		t.Errorf("the run is %+v, %v", run, err)
	}
	if w.repo.value() != nil {
		t.Error("the repository was opened")
	}
	if _, err := os.Stat(filepath.Join(dir, ".team")); err == nil {
		t.Error(".team was created")
	}
}

// Each service is opened once, so that what is registered with one of them holds for everybody.
func TestServicesAreOpenedOnce(t *testing.T) {
	w := require.Value(OpenRoot(newPlainRepository(t), Options{OpenStore: openFileStore}))(t)
	defer w.Close()
	ctx := t.Context()
	tasks, mail, members, requests := w.Board(), w.Mail(ctx), w.Roster(ctx), w.Requests(ctx)
	if w.Board() != tasks || w.Mail(ctx) != mail || w.Roster(ctx) != members || w.Requests(ctx) != requests {
		t.Error("a service was opened twice")
	}
}

// A board of the workspace runs what follows from the end of a task without anybody registering it.
func TestTheEndOfATaskIsReported(t *testing.T) {
	w := require.Value(OpenRoot(newPlainRepository(t), Options{OpenStore: openFileStore}))(t)
	defer w.Close()
	ctx := t.Context()
	task, err := w.Board().Create(ctx, board.Draft{Subject: "one", CreatedBy: muster.User})
	require.NoError(t, err)
	if task, err = w.Board().CompleteByHand(ctx, task.ID, muster.User, "done"); err != nil || len(task.Effects) != 0 {
		t.Fatalf("%v are left to follow, %v", task.Effects, err)
	}
	mail, _, _, err := w.Mail(ctx).Peek(ctx, muster.Lead, 0, 1<<20)
	if err != nil || len(mail) != 1 || mail[0].TaskID != task.ID {
		t.Errorf("the lead has the mail %v, %v", mail, err)
	}
}

// What another program changes while a team is at work is undone, kept, and said in the events once.
func TestForeignChangesAreReported(t *testing.T) {
	dir, ctx := newPlainRepository(t), t.Context()
	w := require.Value(OpenRoot(dir, Options{OpenStore: openFileStore}))(t)
	defer w.Close()
	path := filepath.Join(dir, ".tasks", "task_1.json")
	require.Value(w.Board().Create(ctx, board.Draft{Subject: "ours"}))(t)
	require.Value(w.Roster(ctx).Join(ctx, "test"))(t)
	require.Value(w.Board().List(ctx))(t)
	require.NoError(t, os.WriteFile(path, []byte(`{"id": 1, "subject": "theirs"}`), 0o600))
	for range 2 {
		if all, err := w.Board().List(ctx); err != nil || len(all) != 1 || all[0].Subject != "ours" {
			t.Errorf("the tasks are %v, %v", all, err)
		}
	}
	require.NoError(t, os.Remove(path))
	require.Value(w.Board().Get(ctx, 1))(t)
	var said []string
	for e, err := range w.Journal().Read(ctx, 0) {
		if require.NoError(t, err); e.Kind == journal.StateForeign {
			said = append(said, fmt.Sprintf("%d %s", e.Task, e.Text("text")))
		}
	}
	kept := durable.Glob(dir, ".team/damaged/tasks-1-*.json")
	if len(said) != 2 || len(kept) != 1 || !strings.HasPrefix(said[0], "1 another program changed .tasks/task_1.json") ||
		!strings.HasSuffix(said[0], kept[0][len(dir)+1:]) || !strings.Contains(said[1], "removed .tasks/task_1.json") {
		t.Errorf("said is %q, kept %q", said, kept)
	}
}

// Files does not leave the repository, by a name or by a link.
func TestFilesStayInTheRepository(t *testing.T) {
	dir := newPlainRepository(t)
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(dir), "outside"), []byte("secret"), 0o600))
	require.NoError(t, os.Symlink(filepath.Join("..", "outside"), filepath.Join(dir, "link")))
	w := require.Value(OpenRoot(dir, Options{OpenStore: openFileStore}))(t)
	defer w.Close()
	f := require.Value(w.Files())(t)
	for _, name := range []string{"../outside", "link"} {
		if data, err := f.ReadFile(name); err == nil {
			t.Errorf("%s was read: %q", name, data)
		}
	}
	if _, err := f.ReadFile(".git/HEAD"); err != nil {
		t.Error(err)
	}
}

// A filter that the user trusts after the repository was opened runs in the run that follows.
func TestARunHasWhatWasTrustedSince(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"a": "a\n"})
	gittest.Git(t, dir, "config", "filter.seal.clean", "cat")
	w := require.Value(Open(t.Context(), dir, Options{OpenStore: openFileStore}))(t)
	defer w.Close()
	items := require.Value(w.Trust().DriverItems(t.Context()))(t)
	if len(items) != 1 {
		t.Fatalf("to be trusted: %v", items)
	}
	require.NoError(t, w.Trust().Change(t.Context(), func(s *trust.Settings) { s.Trust(items[0].Name, items[0].Text) }))
	run := require.Value(w.ForRun(RunOptions{Name: "demo", Target: "muster/demo"}))(t)
	if repo := require.Value(run.Repo(t.Context()))(t); repo.Filter("seal") != git.FilterRuns {
		t.Errorf("the filter: %v", repo.Filter("seal"))
	}
}
