package printed_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster"
	"muster/internal/printed"
	"muster/internal/testing/require"
)

// What is printed differs from the record in the names and the times alone. Fields of other programs stay.
func TestTask(t *testing.T) {
	const record = `{"id":2,"subject":"a & b","status":"in_progress","owner":"ann","blockedBy":[],"dependsOn":[1],` +
		`"claimed_at":1714567890.123456,"estimate":{"claimed_at":3,"dependsOn":[]}}`
	var task muster.Task
	require.NoError(t, json.Unmarshal([]byte(record), &task))
	const want = `{"id":2,"subject":"a & b","description":"","status":"in_progress","owner":"ann","blockedBy":[],` +
		`"depends_on":[1],"blocks":[],"priority":0,"worktree":"","claimed_at":"2024-05-01T12:51:30.123456Z","fence":0,` +
		`"attempts":0,"landed":null,"estimate":{"claimed_at":3,"dependsOn":[]}}`
	for _, v := range []any{task, &task, []muster.Task{task}, struct{ muster.Task }{task}.Task} {
		got := string(require.Value(printed.Line(v))(t))
		if _, isList := v.([]muster.Task); isList {
			got = got[1 : len(got)-1]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

// Odd fields of other programs do not keep a record from being printed, and no name comes twice by renaming.
func TestOddFields(t *testing.T) {
	for _, odd := range []string{`"metadata":{"a":1,"a":2}`, `"x":"\ud800"`, `"depends_on":[7]`} {
		var task muster.Task
		require.NoError(t, json.Unmarshal([]byte(`{"id":2,"subject":"a","dependsOn":[1],`+odd+`}`), &task))
		got := string(require.Value(printed.Line(task))(t))
		if strings.Count(got, `"depends_on":`) != 1 || !strings.Contains(got, `"depends_on":[1]`) {
			t.Errorf("%s: %s", odd, got)
		}
	}
}

func TestRun(t *testing.T) {
	run := muster.Run{Away: 3, Checks: []muster.NamedCheck{{Name: "lint", Command: "x", Timeout: 60}}}
	got := string(require.Value(printed.Line(run))(t))
	const want = `{"team":"","goal":"","checks":[{"name":"lint","command":"x","timeout_seconds":60}],"target":"","cap":0,` +
		`"started_at":null,"away_seconds":3}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEvent(t *testing.T) {
	e := muster.Event{Kind: "model.retry", At: 1714567890, Member: "ann", Fields: map[string]any{"text": "<x>", "until": 1714567891.5}}
	got := string(require.Value(printed.Line(e))(t))
	const want = `{"event":"model.retry","ts":"2024-05-01T12:51:30.000000Z","member":"ann","text":"<x>",` +
		`"until":"2024-05-01T12:51:31.500000Z"}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkTasks(b *testing.B) {
	tasks := make([]muster.Task, 1000)
	for i := range tasks {
		tasks[i] = muster.Task{ID: muster.TaskID(i), Subject: "make a part", Description: "of the whole", CreatedAt: 1714567890}
	}
	b.Run("printed", func(b *testing.B) {
		for b.Loop() {
			_, _ = printed.Document(tasks)
		}
	})
	b.Run("stored", func(b *testing.B) {
		for b.Loop() {
			_, _ = muster.Encode(tasks)
		}
	})
}
