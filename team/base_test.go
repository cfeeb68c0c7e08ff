package team_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/proc"
	"muster/journal"
	"muster/team"
)

// looks is a lead that only asks a question, for a minute.
const looks = `
speakers:
  lead: [{do: [{read_file: {path: README}}], wait: 1m}, {say: The answer.}]
`

// A base that is red already: said to user and lead; landings are "still red", and a run that ends so exits 3; one that
// turns it green does not, and from then on red comes back.
func TestRedBase(t *testing.T) {
	t.Parallel()
	red := func(c *team.Config) { c.Check = "head -c 300000 /dev/urandom; test -e green.txt && test ! -e red" }
	t.Run("stays red", func(t *testing.T) {
		t.Parallel()
		bubbleOnGit(t, func(h *house) {
			sum := h.start(oneTask+writes, red).ends(3, time.Hour)
			if got := h.task(1); got.Landed == nil || got.Landed.Receipt != muster.ReceiptStillRed || !sum.Red || sum.Text != "Done." {
				t.Errorf("%+v, red %v", got.Landed, sum.Red)
			}
			h.heard("lead", "The check fails on the base already", 1)
			h.heard("alice", "The check is still red, as it was before.", 1)
			if n := h.count(func(e muster.Event) bool { return e.Kind == journal.CheckBase && e.Text("result") == "red" }); n != 1 {
				t.Errorf("the user was told %d times", n)
			}
			h.start(looks, red).ends(0, time.Hour) // a run that changes nothing may end with 0
		})
	})
	t.Run("turns green", func(t *testing.T) {
		t.Parallel()
		bubbleOnGit(t, func(h *house) {
			sum := h.start(`
speakers:
  lead:
    - do: [{task_create: {subject: green}}, {task_create: {subject: red, blocked_by: [green]}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
      until: All done
    - say: Done.
scenes:
  - cue: 'Task #2: red'
    turns:
      - do: [{write_file: {path: red, content: x}}]
      - do: [{complete_task: {task_id: 2, summary: red}}]
      - do: [{bash: {command: rm red; touch other}}]
      - do: [{complete_task: {task_id: 2, summary: mended}}]
`+strings.TrimPrefix(writes, "scenes:\n"), red).ends(0, time.Hour)
			if sum.Red || h.count(is(journal.TaskReturned, "")) != 1 || h.task(2).Landed.Receipt != muster.ReceiptGreen {
				t.Errorf("red %v\n%s", sum.Red, h.tail())
			}
		})
	})
	t.Run("green, and the user moves the target", func(t *testing.T) {
		t.Parallel()
		bubbleOnGit(t, func(h *house) {
			h.git("checkout", "-q", "-b", "users")
			h.commit("red", "")
			h.git("checkout", "-q", "main")
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
			h.git("update-ref", "refs/heads/muster/demo", "users")
			if sum := r.ends(3, time.Hour); !sum.Red || sum.Text != "Done." {
				t.Errorf("red %v: %s\n%s", sum.Red, sum.Text, h.tail())
			}
		})
	})
}

// A resume with another check asks that one about the base: what the old one said counts no more.
func TestAnotherCheckLooksAtTheBaseAnew(t *testing.T) {
	t.Parallel()
	bubbleOnGit(t, func(h *house) {
		r := h.start(looks, func(c *team.Config) { c.Check = "false" })
		h.until("the base is red", is(journal.CheckBase, ""))
		r.interrupt()
		sum := h.resume(looks, func(c *team.Config) { c.Check = "true" }).ends(0, time.Hour)
		if got := h.recorded().BaseCheck; sum.Red || got != "ok" {
			t.Errorf("red %v; the base is known as %q", sum.Red, got)
		}
	})
}

// A resume with the same checks keeps what they have said of the base, and does not ask again.
func TestTheSameCheckKeepsWhatItSaidOfTheBase(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*team.Config){
		"one": func(c *team.Config) { c.Check = "false" },
		"several": func(c *team.Config) {
			c.Checks = []muster.NamedCheck{{Name: "unit", Command: "false"}, {Name: "lint", Command: "true"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubbleOnGit(t, func(h *house) {
				r := h.start(looks, change)
				h.until("the base is red", is(journal.CheckBase, ""))
				r.interrupt()
				h.resume(looks, change).ends(0, time.Hour)
				if n := h.count(is(journal.CheckBase, "")); n != 1 || h.recorded().BaseCheck != "red" {
					t.Errorf("the base was checked %d times and is known as %q", n, h.recorded().BaseCheck)
				}
			})
		})
	}
}

// A check that cannot run stops the run at the start with its output, and what it leaves can be started again, mended.
func TestCheckThatCannotRun(t *testing.T) {
	t.Parallel()
	slow := strings.Replace(oneTask, "    - do: [{task_create", "    - wait: 1m\n      do: [{task_create", 1) + writes
	for name, change := range map[string]func(*team.Config){
		"no such command": func(c *team.Config) { c.Check = "no-such-check --all" },
		"failing setup":   func(c *team.Config) { c.Check, c.Setup = "true", "echo no network here; false" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubbleOnGit(t, func(h *house) {
				err := h.start(slow, change).fails()
				var e *muster.Error
				if !errors.As(err, &e) || e.Hint == "" || !strings.Contains(e.Message, "no-such-check") && !strings.Contains(e.Message, "no network here") {
					t.Errorf("%v", err)
				}
				time.Sleep(time.Second)
				h.start(slow, func(c *team.Config) { c.Check = "true" }).ends(0, time.Hour)
				if h.task(1).Landed.Receipt != muster.ReceiptGreen {
					t.Errorf("%+v", h.task(1).Landed)
				}
			})
		})
	}
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
		fails func(after time.Duration) error // since the start
		ends  bool
		said  int // how often it is said
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
			bubbleOnGit(t, func(h *house) {
				began := time.Now()
				tm := h.open(h.scripted(strings.Replace(looks, "1m", "4m", 1)), func(o *team.Config) { o.Check = "true" })
				tm.Launch(func(context.Context) (proc.Launcher, error) {
					return &unready{fails: func() error { return c.fails(time.Since(began)) }}, nil
				})
				if r := h.run(tm); c.ends {
					r.ends(0, time.Hour)
				} else if err := r.fails(); !errors.Is(err, muster.ErrUnavailable) {
					t.Errorf("%v", err)
				}
				if n := h.noted("the check on the base goes on"); n != c.said {
					t.Errorf("it was said %d times\n%s", n, h.tail())
				}
				if n := h.count(func(e muster.Event) bool { return e.Kind == journal.CheckBase && e.Text("result") == "ok" }); n == 1 != c.ends {
					t.Errorf("%d answers\n%s", n, h.tail())
				}
			})
		})
	}
}

// A check on the base never turns a base red that is known to be green. It may have begun before a landing of another
// process turned the target green, and red would allow every later landing to break it again.
func TestABaseCheckNeverTurnsGreenToRed(t *testing.T) {
	t.Parallel()
	bubbleOnGit(t, func(h *house) {
		overtaken := false
		h.start(looks, func(c *team.Config) {
			c.Check, c.Store = "exit 1", refusing(c.Store, muster.TableTeam, func(data []byte) error {
				var run muster.Run
				if jsonInto(data, &run) == nil && run.BaseCheck == "red" && !overtaken {
					overtaken = true // between this process's look and its write
					h.record(func(r *muster.Run) { r.BaseCheck = "ok" })
				}
				return nil
			})
		}).ends(0, time.Hour)
		if n := h.count(is(journal.CheckBase, "")); n != 1 || !overtaken {
			t.Fatalf("the base was checked %d times; the record was to become red: %v", n, overtaken)
		}
		if run := h.recorded(); run.BaseCheck != "ok" {
			t.Errorf("the base is known as %q", run.BaseCheck)
		}
	})
}
