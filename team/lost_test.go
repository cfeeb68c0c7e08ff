package team_test

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/journal"
	"muster/team"
)

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
    - do: [{bash: {command: 'cd "`+h.root+`" && `+c.does+`'}}]
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
