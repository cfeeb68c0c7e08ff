package board

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"muster"
)

// Whatever a task says, it is read without reflection as it is read with it.
func TestPlainTasks(t *testing.T) {
	text := rapid.OneOf(rapid.Just(""), rapid.String())
	when := rapid.Custom(func(t *rapid.T) float64 { return float64(rapid.Int64Range(0, 1<<52).Draw(t, "us")) / 1e6 })
	ids := rapid.SliceOf(rapid.Custom(func(t *rapid.T) muster.TaskID { return muster.TaskID(rapid.IntRange(1, 1e6).Draw(t, "id")) }))
	some := 0
	rapid.Check(t, func(t *rapid.T) {
		in := muster.Task{ID: 7, Subject: text.Draw(t, "subject"), Description: text.Draw(t, "description"), Owner: muster.Name(text.Draw(t, "owner")),
			Status:    rapid.SampledFrom([]muster.TaskStatus{muster.Pending, muster.Landing, muster.Completed, "other"}).Draw(t, "status"),
			BlockedBy: ids.Draw(t, "blockedBy"), DependsOn: ids.Draw(t, "dependsOn"), Blocks: ids.Draw(t, "blocks"), ClaimRole: text.Draw(t, "role"),
			Priority: rapid.Int().Draw(t, "priority"), Worktree: muster.Name(text.Draw(t, "lane")), Base: text.Draw(t, "base"), ClaimedAt: when.Draw(t, "claimed"),
			ClaimSource: text.Draw(t, "source"), Fence: rapid.IntRange(0, 100).Draw(t, "fence"), Attempts: rapid.IntRange(0, 3).Draw(t, "attempts"),
			Returns: rapid.IntRange(0, 3).Draw(t, "returns"), CreatedBy: muster.Name(text.Draw(t, "creator")), CreatedAt: when.Draw(t, "created"),
			UpdatedAt: when.Draw(t, "updated"), RequirePlan: rapid.Bool().Draw(t, "plan"), CompletedBy: muster.Name(text.Draw(t, "completer")),
			Result: text.Draw(t, "result"), Note: text.Draw(t, "note")}
		if rapid.Bool().Draw(t, "landed") {
			in.Landed = &muster.Landed{Commit: text.Draw(t, "commit"), Receipt: muster.ReceiptGreen, Check: text.Draw(t, "check"), Seconds: when.Draw(t, "seconds")}
		}
		if rapid.IntRange(0, 9).Draw(t, "effects") == 0 {
			in.Effects = []muster.Effect{muster.EffectTell}
		}
		if rapid.IntRange(0, 9).Draw(t, "more") == 0 {
			in.Extra = muster.Extra{"other": []byte(`{"x":1}`)}
		}
		data, err := muster.Encode(in)
		if err != nil {
			t.Skip(err)
		}
		got, ok := plain(data)
		if !ok {
			if in.Effects == nil && in.Extra == nil && in.Priority < 1e17 && in.Priority > -1e17 {
				t.Fatalf("%s is not read", data)
			}
			return
		}
		var want muster.Task
		if err := want.UnmarshalJSON(data); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s\nis read as\n%#v, not\n%#v", data, got, want)
		}
		some++
	})
	if some == 0 {
		t.Error("no task was read")
	}
}

// What other programs write is left to the way that knows their words.
func TestForeignTasksAreNotPlain(t *testing.T) {
	for _, s := range []string{`{"id":1,"blockedBy":[2]}`, `{"id":1,"dependsOn":[],"owner":null}`, `{"id":1,"dependsOn":[],"required_role":"x"}`,
		`{"id":1,"dependsOn":[],"Status":"completed"}`, `{"id":1.0,"dependsOn":[]}`, `{"id":1,"dependsOn":[],"landed":{"commit":"a"},"landed":{"check":"b"}}`,
		`{"id":1,"dependsOn":[],"landed":{"who":"b"}}`} {
		if t2, ok := plain([]byte(s)); ok {
			t.Errorf("%s is read as %+v", s, t2)
		}
	}
}
