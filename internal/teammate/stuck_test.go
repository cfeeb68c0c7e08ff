package teammate

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster"
)

func idleMember(name, role string) muster.Member {
	return muster.Member{Name: muster.Name(name), Role: role, Status: muster.Idle}
}

func TestStuck(t *testing.T) {
	idle := idleMember
	asks := func(name string, whom ...muster.Name) muster.Member {
		m := idle(name, "coder")
		setAsked(&m, whom)
		return m
	}
	task := func(id muster.TaskID, change func(*muster.Task)) muster.Task {
		t := muster.Task{ID: id, Status: muster.Pending}
		if change != nil {
			change(&t)
		}
		return t
	}
	claimed := func(id muster.TaskID, owner muster.Name) muster.Task {
		return task(id, func(t *muster.Task) { t.Owner, t.Status = owner, muster.InProgress })
	}
	gone := muster.Member{Name: "alice", Role: "coder", Status: muster.Shutdown}
	for _, c := range []struct {
		name    string
		open    []muster.Task
		talking []muster.Name
		members []muster.Member
		pending []muster.Request
		patient bool
		want    string // "" when something can move
	}{
		{name: "nobody there", open: []muster.Task{task(1, nil)}, want: "no teammate to take it"},
		{name: "an idle teammate may take it",
			open: []muster.Task{task(1, nil)}, members: []muster.Member{idle("alice", "coder")}},
		{name: "a shut down one may not", open: []muster.Task{task(1, nil)},
			members: []muster.Member{gone}, want: "no teammate"},
		{name: "the role is missing", open: []muster.Task{task(1, func(t *muster.Task) { t.ClaimRole = "tester" })},
			members: []muster.Member{idle("alice", "coder")}, want: "is for a tester and there is none"},
		{name: "somebody works", open: []muster.Task{task(1, nil)}, talking: []muster.Name{"alice"}},
		{name: "blocked by what needs attention",
			open:    []muster.Task{task(2, func(t *muster.Task) { t.BlockedBy = []muster.TaskID{1} })},
			members: []muster.Member{idle("alice", "coder")}, want: "waits for #1"},
		{name: "an idle owner waits for an answer", open: []muster.Task{claimed(1, "alice")},
			members: []muster.Member{idle("alice", "coder")}},
		{name: "an idle owner who is never timed out", open: []muster.Task{claimed(1, "alice")},
			members: []muster.Member{idle("alice", "coder")}, patient: true,
			want: "held by alice, who is idle"},
		{name: "one that claimed just now, and has not said yet that it works",
			open: []muster.Task{task(1, func(t *muster.Task) {
				t.Owner, t.Status, t.ClaimedAt = "alice", muster.InProgress, muster.UnixTime(time.Now())
			})}, members: []muster.Member{idle("alice", "coder")}, patient: true},
		{name: "one that claimed it just now, and rests with it already",
			open: []muster.Task{task(1, func(t *muster.Task) {
				t.Owner, t.Status, t.ClaimedAt = "alice", muster.InProgress, muster.UnixTime(time.Now())
			})}, members: []muster.Member{{Name: "alice", Role: "coder", Status: muster.Idle, Task: 1}}, patient: true,
			want: "who is idle"},
		{name: "an idle owner takes no other task either", open: []muster.Task{claimed(1, "alice"), task(2, nil)},
			members: []muster.Member{idle("alice", "coder")}, patient: true,
			want: "task #2 is ready and there is no teammate to take it"},
		{name: "it waits for the lead", open: []muster.Task{claimed(1, "alice")},
			members: []muster.Member{asks("alice", muster.Lead)}, want: "waits for an answer of lead"},
		{name: "it waits for a teammate", open: []muster.Task{claimed(1, "alice")},
			members: []muster.Member{asks("alice", "bob")}, want: "waits for an answer of bob"},
		{name: "it waits for the user", open: []muster.Task{claimed(1, "alice")},
			members: []muster.Member{asks("alice", muster.Lead, muster.User)}},
		{name: "it waits for the user, and is never timed out", open: []muster.Task{claimed(1, "alice")},
			members: []muster.Member{asks("alice", muster.User)}, patient: true},
		{name: "its owner has shut down", open: []muster.Task{claimed(1, "alice")},
			members: []muster.Member{gone}, want: "who has shut down"},
		{name: "claimed from outside", open: []muster.Task{claimed(1, "script")}},
		{name: "in the lead's own hand", open: []muster.Task{claimed(1, muster.Lead)},
			want: "held by the lead"},
		{name: "the user is asked",
			open: []muster.Task{task(1, nil)}, pending: []muster.Request{{To: muster.User}}},
		{name: "only the lead is asked",
			open: []muster.Task{task(1, nil)}, pending: []muster.Request{{To: muster.Lead}}, want: "no teammate"},
	} {
		got := stuckReason(TeamProgress{Open: c.open, Working: c.talking, Patient: c.patient}, c.members, c.pending)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// What a task waits for, however indirectly, must move, and none of it may be stuck.
func TestCanUnblockIndirectly(t *testing.T) {
	on := func(id muster.TaskID, ids ...muster.TaskID) muster.Task {
		return muster.Task{ID: id, Status: muster.Pending, BlockedBy: ids, ClaimRole: "tester"}
	}
	atWork := muster.Task{ID: 1, Status: muster.InProgress, Owner: "bob"}
	ready := muster.Task{ID: 1, Status: muster.Pending}
	for _, c := range []struct {
		name  string
		tasks []muster.Task
		want  bool
	}{
		{"one at work", []muster.Task{atWork, on(2, 1)}, true},
		{"through another", []muster.Task{atWork, on(2, 1), on(3, 2)}, true},
		{"only through another", []muster.Task{atWork, {ID: 2, Status: muster.Pending, BlockedBy: []muster.TaskID{1},
			ClaimRole: "writer"}, on(3, 2)}, true},
		{"one at work and one deleted", []muster.Task{atWork, on(2, 1, 9)}, false},
		{"one deleted and one at work", []muster.Task{atWork, on(2, 9, 1)}, false},
		{"one at work and one that needs attention", []muster.Task{atWork, {ID: 3, Status: muster.NeedsAttention},
			on(2, 1, 3)}, false},
		{"its own and one at work", []muster.Task{atWork, {ID: 3, Status: muster.InProgress, Owner: "tess"}, on(2, 1, 3)},
			false},
		{"one at work, and through another one deleted", []muster.Task{atWork,
			{ID: 3, Status: muster.Pending, BlockedBy: []muster.TaskID{9}}, on(2, 1, 3)}, false},
		{"one for nobody and one at work", []muster.Task{atWork, {ID: 3, Status: muster.Pending, ClaimRole: "writer"},
			on(2, 1, 3)}, false},
		{"one that bob may take", []muster.Task{ready, on(2, 1)}, true},
		{"one that only it may take", []muster.Task{on(1), on(2, 1)}, false},
		{"a cycle", []muster.Task{on(2, 3), on(3, 2)}, false},
		{"one that is stuck, then one that is not", []muster.Task{atWork, {ID: 3, Status: muster.Pending,
			BlockedBy: []muster.TaskID{1}, ClaimRole: "writer"}, on(4, 3, 9), on(5, 3)}, true},
		{"nothing is blocked", []muster.Task{atWork, on(2)}, false},
		{"what is blocked is not for it", []muster.Task{atWork, {ID: 2, Status: muster.Pending, ClaimRole: "writer",
			BlockedBy: []muster.TaskID{1}}}, false},
		{"one with which bob rests", []muster.Task{{ID: 1, Status: muster.InProgress, Owner: "idle"}, on(2, 1)}, false},
		{"one that bob has claimed this moment", []muster.Task{{ID: 1, Status: muster.InProgress, Owner: "idle",
			ClaimedAt: muster.UnixTime(time.Now())}, on(2, 1)}, true},
		{"one that who rests with another takes", []muster.Task{{ID: 1, Status: muster.Pending, ClaimRole: "designer"},
			{ID: 4, Status: muster.InProgress, Owner: "idle"}, on(2, 1)}, false},
		{"what was blocked is claimed", []muster.Task{atWork, {ID: 2, Status: muster.InProgress, Owner: "bob",
			ClaimRole: "tester", BlockedBy: []muster.TaskID{1}}}, false},
	} {
		bob, tess := idleMember("bob", "coder"), idleMember("tess", "tester")
		bob.Status = muster.Working
		if got := canUnblock(c.tasks, []muster.Member{bob, tess, idleMember("idle", "designer")}, tess, nil); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// A claim counts as just made for ten seconds, to the moment, whichever clock is ahead.
func TestClaimGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bob := idleMember("bob", "coder")
		for ago, want := range map[time.Duration]bool{claimGrace - time.Millisecond: false, claimGrace: true,
			-claimGrace + time.Millisecond: false, -claimGrace: true} {
			task := muster.Task{ID: 1, ClaimedAt: muster.UnixTime(time.Now().Add(-ago))}
			if isIdleWith(&bob, task) != want {
				t.Errorf("claimed %v ago", ago)
			}
		}
	})
}
