package teammate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"muster"
	"muster/internal/board"
	"muster/internal/worktree"
)

// The next owner of a task goes on in the lane that an earlier one left, and is told what it holds, where that can be
// read.
func TestTheNextOwnerInheritsTheLane(t *testing.T) {
	for _, c := range []struct {
		changed bool
		fails   error
		want    string
	}{{true, nil, "half a parser"}, {false, nil, ""}, {true, errDisk, ""}} {
		p, task := inherited(t)
		p.rows.changed, p.rows.fail["changed"] = c.changed, c.fails
		lane, had, err := p.claims.lanes.forTask(t.Context(), &task, nil)
		if err != nil || lane.Name != "old" || had != c.want || len(p.rows.rows) != 1 {
			t.Errorf("%+v: %+v, with %q: %v", c, lane, had, err)
		}
		if who := p.rows.occupant("old"); who != p.claims.lanes.occupant {
			t.Errorf("%+v: %+v works in it", c, who)
		}
	}
}

// An inherited lane that cannot be used is replaced by a fresh one from the target's tip, which the task names from then
// on. The old one is archived, unless somebody alive works in it.
func TestALaneThatCannotBeUsedIsReplaced(t *testing.T) {
	const gone = "it is gone"
	for name, spoil := range map[string]func(p *life){
		"it was made from another commit": func(p *life) {
			p.rows.put(muster.Lane{Name: "old", TaskID: 1, Base: "another"}, worktree.Occupant{})
		},
		"somebody works in it": func(p *life) {
			p.rows.put(muster.Lane{Name: "old", TaskID: 1, Base: "base"}, p.bobsOccupant())
		},
		gone: func(p *life) { delete(p.rows.rows, "old") },
	} {
		p, task := inherited(t)
		p.landings.target = "tip"
		spoil(p)
		lane, had, err := p.claims.lanes.forTask(t.Context(), &task, nil)
		if err != nil || lane.Name == "old" || had != "" {
			t.Errorf("%s: %+v, with %q: %v", name, lane, had, err)
		}
		if now := p.task(task.ID); now.Worktree != lane.Name || now.Base != "tip" || task.Worktree != lane.Name {
			t.Errorf("%s: the task names %s from %s, and is known with %s", name, now.Worktree, now.Base, task.Worktree)
		}
		if who := p.rows.occupant(lane.Name); who != p.claims.lanes.occupant {
			t.Errorf("%s: %+v works in the fresh one", name, who)
		}
		isArchived := slices.Equal(p.rows.archived, []muster.Name{"old"})
		if isArchived != strings.HasPrefix(name, "it was made") || strings.Contains(p.logged.String(), "error dropped") != (name == gone) {
			t.Errorf("%s: archived are %v; logged is %s", name, p.rows.archived, &p.logged)
		}
	}
	for _, isGone := range []bool{true, false} { // made again under its name, or archived when the task names another
		p, task := inherited(t)
		name, archived := muster.LaneName(task.ID, task.Subject), []muster.Name(nil)
		want := name
		if !isGone {
			p.rows.put(muster.Lane{Name: name, TaskID: 1, Base: "another"}, worktree.Occupant{})
			want, archived = name+"-2", []muster.Name{name}
		}
		task, err := p.config.Board.SetLane(t.Context(), task.ID, task.Fence, name, "base")
		p.must(err)
		p.rows.onMake = func(muster.Name) {
			if len(p.rows.archived) > 0 {
				t.Errorf("archived before the task names another: %v", p.rows.archived)
			}
		}
		lane, _, err := p.claims.lanes.forTask(t.Context(), &task, nil)
		if err != nil || lane.Name != want || !slices.Equal(p.rows.archived, archived) {
			t.Errorf("gone %v: %+v: %v; archived are %v", isGone, lane, err, p.rows.archived)
		}
	}
}

// Where a part fails no lane is made, nobody is told to work in one, and the error says why.
func TestNoLaneWithoutItsParts(t *testing.T) {
	for what, spoil := range map[string]func(p *life){
		"target": func(p *life) { p.landings.targetErr = errDisk },
		"create": func(p *life) { p.rows.fail["create"] = errDisk },
		"occupy": func(p *life) { p.rows.fail["occupy"] = errDisk },
		"enter":  func(p *life) { p.rows.fail["enter"] = errDisk },
	} {
		p := newParts(t, "alice")
		task := p.claimOnBoard("alice")
		spoil(p)
		_, _, err := p.claims.lanes.forTask(t.Context(), &task, nil)
		p.wants(what, err, errDisk)
		if now := p.task(task.ID); now.Worktree != "" || task.Worktree != "" {
			t.Errorf("%s: the task names %q", what, now.Worktree)
		}
		for name := range p.rows.rows {
			if who := p.rows.occupant(name); who != (worktree.Occupant{}) {
				t.Errorf("%s: %+v works in %s", what, who, name)
			}
		}
	}
	p, task := inherited(t)
	p.rows.fail["enter"] = errDisk
	if _, _, err := p.claims.lanes.forTask(t.Context(), &task, nil); !errors.Is(err, errDisk) || len(p.rows.archived) != 0 {
		t.Errorf("%v, and archived are %v", err, p.rows.archived)
	}
}

// A lane is made under the first of the task's names that is free. One that somebody made for the task, and that the
// task does not name, is archived first: its maker died, or lost the claim.
func TestTheNameOfAFreshLane(t *testing.T) {
	const first, second = "task-1-the-parser-of-all-the-wor", "task-1-the-parser-of-all-the-w-2"
	for _, c := range []struct {
		name     string
		there    muster.Lane
		isBobs   bool
		want     muster.Name
		archived bool
	}{
		{name: "of another task", there: muster.Lane{TaskID: 2}, want: second},
		{name: "unnamed, of this task", there: muster.Lane{TaskID: 1}, want: first, archived: true},
		{name: "unnamed, with a live member in it", there: muster.Lane{TaskID: 1}, isBobs: true, want: second},
		{name: "half made", there: muster.Lane{TaskID: 1, Status: muster.LaneCreating}, want: second},
	} {
		p := newParts(t, "alice")
		p.create(board.Draft{Subject: "the parser of all the words"})
		c.there.Name = first
		if p.rows.put(c.there, worktree.Occupant{}); c.isBobs {
			p.rows.put(c.there, p.bobsOccupant())
		}
		_, err := p.claims.Claim(t.Context(), 1)
		if got := p.task(1).Worktree; err != nil || got != c.want || len(got) > 32 {
			t.Errorf("%s: %q, want %q: %v", c.name, got, c.want, err)
		}
		if (len(p.rows.archived) == 1) != c.archived {
			t.Errorf("%s: archived are %v", c.name, p.rows.archived)
		}
	}
	for free, ok := range map[int]bool{100: true, 101: false} { // the search ends
		p := newParts(t, "alice")
		name := muster.LaneName(1, p.create(board.Draft{}).Subject)
		p.rows.put(muster.Lane{Name: name, TaskID: 2}, worktree.Occupant{})
		for n := 2; n < free; n++ {
			p.rows.put(muster.Lane{Name: name + muster.Name(fmt.Sprintf("-%d", n)), TaskID: 2}, worktree.Occupant{})
		}
		if _, err := p.claims.Claim(t.Context(), 1); (err == nil) != ok {
			t.Errorf("%d names are taken: %v", free-1, err)
		}
	}
}

// A member that starts archives the lanes of dead processes whose tasks have another lane or are deleted, and no other.
func TestAbandonedLanesAreArchived(t *testing.T) {
	for _, c := range []struct {
		name     string
		task     muster.TaskID
		who      worktree.Occupant // zero: one that is dead
		isBobs   bool
		kept     bool
		archived bool
	}{
		{name: "its task has another lane", task: 1, archived: true},
		{name: "its task is deleted", task: 7, archived: true},
		{name: "it is of no task"},
		{name: "somebody asked to keep it", task: 1, kept: true},
		{name: "nobody died in it", task: 1, who: worktree.Occupant{Member: "none"}},
		{name: "its occupant lives", task: 1, isBobs: true},
	} {
		p, _ := inherited(t) // task 1 is in the lane old
		who := worktree.Occupant{Member: "carl", Host: "host-9.1"}
		switch {
		case c.isBobs:
			who = p.bobsOccupant()
		case c.who.Member == "none":
			who = worktree.Occupant{}
		}
		p.rows.put(muster.Lane{Name: "left", TaskID: c.task}, who)
		if lane := p.rows.rows["left"]; c.kept {
			extra := muster.Extra{"keep": []byte("true")}
			maps.Copy(extra, lane.Extra)
			lane.Extra = extra
			p.rows.rows["left"] = lane
		}
		p.must(p.Member.open(t.Context()))
		if got := slices.Equal(p.rows.archived, []muster.Name{"left"}); got != c.archived || len(p.rows.archived) > 1 || p.logged.Len() > 0 {
			t.Errorf("%s: archived are %v; %s", c.name, p.rows.archived, &p.logged)
		}
	}
	failEach(t, func(p *life) { // a task that cannot be read now may name the lane
		p.create(board.Draft{})
		p.rows.put(muster.Lane{Name: "left", TaskID: 1}, worktree.Occupant{Member: "carl", Host: "host-9.1"})
	}, func(p *life) error {
		if p.claims.lanes.archiveAbandoned(p.Context()); len(p.rows.archived) == 0 {
			return errDisk
		}
		return nil
	})
}

// A member enters a lane only when nobody is in it, or when who was in it is dead.
func TestOneMemberInALane(t *testing.T) {
	for name, who := range map[string]func(p *life) worktree.Occupant{
		"nobody":  func(*life) worktree.Occupant { return worktree.Occupant{} },
		"herself": func(p *life) worktree.Occupant { return p.claims.lanes.occupant },
		"herself, in a life that has ended": func(*life) worktree.Occupant {
			return worktree.Occupant{Member: "alice", Host: "host-9.1"}
		},
		"somebody alive": (*life).bobsOccupant,
	} {
		p, _ := inherited(t)
		p.rows.put(muster.Lane{Name: "old", TaskID: 1, Base: "base"}, who(p))
		was := p.rows.occupant("old")
		err := p.claims.lanes.occupy(t.Context(), "old")
		now, isHeld := p.rows.occupant("old"), name == "somebody alive"
		if errors.Is(err, muster.ErrHeld) != isHeld || !isHeld && (err != nil || now != p.claims.lanes.occupant) || isHeld && now != was {
			t.Errorf("%s: %v, and %+v works there", name, err, now)
		}
	}
	p, _ := inherited(t)
	p.wants("no such lane", p.claims.lanes.occupy(t.Context(), "none"), muster.ErrNotFound)
	failEach(t, func(p *life) {
		p.rows.put(muster.Lane{Name: "old", TaskID: 1, Base: "base"}, worktree.Occupant{Member: "lead", Host: p.record("lead").Host})
	}, func(p *life) error {
		err := p.claims.lanes.occupy(p.Context(), "old")
		if errors.Is(err, muster.ErrHeld) && !strings.Contains(err.Error(), "test, pid") { // it lives, and only where is not known
			return errDisk
		}
		if errors.Is(err, muster.ErrHeld) {
			return nil
		}
		return err // whether bob's host lives is not known
	})
}
