package teammate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"muster"
	"muster/internal/board"
	"muster/internal/worktree"
)

var errDisk = muster.Errorf(muster.Unavailable, "the disk is gone")

// inherited is a member with a claimed task whose lane was made by an earlier owner, whose process is dead.
func inherited(t *testing.T) (*parts, muster.Task) {
	t.Helper()
	p := newParts(t, "alice")
	task, err := p.Board.Claim(t.Context(), p.create(board.Draft{}).ID, board.Claim{Owner: "alice", Role: "coder"})
	p.must(err)
	p.rows.put(muster.Lane{Name: "old", TaskID: task.ID, Base: "base"}, worktree.Occupant{Member: "carl", Host: "host-9.1"})
	task, err = p.Board.SetLane(t.Context(), task.ID, task.Fence, "old", "base")
	p.must(err)
	return p, task
}

// The next owner of a task goes on in the lane that an earlier one left, and is told what it holds.
func TestTheNextOwnerInheritsTheLane(t *testing.T) {
	for changed, want := range map[bool]string{true: "half a parser", false: ""} {
		p, task := inherited(t)
		p.rows.changed = changed
		lane, had, err := p.lanes.forTask(t.Context(), &task)
		if err != nil || lane.Name != "old" || had != want || len(p.rows.all) != 1 {
			t.Errorf("%+v, with %q: %v", lane, had, err)
		}
		if who := p.rows.occupant("old"); who != p.lanes.occupant() {
			t.Errorf("%+v works in it", who)
		}
	}
}

// What a lane holds is for the new owner to know only: that it cannot be read stops nobody.
func TestALaneWhoseChangesCannotBeReadIsInherited(t *testing.T) {
	p, task := inherited(t)
	p.rows.changed, p.rows.fail["changed"] = true, errDisk
	if lane, had, err := p.lanes.forTask(t.Context(), &task); err != nil || lane.Name != "old" || had != "" {
		t.Errorf("%+v, with %q: %v", lane, had, err)
	}
}

// An inherited lane that cannot be used is replaced by a fresh one from the target's tip, which the task names from then
// on. The old one is archived, unless somebody alive works in it.
func TestALaneThatCannotBeUsedIsReplaced(t *testing.T) {
	for _, c := range []struct {
		name     string
		spoil    func(p *parts)
		archived bool
	}{
		{"it was made from another commit", func(p *parts) {
			lane := p.rows.all["old"]
			lane.Base = "another"
			p.rows.all["old"] = lane
		}, true},
		{"somebody works in it", func(p *parts) {
			p.rows.put(muster.Lane{Name: "old", TaskID: 1, Base: "base"}, p.bobsOccupant())
		}, false},
		{"it is gone", func(p *parts) { delete(p.rows.all, "old") }, false},
	} {
		p, task := inherited(t)
		p.landings.target = "tip"
		c.spoil(p)
		lane, had, err := p.lanes.forTask(t.Context(), &task)
		if err != nil || lane.Name == "old" || had != "" {
			t.Errorf("%s: %+v, with %q: %v", c.name, lane, had, err)
		}
		if now := p.task(task.ID); now.Worktree != lane.Name || now.Base != "tip" || task.Worktree != lane.Name {
			t.Errorf("%s: the task names %s from %s, and is known with %s", c.name, now.Worktree, now.Base, task.Worktree)
		}
		if who := p.rows.occupant(lane.Name); who != p.lanes.occupant() {
			t.Errorf("%s: %+v works in the fresh one", c.name, who)
		}
		if archived := slices.Equal(p.rows.archived, []muster.Name{"old"}); archived != c.archived {
			t.Errorf("%s: archived are %v", c.name, p.rows.archived)
		}
		if strings.Contains(p.logged.String(), "error dropped") != (c.name == "it is gone") {
			t.Errorf("%s: logged is %s", c.name, &p.logged)
		}
	}
}

// A lane that is gone is made again under its name, and the task keeps it.
func TestALaneThatIsGoneIsMadeAgain(t *testing.T) {
	p, task := inherited(t)
	name := muster.LaneName(task.ID, task.Subject)
	task, err := p.Board.SetLane(t.Context(), task.ID, task.Fence, name, "base")
	p.must(err)
	lane, _, err := p.lanes.forTask(t.Context(), &task)
	if err != nil || lane.Name != name || p.rows.occupant(name) != p.lanes.occupant() || len(p.rows.archived) > 0 {
		t.Errorf("%+v: %v; archived are %v", lane, err, p.rows.archived)
	}
}

// A lane that cannot be entered is not used, and nobody is told to work in it.
func TestALaneThatCannotBeEnteredIsLeft(t *testing.T) {
	p := newParts(t, "alice")
	p.rows.fail["enter"] = errDisk
	task := p.create(board.Draft{})
	_, err := p.claims.Claim(t.Context(), task.ID)
	if err == nil || p.current().ID != 0 {
		t.Errorf("she has task %d: %v", p.current().ID, err)
	}
	if now := p.task(task.ID); now.Worktree != "" || now.Owner != "" {
		t.Errorf("the task is %q's, in %q", now.Owner, now.Worktree)
	}
	for _, name := range p.rows.names() {
		if who := p.rows.occupant(name); who != (worktree.Occupant{}) {
			t.Errorf("%+v works in %s", who, name)
		}
	}
	p, task = inherited(t)
	p.rows.fail["enter"] = errDisk
	if _, _, err := p.lanes.forTask(t.Context(), &task); !errors.Is(err, errDisk) || len(p.rows.archived) != 0 {
		t.Errorf("%v, and archived are %v", err, p.rows.archived)
	}
}

// A lane is made under the first of the task's names that is free. One that somebody made for the task, and that the
// task does not name, is archived first: its maker died, or lost the claim.
func TestTheNameOfAFreshLane(t *testing.T) {
	const first = "task-1-the-parser-of-all-the-wor"
	of := func(task muster.TaskID, status muster.LaneStatus) muster.Lane {
		return muster.Lane{TaskID: task, Status: status}
	}
	for _, c := range []struct {
		name     string
		there    muster.Lane
		who      func(p *parts) worktree.Occupant
		want     muster.Name
		archived bool
	}{
		{name: "of another task", there: of(2, muster.LaneActive), want: "task-1-the-parser-of-all-the-w-2"},
		{name: "unnamed, of this task", there: of(1, muster.LaneActive), want: first, archived: true},
		{name: "unnamed, with a live member in it", there: of(1, muster.LaneActive), who: (*parts).bobsOccupant,
			want: "task-1-the-parser-of-all-the-w-2"},
		{name: "half made", there: of(1, muster.LaneCreating), want: "task-1-the-parser-of-all-the-w-2"},
	} {
		p := newParts(t, "alice")
		p.create(board.Draft{Subject: "the parser of all the words"})
		c.there.Name = first
		status := c.there.Status
		p.rows.put(c.there, worktree.Occupant{})
		if c.who != nil {
			p.rows.put(c.there, c.who(p))
		}
		lane := p.rows.all[first]
		lane.Status = status
		p.rows.all[first] = lane
		_, err := p.claims.Claim(t.Context(), 1)
		if got := p.task(1).Worktree; err != nil || got != c.want || len(got) > 32 {
			t.Errorf("%s: %q, want %q: %v", c.name, got, c.want, err)
		}
		if (len(p.rows.archived) == 1) != c.archived {
			t.Errorf("%s: archived are %v", c.name, p.rows.archived)
		}
	}
}

// Of very many names one is free, and when none is the task cannot start.
func TestTheSearchForALaneNameEnds(t *testing.T) {
	for free, ok := range map[int]bool{100: true, 101: false} {
		p := newParts(t, "alice")
		p.create(board.Draft{})
		for n := 1; n < free; n++ {
			name := muster.LaneName(1, "the parser")
			if n > 1 {
				name += muster.Name(fmt.Sprintf("-%d", n))
			}
			p.rows.put(muster.Lane{Name: name, TaskID: 2}, worktree.Occupant{})
		}
		if _, err := p.claims.Claim(t.Context(), 1); (err == nil) != ok {
			t.Errorf("%d names are taken: %v", free-1, err)
		}
	}
}

// The lane that a task names is never taken for one that nobody needs, even when it cannot be inherited.
func TestTheLaneOfATaskIsNotArchivedForItsName(t *testing.T) {
	p, task := inherited(t)
	name := muster.LaneName(1, "the parser")
	p.rows.put(muster.Lane{Name: name, TaskID: 1, Base: "another"}, worktree.Occupant{})
	task, err := p.Board.SetLane(t.Context(), 1, task.Fence, name, "base")
	p.must(err)
	p.rows.onMake = func(muster.Name) {
		if len(p.rows.archived) > 0 {
			t.Errorf("archived before the task names another: %v", p.rows.archived)
		}
	}
	if lane, _, err := p.lanes.forTask(t.Context(), &task); err != nil || lane.Name != name+"-2" {
		t.Errorf("%s: %v", lane.Name, err)
	}
	if !slices.Equal(p.rows.archived, []muster.Name{name}) {
		t.Errorf("archived are %v", p.rows.archived)
	}
}

// Without the target, or without the lanes' index, no lane is made, and the error says why.
func TestNoLaneWithoutItsParts(t *testing.T) {
	for what, spoil := range map[string]func(p *parts){
		"target": func(p *parts) { p.landings.targetErr = errDisk },
		"create": func(p *parts) { p.rows.fail["create"] = errDisk },
		"occupy": func(p *parts) { p.rows.fail["occupy"] = errDisk },
		"enter":  func(p *parts) { p.rows.fail["enter"] = errDisk },
	} {
		p := newParts(t, "alice")
		task, err := p.Board.Claim(t.Context(), p.create(board.Draft{}).ID, board.Claim{Owner: "alice", Role: "coder"})
		p.must(err)
		spoil(p)
		_, _, err = p.lanes.forTask(t.Context(), &task)
		p.wants(what, err, errDisk)
		if now := p.task(task.ID); now.Worktree != "" || task.Worktree != "" {
			t.Errorf("%s: the task names %q", what, now.Worktree)
		}
	}
}

// A member that starts archives the lanes of dead processes whose tasks have another lane or are deleted, and no other.
func TestAbandonedLanesAreArchived(t *testing.T) {
	dead := worktree.Occupant{Member: "carl", Host: "host-9.1"}
	for _, c := range []struct {
		name     string
		lane     muster.Lane
		who      func(p *parts) worktree.Occupant
		kept     bool
		archived bool
	}{
		{name: "its task has another lane", lane: muster.Lane{TaskID: 1}, archived: true},
		{name: "its task is deleted", lane: muster.Lane{TaskID: 7}, archived: true},
		{name: "it is of no task", lane: muster.Lane{}},
		{name: "somebody asked to keep it", lane: muster.Lane{TaskID: 1}, kept: true},
		{name: "nobody died in it", lane: muster.Lane{TaskID: 1},
			who: func(*parts) worktree.Occupant { return worktree.Occupant{} }},
		{name: "its occupant lives", lane: muster.Lane{TaskID: 1}, who: (*parts).bobsOccupant},
	} {
		p, _ := inherited(t) // task 1 is in the lane old
		c.lane.Name = "left"
		who := dead
		if c.who != nil {
			who = c.who(p)
		}
		p.rows.put(c.lane, who)
		if c.kept {
			p.rows.keep("left")
		}
		p.lanes.archiveAbandoned(t.Context())
		if got := len(p.rows.archived) == 1 && p.rows.archived[0] == "left"; got != c.archived ||
			len(p.rows.archived) > 1 || p.logged.Len() > 0 {
			t.Errorf("%s: archived are %v; %s", c.name, p.rows.archived, &p.logged)
		}
	}
}

// A task that cannot be read now may name the lane: it is left alone.
func TestALaneOfAnUnreadableTaskIsKept(t *testing.T) {
	failEach(t, func(p *parts) {
		p.create(board.Draft{})
		p.rows.put(muster.Lane{Name: "left", TaskID: 1}, worktree.Occupant{Member: "carl", Host: "host-9.1"})
	}, func(ctx context.Context, p *parts) error {
		p.lanes.archiveAbandoned(ctx)
		if len(p.rows.archived) == 0 {
			return errDisk
		}
		return nil
	})
}

// What could not be archived or left is logged, and tried again by whoever starts next.
func TestWhatFailsWithALaneIsLogged(t *testing.T) {
	for _, c := range []struct {
		what string
		act  func(p *parts)
		said string
	}{
		{"list", func(p *parts) { p.lanes.archiveAbandoned(t.Context()) }, "listing the lanes"},
		{"archive", func(p *parts) { p.lanes.archive(t.Context(), "old") }, "archiving the lane old"},
		{"occupy", func(p *parts) { p.must(p.lanes.occupy(t.Context(), "old")) }, ""},
		{"occupy", func(p *parts) { p.lanes.leave(t.Context(), "old") }, "leaving the lane old"},
		{"none", func(p *parts) { p.lanes.leave(t.Context(), "none") }, ""},
		{"none", func(p *parts) { p.lanes.leave(t.Context(), "") }, ""},
	} {
		p, _ := inherited(t)
		p.must(p.lanes.occupy(t.Context(), "old"))
		p.rows.fail[c.what] = errDisk
		if c.act(p); !strings.Contains(p.logged.String(), c.said) || (p.logged.Len() > 0) != (c.said != "") {
			t.Errorf("%s: %q", c.what, &p.logged)
		}
	}
}

// A member enters a lane only when nobody is in it, or when who was in it is dead.
func TestOneMemberInALane(t *testing.T) {
	for _, c := range []struct {
		name string
		who  func(p *parts) worktree.Occupant
		want error
	}{
		{"nobody", func(*parts) worktree.Occupant { return worktree.Occupant{} }, nil},
		{"herself", func(p *parts) worktree.Occupant { return p.lanes.occupant() }, nil},
		{"herself, in a life that has ended", func(*parts) worktree.Occupant {
			return worktree.Occupant{Member: "alice", Host: "host-9.1"}
		}, nil},
		{"somebody alive", (*parts).bobsOccupant, muster.ErrHeld},
	} {
		p, _ := inherited(t)
		p.rows.put(muster.Lane{Name: "old", TaskID: 1, Base: "base"}, c.who(p))
		was := p.rows.occupant("old")
		err := p.lanes.occupy(t.Context(), "old")
		if now := p.rows.occupant("old"); c.want != nil && (!errors.Is(err, c.want) || now != was) ||
			c.want == nil && (err != nil || now != p.lanes.occupant()) {
			t.Errorf("%s: %v, and %+v works there", c.name, err, now)
		}
	}
	p, _ := inherited(t)
	p.wants("no such lane", p.lanes.occupy(t.Context(), "none"), muster.ErrNotFound)
	failEach(t, func(p *parts) {
		p.rows.put(muster.Lane{Name: "old", TaskID: 1, Base: "base"}, p.bobsOccupant())
	}, func(ctx context.Context, p *parts) error {
		err := p.lanes.occupy(ctx, "old")
		switch {
		case !errors.Is(err, muster.ErrHeld): // whether bob's host lives is not known
			return err
		case !strings.Contains(err.Error(), "test, pid"): // it lives, and only where is not known
			return errDisk
		}
		return nil
	})
}
