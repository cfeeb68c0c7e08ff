package check_test

import (
	"context"
	"os"
	"testing"

	"muster/internal/check"
	"muster/internal/git"
	"muster/internal/proc"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
)

func TestMain(m *testing.M) { gittest.Main(m) }

func launch() (proc.Launcher, error) { return proc.New(context.Background()) }

// starter is a launcher whose programs are started by a function.
type starter func(ctx context.Context, s proc.Spec) (proc.Process, error)

func (f starter) Start(ctx context.Context, s proc.Spec) (proc.Process, error) { return f(ctx, s) }
func (f starter) Close() error                                                 { return nil }

// temporary makes directories for checks.
type temporary struct{ t *testing.T }

func (d temporary) Create() (string, func(), error) {
	dir, err := os.MkdirTemp(d.t.TempDir(), "")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}

// world is a repository whose commits are checked.
type world struct {
	t       *testing.T
	root    string
	outputs string
	repo    *git.Repo
}

func newWorld(t *testing.T, files map[string]string) *world {
	t.Helper()
	w := &world{t: t, root: gittest.Repo(t, files)}
	w.outputs = w.root + "/.team/outputs"
	var err error
	if w.repo, err = git.Open(t.Context(), w.root); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) git(args ...string) string { w.t.Helper(); return gittest.Git(w.t, w.root, args...) }

// runner makes a Runner for the world's repository.
func (w *world) runner(command string, change ...func(*check.Options)) *check.Runner {
	o := check.Options{Check: check.Check{Command: command}, Repo: w.repo, Dirs: temporary{w.t}, Launch: launch,
		Outputs: w.outputs, Environ: proc.Environment(os.Environ(), nil)}
	for _, f := range change {
		f(&o)
	}
	return check.New(o)
}

// head runs the check on HEAD.
func (w *world) head(r *check.Runner) check.Result {
	w.t.Helper()
	return require.Value(r.Run(w.t.Context(), check.Job{Commit: w.git("rev-parse", "HEAD"), Name: "head"}, nil))(w.t)
}
