package cli

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster"
	"muster/internal/testing/require"
	"muster/journal"
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
  subagent:
    - say: It is not.
scenes:
  - cue: 'Task #1: one'
    who: [coder]
    turns:
      - do: [{todo: {items: [{id: a, text: write one, status: in_progress}]}}]
      - do: [{subagent: {kind: explore, prompt: Is one there?}}]
      - do: [{write_file: {path: one, content: "1\n"}}]
      - do: [{complete_task: {task_id: 1, summary: One is there.}}]
  - cue: 'Task #2: two'
    who: [coder]
    turns:
      - do: [{write_file: {path: two, content: "2\n"}}]
      - do: [{complete_task: {task_id: 2, summary: Two is there.}}]
`

// seen is what a face shows of an archived team, or with "" of the one that is here: the tasks, the kinds of its events,
// and what alice has said.
func seen(w *world, archive string) (o opened, tasks []muster.Task, kinds, said []string) {
	w.Helper()
	open := w.app.open
	if archive != "" {
		open = func(ctx context.Context) (opened, error) { return openArchive(ctx, w.app, archive) }
	}
	o, err := open(w.Context())
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

// An archive shows what the team itself has shown, and whatever is done with it reaches no file.
func TestAnArchivedTeamIsLookedAt(t *testing.T) {
	w := newWorld(t)
	w.app.Start = w.app.startTeam
	w.app.Args = []string{"run", "two files", "--teammates", "1", "--model", "script/" + w.words(twoTasks)}
	w.run(t.Context(), 0)
	w.muster(0, "status")
	w.has("TAKE    2 landed commits are not in main yet: muster merge\n")
	w.muster(0, "mail", "send", "lead", "thanks")
	if want := "muster: no team is at work: muster run \"GOAL\"\n"; w.err.String() != want {
		t.Errorf("%q, want %q", w.err.String(), want)
	}
	_, _, kinds, _ := seen(w, "")
	w.muster(0, "archive")
	w.has("put it aside: muster archive --yes")
	w.muster(0, "archive", "--yes")
	w.has("2 landed commits are not in main yet (muster merge 2")
	entries, err := os.ReadDir(filepath.Join(w.dir, ".team", "archive"))
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	before := listing(t, filepath.Join(w.dir, ".team"))
	o, tasks, got, said := seen(w, entries[0].Name())
	if !slices.Equal(got, kinds) {
		t.Errorf("the archive has the events %q, and the team had %q", got, kinds)
	}
	if len(tasks) != 2 || tasks[1].Status != muster.Completed || len(tasks[1].DependsOn) != 1 || tasks[1].Landed == nil {
		t.Fatalf("the archive has the tasks %+v", tasks)
	}
	helper := ""
	for s, err := range o.Members().Conversation(t.Context(), "alice.explore-1", 0) {
		require.NoError(t, err)
		helper += s.Text + "\n"
	}
	if !strings.HasPrefix(helper, "Is one there?\n") || !strings.HasSuffix(helper, "\nIt is not.\n") {
		t.Errorf("the archive has the helper's conversation %q", helper)
	}
	for _, want := range []string{"call write_file one", "step write one", "call complete_task 2"} {
		if n := strings.Count(strings.Join(said, "\n")+"\n", want+"\n"); n != 1 {
			t.Errorf("the archive has %q %d times in\n%s", want, n, strings.Join(said, "\n"))
		}
	}
	if run, err := o.LastRun(t.Context()); err != nil || run.Goal != "two files" {
		t.Errorf("the archive is of the goal %q, %v", run.Goal, err)
	}
	// The commits are in the repository.
	if d, err := o.Tasks().Diff(t.Context(), 2); err != nil || !strings.Contains(d.Text, "+2") {
		t.Errorf("the diff is %q, %v", d.Text, err)
	}
	require.NoError(t, o.Journal().Emit(t.Context(), muster.Event{Kind: journal.RunNote}))
	if after := listing(t, filepath.Join(w.dir, ".team")); !slices.Equal(before, after) {
		t.Errorf("there were the files %q, and are %q", before, after)
	}
	// What it has landed is taken by its name, and without one where no other team is here.
	w.muster(1, "merge", "nothing")
	w.muster(0, "merge")
	w.has("2 commits of muster/", "came to main by fast-forward")
	w.muster(0, "merge", entries[0].Name())
	w.has("everything is in main already")
	w.muster(0, "archive", "restore", entries[0].Name())
	w.muster(0, "task", "list")
	w.has("2  landed")
}

// has wants texts in what the last command has printed.
func (w *world) has(texts ...string) {
	w.Helper()
	for _, text := range texts {
		if !strings.Contains(w.out.String(), text) {
			w.Errorf("no %q in\n%s", text, w.out.String())
		}
	}
}

func listing(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		all = append(all, path)
		return err
	})
	require.NoError(t, err)
	return all
}
