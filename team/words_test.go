package team_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/loop"
	"muster/team"
)

// What the lead says in one process streams to a subscriber in another, with its ends; nothing of it is left behind.
func TestWordsStreamToOtherProcesses(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := repository()
	defer os.RemoveAll(dir)
	const script = `
speakers:
  lead:
    - say: "First I look."
      do: [{task_create: {subject: look around}}, {claim_task: {task_id: 1}}]
    - do: [{bash: {command: "sleep 1"}}]
    - do: [{complete_task: {task_id: 1, summary: Nothing to see.}}]
    - say: All is well.
`
	host, other := opened(dir, script, nil), opened(dir, script, nil)
	events := other.Subscribe(ctx)
	ended := make(chan error, 1)
	go func() {
		_, err := host.Run(ctx, "the goal", team.Start{})
		ended <- err
		time.AfterFunc(time.Second, cancel) // what was said last may still be on its way
	}()
	words, ends := "", 0
	for e := range events {
		turn, ok := e.(team.TurnEvent)
		if !ok {
			continue
		}
		if !turn.IsRemote || turn.Member != muster.Lead {
			t.Errorf("%+v", turn)
		}
		switch said := turn.Event.(type) {
		case loop.TextDelta:
			words += said.Text
		case loop.TurnEnded:
			ends++
		}
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(words, "First I look.") || ends < 2 {
		t.Errorf("%q, %d ends", words, ends)
	}
	if left, _ := os.ReadDir(dir + "/.team/cache/live"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
