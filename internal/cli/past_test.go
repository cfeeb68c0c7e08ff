package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster"
	"muster/internal/testing/require"
	"muster/team"
)

// twoTasks is a team of which one task depends on the other.
const twoTasks = `
speakers:
  lead:
    - do:
        - task_create: {subject: one, description: The first.}
        - task_create: {subject: two, description: The second., depends_on: [1]}
        - spawn_teammate: {name: alice, role: coder, prompt: You write.}
    - do: [{wait: {}}]
      until: All done
    - say: Both are there.
scenes:
  - cue: 'Task #1: one'
    who: [coder]
    turns:
      - do: [{todo: {items: [{id: a, text: write one, status: in_progress}]}}]
      - do: [{write_file: {path: one, content: "1\n"}}]
      - do: [{complete_task: {task_id: 1, summary: One is there.}}]
  - cue: 'Task #2: two'
    who: [coder]
    turns:
      - do: [{write_file: {path: two, content: "2\n"}}]
      - do: [{complete_task: {task_id: 2, summary: Two is there.}}]
`

// recordTwoTasks runs the team and returns its recording.
func recordTwoTasks(w *world) string {
	w.Helper()
	script := w.words(twoTasks)
	rec := filepath.Join(filepath.Dir(script), "two.rec")
	w.app.Start = w.app.startTeam
	w.app.Args = []string{"run", "two files", "--teammates", "1", "--model", "script/" + script, "--record", rec}
	w.run(w.Context(), 0)
	return rec
}

// seen is what a face shows of a past: the tasks, the kinds of its events, and what alice has said.
func seen(w *world, what string) (o opened, tasks []muster.Task, kinds, said []string) {
	w.Helper()
	o, err := (&lookBack{isOn: true, what: what}).open(w.Context(), w.app)
	require.NoError(w, err)
	w.Cleanup(o.close)
	if tasks, _, err = o.Tasks().List(w.Context()); err != nil {
		w.Fatal(err)
	}
	for e, err := range o.Journal().Read(w.Context(), 0) {
		require.NoError(w, err)
		kinds = append(kinds, e.Kind)
	}
	for s, err := range o.Members().Conversation(w.Context(), "alice", 0) {
		require.NoError(w, err)
		said = append(said, string(s.Kind)+" "+s.Tool+" "+s.Text)
		if len(s.Steps) > 0 {
			said = append(said, "step "+s.Steps[0].Text)
		}
	}
	return o, tasks, kinds, said
}

// A recording and an archive show what the team itself has shown, wherever the recording is looked at.
func TestWhatIsLookedBackAt(t *testing.T) {
	w := newWorld(t)
	rec := recordTwoTasks(w)
	_, _, kinds, _ := seen(w, "")
	check := func(what string) opened {
		t.Helper()
		o, tasks, got, said := seen(w, what)
		if !slices.Equal(got, kinds) {
			t.Errorf("%s has the events %q, and the team %q", what, got, kinds)
		}
		if len(tasks) != 2 || tasks[1].Status != muster.Completed || len(tasks[1].DependsOn) != 1 || tasks[1].Landed == nil {
			t.Fatalf("%s has the tasks %+v", what, tasks)
		}
		for _, want := range []string{"call write_file one", "step write one", "call complete_task 2"} {
			if n := strings.Count(strings.Join(said, "\n")+"\n", want+"\n"); n != 1 {
				t.Errorf("%s has %q %d times in\n%s", what, want, n, strings.Join(said, "\n"))
			}
		}
		if run, err := o.LastRun(t.Context()); err != nil || run.Goal != "two files" {
			t.Errorf("%s is of the goal %q, %v", what, run.Goal, err)
		}
		return o
	}
	o := check(rec)
	// The commits are in the repository.
	if d, err := o.Tasks().Diff(t.Context(), 2); err != nil || !strings.Contains(d.Text, "+2") {
		t.Errorf("the diff is %q, %v", d.Text, err)
	}
	// Whatever is done with it reaches no file.
	before := listing(t, filepath.Join(w.dir, ".team"))
	require.NoError(t, team.PutTasks(t.Context(), o.Team, []muster.Task{{ID: 3, Subject: "three"}}))
	if after := listing(t, filepath.Join(w.dir, ".team")); !slices.Equal(before, after) {
		t.Errorf("there were the files %q, and are %q", before, after)
	}
	here := w.app.Dir
	w.app.Dir = t.TempDir()
	check(rec)
	w.app.Dir = here

	w.muster(0, "archive")
	entries, err := os.ReadDir(filepath.Join(w.dir, ".team", "archive"))
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	before = listing(t, filepath.Join(w.dir, ".team"))
	check(entries[0].Name())
	if after := listing(t, filepath.Join(w.dir, ".team")); !slices.Equal(before, after) {
		t.Errorf("the archive had the files %q, and has %q", before, after)
	}
}

// listing returns the paths of all files below a directory.
func listing(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		all = append(all, path)
		return err
	})
	require.NoError(t, err)
	return all
}

// What cannot be looked back at is refused with what to do.
func TestWhatCannotBeLookedBackAt(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "odd"), []byte("no recording\n"), 0o600))
	for _, c := range []struct {
		args  []string
		code  int
		wants []string
	}{
		{[]string{"web", "--replay", "nothing"}, 1, []string{`neither a recording nor an archived team "nothing"`,
			"muster archive list", "muster run --record FILE"}},
		{[]string{"web", "two.rec"}, 2, []string{"muster web --replay two.rec"}},
		{[]string{"web", "--replay", "odd"}, 1, []string{"this is no recording that can be read"}},
	} {
		w.err.Reset()
		w.app.Args = c.args
		w.run(t.Context(), c.code)
		for _, want := range c.wants {
			if !strings.Contains(w.err.String(), want) {
				t.Errorf("no %q in\n%s", want, w.err.String())
			}
		}
	}
}
