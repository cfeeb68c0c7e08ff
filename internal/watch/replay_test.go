package watch

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"muster"
	"muster/internal/testing/require"
	"muster/journal"
	"muster/store/mem"
)

// openReplay shows a journal in which one task comes back before it lands, and another waits for a plan.
func openReplay(t *testing.T) *screen {
	t.Helper()
	store := mem.New()
	t.Cleanup(func() { store.Close() })
	j := journal.New(store.Log())
	// An earlier run is not gone through.
	at := 3900.0
	add := func(kind string, member muster.Name, task muster.TaskID, fields map[string]any) {
		at += 10
		require.NoError(t, j.Emit(t.Context(), muster.Event{Kind: kind, At: at, Member: member, Task: task, Fields: fields}))
	}
	add(journal.MemberSpawned, "zoe", 0, map[string]any{"role": "coder"})
	at = 4000
	add(journal.RunStarted, muster.Lead, 0, map[string]any{"goal": "make the words count"})
	add(journal.MemberSpawned, muster.Lead, 0, map[string]any{"role": "lead"})
	add(journal.TaskCreated, muster.Lead, 1, map[string]any{"subject": "tokenizer"})
	add(journal.TaskCreated, muster.Lead, 2, map[string]any{"subject": "reader"})
	add(journal.MemberSpawned, "alice", 0, map[string]any{"role": "coder"})
	add(journal.TaskClaimed, "alice", 1, map[string]any{"subject": "tokenizer", "lane": "task-1"})
	add(journal.TaskLanding, "alice", 1, nil)
	add(journal.TaskReturned, "alice", 1, map[string]any{"reason": "check", "text": "the check is red", "failed": "TestWords"})
	add(journal.TaskLanding, "alice", 1, nil)
	add(journal.TaskCompleted, "alice", 1, map[string]any{"commit": "9c01d3e", "subject": "tokenizer"})
	add(journal.TaskClaimed, "alice", 2, map[string]any{"subject": "reader"})
	add(journal.RequestCreated, "alice", 2, map[string]any{"request_id": "7f2c91aa", "kind": "plan_approval", "to": "lead", "text": "in place"})
	add(journal.RequestDecided, muster.User, 2, map[string]any{"request_id": "7f2c91aa", "status": "approved"})
	add(journal.TaskCompleted, "alice", 2, map[string]any{"commit": "77aa01b", "subject": "reader"})
	add(journal.MemberShutdown, "alice", 0, nil)
	add(journal.RunEnded, muster.Lead, 0, map[string]any{"code": 0.0})

	s := &screen{t, newModel(false, muster.Time(5000)), &fake{ctx: t.Context(), journal: j}}
	s.m.ask = func(f func(context.Context, teamAPI) tea.Msg) tea.Cmd {
		return func() tea.Msg { return f(t.Context(), s.team) }
	}
	s.send(tea.WindowSizeMsg{Width: 80, Height: 24})
	run := muster.Run{Team: "words", Goal: "make the words count", StartedAt: 4010, EndedAt: at}
	r := require.Value(newReplay(t.Context(), j, run, nil))(t)
	s.m.replay = r
	s.send(s.team.Past(t.Context(), r, len(r.marks)))
	return s
}

// A replay goes by event and by landing, shows what was then, and decides nothing. It plays from the beginning to the end.
func TestAReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, start := openReplay(t), time.Now()
		s.keys("p")
		s.has("event 16 of 16, landing 2 of 2", "ended", "2 finished", "alice stopped")
		s.hasNot("plays")
		if took := time.Since(start); took != 15*playInterval {
			t.Errorf("15 events took %v", took)
		}
		s.keys("{", "[", "e")
		s.golden("replay-80")
		s.keys("esc", "{")
		s.has("event 10 of 16, landing 1 of 2", "1 finished", "2 ready    reader")
		s.keys("]", "]")
		s.has("event 12 of 16", "NEEDS YOU 1", "plan for 2")
		s.keys("a", "r", "A", "m", "t") // what is over cannot be decided
		s.did()
		s.keys("0")
		s.has("event 1 of 16", "MEMBERS 0", "goal: make the words count")
	})
}
