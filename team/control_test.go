package team_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/testing/require"
	"muster/journal"
	"muster/llm"
	"muster/loop"
	"muster/store/file"
	"muster/store/mem"
	"muster/team"
)

// The board works without a run and without a model. What is added here is done by the next run.
func ExampleTasks() {
	ctx, dir := context.Background(), repository()
	defer os.RemoveAll(dir)
	t, err := team.Open(ctx, team.Config{Dir: dir,
		OpenStore: func(root string) (muster.Store, error) { return file.Open(root) }})
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close()
	parser := must(t.Tasks().Add(ctx, team.TaskDraft{Subject: "write the parser"}))
	must(t.Tasks().Add(ctx, team.TaskDraft{Subject: "document it", BlockedBy: []muster.TaskID{parser.ID}}))
	must(t.Tasks().Claim(ctx, parser.ID, "carol", ""))
	if _, _, err := t.Tasks().Complete(ctx, parser.ID, "carol", "parses all of it"); err != nil {
		log.Fatal(err)
	}
	tasks, _, err := t.Tasks().List(ctx)
	for _, task := range tasks {
		fmt.Println(task.ID, task.Subject, task.Status)
	}
	fmt.Println(err)
	// Output:
	// 1 write the parser completed
	// 2 document it pending
	// <nil>
}

// Mail, members and lanes can be seen and changed too, in this process or beside a run in another one.
func ExampleMembers() {
	ctx, dir := context.Background(), repository()
	defer os.RemoveAll(dir)
	t := opened(dir, "", nil)
	must(t.Members().Spawn(ctx, team.MemberDraft{Name: "alice", Role: "coder", Prompt: "You write code."}))
	must(t.Mail().Send(ctx, "alice", "Begin with the tests."))
	lane := must(t.Lanes().Create(ctx, team.LaneDraft{Name: "spike"}))
	exit := must(t.Lanes().Run(ctx, lane.Name, team.Command{Args: []string{"cat", "README"}, Out: os.Stdout}))
	for _, m := range must(t.Members().List(ctx)) {
		fmt.Println(m.Name, m.Role, m.IsAlive)
	}
	end := must(t.Members().Stop(ctx, false, "alice"))[0]
	fmt.Println(exit, end.Name, end.IsStopped, end.Why)
	// Output:
	// an example
	// alice coder false
	// 0 alice true its process had ended
}

// Subscribe delivers what members do while they do it: here, the tools that they call and the tasks that are completed.
func ExampleTeam_Subscribe() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir := repository()
	defer os.RemoveAll(dir)
	t := opened(dir, `
speakers:
  lead:
    - do: [{task_create: {subject: look around}}, {claim_task: {task_id: 1}}]
    - do: [{complete_task: {task_id: 1, summary: Nothing to see.}}]
    - say: Done.
`, nil)
	events := t.Subscribe(ctx)
	ended := make(chan error, 1)
	go func() {
		_, err := t.Run(context.Background(), "the goal", team.Start{})
		ended <- err
	}()
	for e := range events {
		switch e := e.(type) {
		case team.TurnEvent:
			if started, ok := e.Event.(loop.ToolStarted); ok && started.Call.Name == "complete_task" {
				fmt.Println(e.Member, "completes its task")
			}
		case team.StateEvent:
			if e.Entry.Kind == journal.RunEnded {
				cancel() // the last event that this reader wants
			}
		}
	}
	fmt.Println(<-ended)
	// Output:
	// lead completes its task
	// <nil>
}

// A subscriber that does not read blocks nobody: turn events are dropped beyond a limit, and it is told how many.
func TestASlowSubscriberIsToldWhatItMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const published = 10_000
		c := team.Config{Store: mem.New(), Model: func(string) (llm.Model, error) { return nil, nil }}
		tm := require.Value(team.OpenOn(t.Context(), c, newMeadow("/nowhere")))(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		events := tm.Subscribe(ctx)
		for range published {
			tm.Publish(team.TurnEvent{Member: muster.Lead, Event: loop.TextDelta{Text: "x"}})
		}
		got, missed := 0, 0
		for got+missed < published {
			select {
			case e := <-events:
				if m, ok := e.(team.Missed); ok {
					missed += m.Count
				} else {
					got++
				}
			case <-time.After(time.Second):
				t.Fatalf("%d events came and %d were missed, of %d", got, missed, published)
			}
		}
		if missed == 0 {
			t.Error("nothing was dropped")
		}
		cancel()
		for range events { // it is closed
		}
	})
}

// What the lead says in one process streams to a subscriber in another, with its end; nothing of it is left behind. The
// lead goes on only when it is heard: its first command ends once anything of it has come, the second one after its words.
func TestWordsStreamToOtherProcesses(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	dir, signs := repository(), t.TempDir()
	defer os.RemoveAll(dir)
	script := fmt.Sprintf(`
speakers:
  lead:
    - do: [{task_create: {subject: look around}}, {claim_task: {task_id: 1}}]
    - do: [{bash: {command: "while [ ! -e %[1]s/heard ]; do echo here; sleep 0.05; done"}}]
    - say: "First I look."
      do: [{bash: {command: "while [ ! -e %[1]s/ended ]; do sleep 0.05; done"}}]
    - do: [{complete_task: {task_id: 1, summary: Nothing to see.}}]
    - say: All is well.
`, signs)
	sign := func(name string) {
		if err := os.WriteFile(filepath.Join(signs, name), nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	host, other := opened(dir, script, nil), opened(dir, script, nil)
	events := other.Subscribe(ctx)
	ended := make(chan error, 1)
	go func() {
		_, err := host.Run(t.Context(), "the goal", team.Start{})
		ended <- err
	}()
	words, isEnded := "", false
	for e := range events {
		turn, ok := e.(team.TurnEvent)
		if !ok {
			continue
		}
		if !turn.IsRemote || turn.Member != muster.Lead {
			t.Errorf("%+v", turn)
		}
		sign("heard")
		switch said := turn.Event.(type) {
		case loop.TextDelta:
			words += said.Text
		case loop.TurnEnded:
			isEnded = isEnded || words == "First I look."
		}
		if isEnded {
			stop()
		}
	}
	sign("heard")
	sign("ended")
	require.NoError(t, <-ended)
	if !isEnded {
		t.Errorf("it has heard %q, and no end of it", words)
	}
	if left, _ := os.ReadDir(dir + "/.team/cache/live"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// What fails and stops nobody is logged: here a member's status, which is for people only.
func TestDroppedErrorsAreLogged(t *testing.T) {
	t.Parallel()
	bubbleOnGit(t, func(h *house) {
		var log bytes.Buffer // a handler of slog writes one record at a time
		h.start(oneTask+writes, func(c *team.Config) {
			c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			c.Store = refusing(c.Store, muster.TableMembers, func(data []byte) error {
				if bytes.Contains(data, []byte(`"lands"`)) {
					return noRoom()
				}
				return nil
			})
		}).ends(0, time.Hour)
		for _, want := range []string{`msg="team opened"`, `msg="member started" member=lead`, `msg="member started" member=alice`,
			`msg="member stopped" member=alice`,
			`msg="landing moved the target" task=1`, `msg="error dropped" member=alice what="the member's status"`} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log does not have %s:\n%s", want, &log)
			}
		}
	})
}

// The environment of a team is the one that it was given, and not that of its process.
func TestEnvironIsWhatCommandsSee(t *testing.T) {
	dir := repository()
	defer os.RemoveAll(dir)
	t.Setenv("WHO", "the process")
	o := opened(dir, "", func(c *team.Config) {
		c.Environ, c.PassEnv = []string{"PATH=" + os.Getenv("PATH"), "WHO=the team"}, []string{"WHO"}
	})
	lane := must(o.Lanes().Create(t.Context(), team.LaneDraft{Name: "spike"}))
	var out strings.Builder
	must(o.Lanes().Run(t.Context(), lane.Name, team.Command{Args: []string{"echo $WHO"}, Out: &out}))
	if out.String() != "the team\n" {
		t.Errorf("it is %q", out.String())
	}
}
