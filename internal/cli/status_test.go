package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/testing/require"
	"muster/journal"
	"muster/store/file"
)

// The age of a run is the time that a process of it lived, and turns are counted as they begin: the members' records
// are written when a status changes only.
func TestStatusCountsWhatTheTeamLivedAndTurnsAsTheyBegin(t *testing.T) {
	w := newWorld(t, "status")
	now := time.Now()
	w.app.Now = func() time.Time { return now }
	w.lives(map[muster.Name]bool{"alice": true})
	s := require.Value(file.Open(w.dir))(t)
	defer s.Close()
	ago := func(d time.Duration) float64 { return muster.UnixTime(now.Add(-d)) }
	data, _ := json.Marshal(muster.Run{Team: "team", Goal: "a goal", Target: "muster/team", StartedAt: ago(5 * time.Hour), Away: (4*time.Hour + 48*time.Minute).Seconds()})
	require.Value(s.Table(muster.TableTeam).Put(t.Context(), "run", data, muster.None))(t)
	j := journal.New(s.Log())
	for _, e := range []struct {
		ago time.Duration
		muster.Event
	}{
		{9 * time.Hour, at(journal.TurnStarted, "alice", 0, "turn", 1, "turns", 1)}, // of the run before
		{8 * time.Hour, at(journal.RunResumed, "lead", 0)},
		{5 * time.Hour, at(journal.RunStarted, "lead", 0)},
		{5*time.Hour - 2*time.Minute, at(journal.TurnStarted, "alice", 0, "turn", 1, "turns", 2)}, // and is killed
		{time.Hour, at(journal.TaskCreated, "alice", 1, "subject", journal.TurnStarted)},
		{10 * time.Minute, at(journal.RunResumed, "lead", 0)},
		{5 * time.Minute, at(journal.TurnStarted, "alice", 0, "turn", 2, "turns", 3)},
	} {
		e.Event.At = ago(e.ago)
		require.NoError(t, j.Emit(t.Context(), e.Event))
	}
	w.run(t.Context(), 0)
	if first, rest, _ := strings.Cut(w.out.String(), "\n"); first != "team team   goal: a goal    12 min" || !strings.Contains(rest, "     3\n") {
		t.Error(w.out.String())
	}
	w.muster(0, "status", "--json")
	if !strings.Contains(w.out.String(), `"turns": 3`) {
		t.Error(w.out.String())
	}
}
