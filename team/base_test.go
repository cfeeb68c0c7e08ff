package team_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/proc"
	"muster/journal"
	"muster/team"
)

// A base that is red already: said to user and lead; landings are "still red", and a run that ends so exits 3; one that
// turns it green does not, and from then on red comes back.
func TestRedBase(t *testing.T) {
	t.Parallel()
	red := func(c *team.Config) { c.Check = "test -e green && test ! -e red" }
	t.Run("stays red", func(t *testing.T) {
		bubble(t, func(h *house) {
			sum := h.start(`
speakers:
  lead:
    - do: [{task_create: {subject: one}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
      until: All done
    - say: Done.
`+writes[1:], red).ends(3, time.Hour)
			if got := h.task(1); got.Landed == nil || got.Landed.Receipt != muster.ReceiptStillRed || !sum.Red || sum.Text != "Done." {
				t.Errorf("%+v, red %v", got.Landed, sum.Red)
			}
			h.heard("lead", "The check fails on the base already", 1)
			h.heard("alice", "The check is still red, as it was before.", 1)
			if n := h.count(func(e muster.Event) bool { return e.Kind == journal.CheckBase && e.Text("result") == "red" }); n != 1 {
				t.Errorf("the user was told %d times", n)
			}
		})
	})
	t.Run("turns green", func(t *testing.T) {
		bubble(t, func(h *house) {
			sum := h.start(`
speakers:
  lead:
    - do: [{task_create: {subject: green}}, {task_create: {subject: red, blocked_by: [green]}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
      until: All done
    - say: Done.
scenes:
  - cue: 'Task #1: green'
    who: [alice]
    turns: [{do: [{write_file: {path: green, content: x}}]}, {do: [{complete_task: {task_id: 1, summary: green}}]}]
  - cue: 'Task #2: red'
    who: [alice]
    turns:
      - do: [{write_file: {path: red, content: x}}]
      - do: [{complete_task: {task_id: 2, summary: red}}]
      - do: [{bash: {command: rm red; touch other}}]
      - do: [{complete_task: {task_id: 2, summary: mended}}]
`, red).ends(0, time.Hour)
			if sum.Red || h.count(is(journal.TaskReturned, "")) != 1 || h.task(2).Landed.Receipt != muster.ReceiptGreen {
				t.Errorf("red %v\n%s", sum.Red, h.tail())
			}
		})
	})
	t.Run("green, and the user moves the target", func(t *testing.T) {
		bubble(t, func(h *house) {
			dir := filepath.Join(h.TempDir(), "users")
			h.w.git("worktree", "add", "-q", "-b", "users", dir)
			h.w.git("-C", dir, "commit", "-q", "--allow-empty", "-m", "users")
			if err := os.WriteFile(filepath.Join(dir, "red"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			h.w.git("-C", dir, "add", "-A")
			h.w.git("-C", dir, "commit", "-q", "-m", "red")
			r := h.start(`
speakers:
  lead:
    - do: [{task_create: {subject: one}}, {claim_task: {task_id: 1}}]
    - do: [{complete_task: {task_id: 1, summary: nothing to do}}]
    - wait: 1m
      say: Done.
`, func(c *team.Config) { c.Check = "test ! -e red" })
			h.until("one is done", is(journal.TaskCompleted, "lead"))
			h.until("the base is green", is(journal.CheckBase, ""))
			h.w.git("update-ref", "refs/heads/muster/demo", "users")
			if sum := r.ends(3, time.Hour); !sum.Red || sum.Text != "Done." {
				t.Errorf("red %v: %s\n%s", sum.Red, sum.Text, h.tail())
			}
		})
	})
	t.Run("only a question", func(t *testing.T) {
		bubble(t, func(h *house) {
			h.start(`
speakers:
  lead: [{do: [{read_file: {path: README}}], wait: 1m}, {say: The answer.}]
`, red).ends(0, time.Hour)
		})
	})
}

// A check that cannot run stops the run at the start with its output, and what it leaves can be started again, mended.
func TestCheckThatCannotRun(t *testing.T) {
	t.Parallel()
	const slow = `
speakers:
  lead:
    - wait: 1m
      do: [{task_create: {subject: one}}]
    - do: [{spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
      until: All done
    - say: Done.
`
	for name, change := range map[string]func(*team.Config){
		"no such command": func(c *team.Config) { c.Check = "no-such-check --all" },
		"failing setup":   func(c *team.Config) { c.Check, c.Setup = "true", "echo no network here; false" },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(h *house) {
				err := h.start(slow+writes[1:], change).fails()
				var e *muster.Error
				if !errors.As(err, &e) || e.Hint == "" || !strings.Contains(e.Message, "no-such-check") && !strings.Contains(e.Message, "no network here") {
					t.Errorf("%v", err)
				}
				time.Sleep(time.Second)
				h.start(slow+writes[1:], func(c *team.Config) { c.Check = "true" }).ends(0, time.Hour)
				if h.task(1).Landed.Receipt != muster.ReceiptGreen {
					t.Errorf("%+v", h.task(1).Landed)
				}
			})
			bubble(t, func(h *house) { // with a task on the board already it is resumed
				_ = h.start(strings.Replace(slow, "    - wait: 1m\n      do:", "    - do:", 1)+writes[1:], func(c *team.Config) {
					change(c)
					c.Check = strings.Replace(c.Check, "no-such-check", "sleep 0.3; no-such-check", 1)
					c.Setup = strings.Replace(c.Setup, "echo", "sleep 0.3; echo", 1)
				}).fails()
				h.resume(strings.Replace(slow, "    - wait: 1m\n      do:", "    - do:", 1)+writes[1:], func(c *team.Config) { c.Check, c.Setup = "true", "true" }).ends(0, time.Hour)
			})
		})
	}
}

// The check's output can be of any size and of any bytes.
func TestRedBaseWithWildOutput(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		h.start(`
speakers:
  lead:
    - wait: 1m
      do: [{read_file: {path: README}}]
    - say: Done.
`, func(c *team.Config) { c.Check = `head -c 300000 /dev/urandom; exit 1` }).ends(0, time.Hour)
		h.heard("lead", "The check fails on the base already", 1)
	})
}

// unready is a launcher that starts nothing while fails says why.
type unready struct {
	shell
	fails func() error
}

func (u *unready) Start(ctx context.Context, s proc.Spec) (proc.Process, error) {
	if err := u.fails(); err != nil {
		return nil, err
	}
	return u.shell.Start(ctx, s)
}

// A check on the base that fails for a cause that may pass is tried again as a member is; while the disk is full, however
// long that takes, and that is said once.
func TestTheBaseCheckGoesOnAfterWhatPasses(t *testing.T) {
	t.Parallel()
	tries := 0
	for name, c := range map[string]struct {
		fails func(time.Duration) error // so long after the start
		ends  bool
		says  int // how often it is said
	}{
		"a full disk": {func(after time.Duration) error {
			if after < 3*time.Minute {
				return noRoom()
			}
			return nil
		}, true, 1},
		"a few times": {func(time.Duration) error {
			if tries++; tries <= 3 {
				return errors.New("a process was killed")
			}
			return nil
		}, true, 3},
		"always": {func(time.Duration) error { return errors.New("a process was killed") }, false, 3},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(h *house) {
				began := time.Now()
				tm := h.open(h.scripted(`
speakers:
  lead:
    - wait: 4m
      do: [{read_file: {path: README}}]
    - say: Done.
`), func(o *team.Config) { o.Check = "true" })
				tm.Launch(func(context.Context) (proc.Launcher, error) {
					return &unready{fails: func() error { return c.fails(time.Since(began)) }}, nil
				})
				r := h.begin(func(ctx context.Context) (team.Summary, error) { return tm.Run(ctx, "g", team.Start{}) })
				if c.ends {
					r.ends(0, time.Hour)
				} else if err := r.fails(); !errors.Is(err, muster.ErrUnavailable) {
					t.Errorf("%v", err)
				}
				said := func(e muster.Event) bool {
					return e.Kind == journal.RunNote && strings.Contains(e.Text("text"), "the check on the base goes on")
				}
				if n := h.count(said); n != c.says {
					t.Errorf("it was said %d times\n%s", n, h.tail())
				}
				if n := h.count(func(e muster.Event) bool { return e.Kind == journal.CheckBase && e.Text("result") == "ok" }); n == 1 != c.ends {
					t.Errorf("%d answers\n%s", n, h.tail())
				}
			})
		})
	}
}
