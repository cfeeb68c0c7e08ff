package landing_test

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"muster"
	"muster/internal/git"
	"muster/internal/landing"
	"muster/internal/proc"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
)

// starter is a launcher whose programs are started by a function.
type starter func(ctx context.Context, s proc.Spec) (proc.Process, error)

func (f starter) Start(ctx context.Context, s proc.Spec) (proc.Process, error) { return f(ctx, s) }
func (f starter) Close() error                                                 { return nil }

// A check that could not be made, or not be recorded, is an error and no answer: the base is called neither green nor
// red, and no directory is left.
func TestACheckThatCannotBeMadeIsNoAnswer(t *testing.T) {
	cannotStart := func() (proc.Launcher, error) { return nil, errors.New("no processes are left") }
	for name, c := range map[string]struct {
		check, setup string
		launch       func() (proc.Launcher, error)
		breaks       func(t *testing.T, w *world, o *landing.Options)
		code         *muster.Error
		says         string
	}{
		"no log": {breaks: func(t *testing.T, w *world, o *landing.Options) {
			o.Outputs = filepath.Join(w.root, "a.txt")
		}, code: muster.ErrUnavailable, says: "the check's log cannot be made"},
		"no process":               {launch: cannotStart, code: muster.ErrUnavailable, says: "the check cannot be started"},
		"no process for the setup": {setup: "true", launch: cannotStart, code: muster.ErrUnavailable, says: "the check cannot be started"},
		"the record of green is unreadable": {check: "true", breaks: func(_ *testing.T, w *world, _ *landing.Options) {
			w.unread = muster.Errorf(muster.Corrupt, "it is damaged")
		}, code: muster.ErrCorrupt, says: "cannot be read or recorded"},
		"the list of a shallow clone is unreadable": {breaks: func(_ *testing.T, w *world, _ *landing.Options) {
			w.must(os.Mkdir(filepath.Join(w.root, ".git", "shallow"), 0o700))
		}, code: muster.ErrUnavailable, says: "the merged tree cannot be checked out"},
		"git checks nothing out": {breaks: func(t *testing.T, _ *world, _ *landing.Options) {
			oddGit(t, "*' reset '*", 1, "exit 128")
		}, code: muster.ErrUnavailable, says: "the merged tree cannot be checked out"},
		"git does not list the files": {breaks: func(t *testing.T, _ *world, _ *landing.Options) {
			oddGit(t, "*' ls-files '*", 1, "exit 128")
		}, code: muster.ErrUnavailable, says: "the checked-out files cannot be listed"},
		"no temporary directory": {breaks: func(t *testing.T, _ *world, _ *landing.Options) {
			t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
		}, code: muster.ErrUnavailable, says: "no temporary directory can be made"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
			t.Setenv("TMPDIR", t.TempDir())
			if c.launch == nil {
				c.launch = launch
			}
			l := w.lander("", c.launch, func(o *landing.Options) {
				o.Check = landing.Check{Command: cmp.Or(c.check, "true"), Setup: c.setup}
				if c.breaks != nil {
					c.breaks(t, w, o)
				}
			})
			wants(t, fault(l.CheckBase(w.ctx())), c.code, c.says)
			equal(t, "the base is called", w.state, "")
			if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "muster-check-*")); len(left) > 0 {
				t.Errorf("left over: %v", left)
			}
			if name == "the list of a shallow clone is unreadable" {
				w.must(os.Remove(filepath.Join(w.root, ".git", "shallow")))
			}
		})
	}
}

// Who gives up a check is told that it was given up; the check has said nothing.
func TestACheckThatIsGivenUpSaysNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
	enough := errors.New("enough")
	for _, setup := range []string{"", "true"} {
		ctx, stop := context.WithCancelCause(w.ctx())
		l := w.lander("true", launchAfter(func() { stop(enough) }, launch), func(o *landing.Options) { o.Check.Setup = setup })
		if res, err := l.CheckBase(ctx); !errors.Is(err, enough) || res.Green || w.state != "" {
			t.Errorf("%+v, %v, state %q", res, err, w.state)
		}
	}
}

// The checkout looks as the user's settings say, and takes nothing else from them. A shallow clone is checked as what
// it is.
func TestTheCheckoutIsLikeTheUsers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
	one, _ := w.task("One", "alice", map[string]string{"b.txt": "b\n"})
	w.lands(one)
	w.git("config", "core.autocrlf", "true")
	w.git("config", "core.eol", "lf\n[alias]\n\tevil = status")
	w.repo = require.Value(git.Open(w.ctx(), w.root))(t) // settings hold from the next start on
	green := func(check string) {
		t.Helper()
		if res, err := w.lander(check, launch).CheckBase(w.ctx()); err != nil || !res.Green {
			t.Errorf("%s: %+v, %v", check, res, err)
		}
	}
	green(`test "$(od -An -c b.txt | tr -d ' ')" = 'b\r\n' && ! git config alias.evil`)
	green(`test "$(git rev-parse --is-shallow-repository) $(git rev-list --count HEAD)" = 'false 2'`)
	w.git("config", "--unset", "core.eol")
	gittest.Write(t, w.root, map[string]string{".git/shallow": w.git("rev-parse", target) + "\n"})
	green(`test "$(git rev-parse --is-shallow-repository) $(git rev-list --count HEAD)" = 'true 1'`)
}

// Why a file could not be written is in the error, so that callers can wait for a disk with room.
func TestAFullDiskIsNamed(t *testing.T) {
	w := newWorld(t, "true", map[string]string{"a.txt": "a\n"})
	oddGit(t, "*' reset '*", 1, `mkdir "$GIT_DIR/probe"; exit 128`)
	_, err := w.land.CheckBase(w.ctx())
	if !errors.Is(err, muster.ErrUnavailable) || !errors.Is(err, syscall.EISDIR) {
		t.Errorf("%v", err)
	}
}
