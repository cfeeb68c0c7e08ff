package team_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"muster"
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
		tm, err := team.OpenOn(t.Context(), c, newMeadow("/nowhere"))
		if err != nil {
			t.Fatal(err)
		}
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
