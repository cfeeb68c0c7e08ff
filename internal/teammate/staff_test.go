package teammate

import (
	"fmt"
	"testing"

	"muster"
)

// Each ready task wants a teammate; more than that, or than there is room for, are not spawned.
func TestStaffing(t *testing.T) {
	task := func(id int, role string, more ...func(*muster.Task)) muster.Task {
		x := muster.Task{ID: muster.TaskID(id), Status: muster.Pending, ClaimRole: role}
		for _, f := range more {
			f(&x)
		}
		return x
	}
	of := func(name muster.Name) func(*muster.Task) {
		return func(x *muster.Task) { x.Owner, x.Status = name, muster.InProgress }
	}
	high := func(x *muster.Task) { x.Priority = 5 }
	waits := func(x *muster.Task) { x.BlockedBy = []muster.TaskID{99} }
	member := func(name muster.Name, role string, status muster.MemberStatus) muster.Member {
		return muster.Member{Name: name, Role: role, Status: status}
	}
	lead := member(muster.Lead, "lead", muster.Idle)
	for _, c := range []struct {
		name    string
		most    int
		tasks   []muster.Task
		members []muster.Member
		want    string
	}{
		{"nothing is ready", 4, []muster.Task{task(1, "", waits)}, nil, "[] [] false"},
		{"as many as are ready", 4, []muster.Task{task(1, ""), task(2, "writer")}, nil, "[coder writer] [] false"},
		{"as many as there is room for", 2, []muster.Task{task(1, ""), task(2, ""), task(3, "")}, nil,
			"[coder coder] [] true"},
		{"the highest first", 1, []muster.Task{task(1, ""), task(2, "writer", high)}, nil, "[writer] [] true"},
		{"the lead does not count", 1, []muster.Task{task(1, "")}, []muster.Member{lead}, "[coder] [] true"},
		{"one that is free takes it", 4, []muster.Task{task(1, "")},
			[]muster.Member{member("a", "writer", muster.Idle)}, "[] [] false"},
		{"one that was just spawned takes it", 4, []muster.Task{task(1, "")},
			[]muster.Member{member("a", "coder", muster.Working)}, "[] [] false"},
		{"one that has left does not", 4, []muster.Task{task(1, "")},
			[]muster.Member{member("a", "coder", muster.Shutdown)}, "[coder] [] false"},
		{"one with a task does not", 4, []muster.Task{task(1, "", of("a")), task(2, "")},
			[]muster.Member{member("a", "coder", muster.Working)}, "[coder] [] false"},
		{"tasks of a role choose first", 4, []muster.Task{task(1, ""), task(2, "writer")},
			[]muster.Member{member("a", "writer", muster.Idle)}, "[coder] [] false"},
		{"who is in the way leaves", 1, []muster.Task{task(1, "writer")},
			[]muster.Member{member("a", "coder", muster.Idle)}, "[] [a] true"},
		{"who works does not", 1, []muster.Task{task(1, "writer")},
			[]muster.Member{member("a", "coder", muster.Working)}, "[] [] true"},
		{"who is wanted does not", 1, []muster.Task{task(1, "writer"), task(2, "")},
			[]muster.Member{member("a", "coder", muster.Idle)}, "[] [] true"},
		{"nobody leaves for a role that somebody has", 2, []muster.Task{task(1, "writer", of("b")), task(2, "writer")},
			[]muster.Member{member("a", "coder", muster.Idle), member("b", "writer", muster.Working)}, "[] [] true"},
	} {
		s := newStaffing(c.most, c.tasks, c.members, nil)
		if got := fmt.Sprint(s.spawn, s.leave, s.isFull); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	// A role that takes only its own tasks is no help with a task of none.
	reads := func(t muster.Task, role string) bool { return t.ClaimRole != "" && t.RoleMay(role) }
	if s := newStaffing(4, []muster.Task{task(1, ""), task(2, "reviewer")}, nil, reads); fmt.Sprint(s.spawn) != "[reviewer]" {
		t.Errorf("spawned: %v", s.spawn)
	}
}
