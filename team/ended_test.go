package team_test

import (
	"bytes"
	"cmp"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"muster"
	"muster/journal"
	"muster/team"
)

// If a process dies after the run's record says that the run has ended, but before the journal does, the user has not
// seen the summary. Resume returns that summary once, without a request to a model.
func TestResumeTellsAnEndThatNobodyWasTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		words, check string
		code         int
		text         string
	}{
		"all has landed": {oneTask + writes, "", 0, "Done."},
		"a red target":   {oneTask + writes, "false", 3, "Done."},
		"an answer":      {"speakers: {lead: [{say: The answer.}]}", "", 0, "The answer."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubbleOnGit(t, func(h *house) {
				var dead atomic.Bool
				first := h.start(c.words, func(o *team.Config) {
					o.Check = c.check
					o.Store = deaf(refusing(o.Store, muster.TableTeam, func(data []byte) error {
						dead.Store(bytes.Contains(data, []byte(`"ended_at"`)))
						return nil
					}), dead.Load)
				}).ends(c.code, time.Hour)
				if first.Text != c.text || h.count(is(journal.RunEnded, "")) != 0 {
					t.Fatalf("the run was to end untold with %q\n%s", c.text, h.tail())
				}
				turns := h.turns(muster.Lead)
				sum := h.resume("speakers: {lead: [{say: Nobody asked.}]}", nil).ends(c.code, time.Minute)
				same := slices.EqualFunc(sum.Tasks, first.Tasks, func(a, b muster.Task) bool {
					return a.ID == b.ID && a.Status == b.Status
				})
				if !same || sum.Text != first.Text || sum.Red != first.Red || sum.Verified != first.Verified ||
					sum.Run.EndedAt != first.Run.EndedAt {
					t.Errorf("got  %+v\nwant %+v", sum, first)
				}
				if n := h.turns(muster.Lead); n != turns {
					t.Errorf("the lead was asked again: %d turns, then %d", turns, n)
				}
				err := h.resume("speakers: {lead: [{say: Nobody asked.}]}", nil).fails()
				if !errors.Is(err, muster.ErrNotFound) || h.count(is(journal.RunEnded, "")) != 1 {
					t.Errorf("a second resume: %v\n%s", err, h.tail())
				}
			})
		})
	}
}

// A run that has landed work says at its end what of it is no longer on the target, and how to have it back.
func TestWhatSomebodyTookOffTheTarget(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		does string // the lead, when all has landed
		code int
		off  []muster.TaskID
		way  string
	}{
		"nothing":             {"true", 0, nil, ""},
		"moved back":          {"git branch -f muster/demo main", 3, []muster.TaskID{1, 2}, "git switch muster/demo && git merge "},
		"deleted":             {"git branch -D muster/demo", 3, []muster.TaskID{1, 2}, "git branch muster/demo "},
		"taken and deleted":   {"git merge -q muster/demo && git branch -d muster/demo", 0, nil, ""},
		"moved to elsewhere":  {"git branch -f muster/demo $(git commit-tree -m x HEAD^{tree})", 3, []muster.TaskID{1, 2}, "git switch muster/demo && git merge "},
		"moved back, and red": {"git branch -f muster/demo main", 3, []muster.TaskID{1, 2}, "git switch muster/demo && git merge "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubbleOnGit(t, func(h *house) {
				check := ""
				if strings.HasSuffix(name, "red") {
					check = "false"
				}
				sum := h.start(`
speakers:
  lead:
    - do: [{task_create: {subject: one}}, {task_create: {subject: two}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
      until: All done
    - do: [{bash: {command: 'cd "$(echo "`+h.root+`")" && `+c.does+`'}}]
    - say: Done.
`+writes, func(o *team.Config) { o.Check = check }).ends(c.code, time.Hour)
				if !slices.Equal(sum.Off, c.off) || !strings.HasSuffix(sum.Text, "Done.") || (len(c.off) > 0) != strings.Contains(sum.Text, c.way+sum.Tasks[1].Landed.Commit+"\n") {
					h.Fatalf("%v: %s", sum.Off, sum.Text)
				}
				if h.count(func(e muster.Event) bool { return e.Kind == journal.RunEnded && e.Text("text") == sum.Text }) != 1 {
					h.Errorf("the end that was told is another\n%s", h.tail())
				}
				_, way, _ := strings.Cut(sum.Text, "to have it back: ")
				way, _, _ = strings.Cut(way, "\n")
				if way == "" || name == "moved to elsewhere" { // no history in common: git wants to be told that this is meant
					return
				}
				cmd := exec.Command("sh", "-c", way)
				cmd.Dir = h.root
				if out, err := cmd.CombinedOutput(); err != nil {
					h.Fatalf("%s: %v\n%s", way, err, out)
				}
				h.git("merge-base", "--is-ancestor", sum.Tasks[0].Landed.Commit, "muster/demo")
				h.git("merge-base", "--is-ancestor", sum.Tasks[1].Landed.Commit, "muster/demo")
			})
		})
	}
}

// A target that is gone is refused with the commit at which it was.
func TestATargetThatIsGoneIsNamedWithItsCommit(t *testing.T) {
	t.Parallel()
	bubbleOnGit(t, func(h *house) {
		r := h.start(strings.Replace(oneTask, "    - say: Done.", "    - wait: 1m\n      say: Done.", 1)+writes, nil)
		h.until("the task has landed", completed(1))
		time.Sleep(time.Second)
		r.interrupt()
		h.git("branch", "-D", "muster/demo")
		err := h.resume(oneTask+writes, nil).fails()
		var e *muster.Error
		if want := "git branch muster/demo " + h.task(1).Landed.Commit; !errors.As(err, &e) || e.Code != muster.NotFound || !strings.HasSuffix(e.Hint, want) {
			h.Errorf("%v; %+v", err, e)
		}
	})
}

// A run ends with 0 only when everything that its members have changed has landed, or was given up on purpose and is
// listed. Whatever else is kept, named, and the exit code is 3.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	const reminded = " If it should land"
	for name, c := range map[string]struct {
		words     string
		code      int
		left      string // the files that are left, or given up after a "-"
		reminders int
	}{
		"the lead edits without a task": {`
speakers:
  lead:
    - do: [{bash: {command: "echo mine >> README; echo new > new.txt"}}]
    - say: Done.
    - say: Done, I said.
`, 3, "README new.txt", 1},
		"the lead commits there": {`
speakers:
  lead:
    - do: [{bash: {command: "echo mine >> README; git -c user.name=a -c user.email=a@b.c commit -qam mine"}}]
    - say: Done.
    - say: Done, I said.
`, 3, "README", 1},
		"a teammate without a task": {`
speakers:
  lead:
    - do: [{spawn_teammate: {name: alice, role: coder, prompt: Look around.}}]
    - wait: 5m
      say: Done.
  alice:
    - do: [{bash: {command: "echo hers > hers.txt"}}]
    - say: I have looked.
    - say: I have looked twice.
`, 3, "hers.txt", 1},
		"a task is deleted with its work": {`
speakers:
  lead:
    - do: [{task_create: {subject: one}}, {claim_task: {task_id: 1}}]
    - do: [{write_file: {path: half.txt, content: half}}]
    - do: [{release_task: {task_id: 1, reason: too hard}}]
    - do: [{task_update: {task_id: 1, status: deleted}}]
    - say: Done.
`, 0, "-half.txt", 0},
		"a lane of no task is removed": {`
speakers:
  lead:
    - do: [{worktree_create: {name: mine}}]
    - do: [{worktree_run: {name: mine, command: "echo x > mine.txt"}}]
    - do: [{worktree_remove: {name: mine, force: true}}]
    - say: Done.
`, 0, "-mine.txt", 0},
		"a file comes into the lane while it lands": {`
speakers:
  lead:
    - do: [{task_create: {subject: one}}, {task_create: {subject: two}}, {claim_task: {task_id: 1}}]
    - do: [{write_file: {path: one.txt, content: x}}]
    - do: [{complete_task: {task_id: 1, summary: one}}]
    - do: [{claim_task: {task_id: 2}}]
    - do: [{complete_task: {task_id: 2, summary: two}}]
    - say: Done.
`, 3, "late.txt", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubbleOnGit(t, func(h *house) {
				sum := h.start(c.words, func(k *team.Config) {
					k.Teammates = 1
					if c.left == "late.txt" {
						k.Check = "test ! -e one.txt || touch '" + filepath.Join(h.root, ".worktrees/task-1-one/late.txt") + "'"
					}
				}).ends(c.code, time.Hour)
				var left []string
				for _, l := range sum.Left {
					files := strings.Join(l.Files, " ")
					if l.Dropped {
						files = "-" + files
					}
					left = append(left, files)
					if at := cmp.Or(l.Ref, string(l.Lane)); at == "" || !strings.Contains(sum.Text, at) {
						t.Errorf("the summary does not say where %+v is: %s", l, sum.Text)
					}
				}
				if got := strings.Join(left, "; "); got != c.left {
					t.Errorf("left is %q, want %q: %s\n%s", got, c.left, sum.Text, h.tail())
				}
				n := 0
				for _, who := range []muster.Name{muster.Lead, "alice"} {
					n += strings.Count(h.said(who), reminded)
				}
				if n != c.reminders {
					t.Errorf("%d reminders, want %d", n, c.reminders)
				}
			})
		})
	}
}
