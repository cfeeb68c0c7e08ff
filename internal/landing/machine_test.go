package landing_test

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"muster"
	"muster/internal/board"
	"muster/internal/landing"
	"muster/internal/testing/tier"
)

// TestMachine has teams land work of all kinds in any order, while processes die, claims are taken back and the target
// is moved by others. After each step all that landings promise has to hold: see machine.look.
//
// It is slow, because its git is real. docs/reliability.md has the command for many draws.
func TestMachine(t *testing.T) {
	fewChecks(t, map[string]string{"rapid.checks": fmt.Sprint(tier.Amount(2, 10)), "rapid.steps": fmt.Sprint(tier.Amount(4, 8))})
	rapid.Check(t, func(r *rapid.T) {
		m := newMachine(t, r)
		r.Repeat(map[string]func(*rapid.T){
			"begin": func(*rapid.T) { m.beginSome() },
			"land":  func(*rapid.T) { m.landSome() },
			"again": func(*rapid.T) { m.landSome() },
			"undo":  func(*rapid.T) { m.undo() },
			"":      func(*rapid.T) { m.look() },
		})
		m.finish()
	})
}

// fewChecks sets those of rapid's flags that the command line does not set.
func fewChecks(t *testing.T, values map[string]string) {
	flag.Visit(func(f *flag.Flag) { delete(values, f.Name) })
	for name, value := range values {
		f := flag.Lookup(name)
		before := f.Value.String()
		t.Cleanup(func() { _ = f.Value.Set(before) })
		if err := f.Value.Set(value); err != nil {
			t.Fatal(err)
		}
	}
}

// beginSome puts tasks on the board, and has somebody claim all that nobody has, and do the work.
func (m *machine) beginSome() {
	for range rapid.IntRange(1, 4).Draw(m.r, "tasks") {
		t, err := m.life.board.Create(m.ctx, board.Draft{Subject: "work", CreatedBy: muster.Lead,
			Priority: rapid.IntRange(0, 1).Draw(m.r, "priority")})
		m.must(err)
		m.pieces[t.ID] = m.draw(t.ID)
	}
	m.claimAll()
}

// claimAll claims what nobody has.
func (m *machine) claimAll() {
	for _, t := range m.tasks() {
		p := m.pieces[t.ID]
		if t.Status != muster.Pending || p == nil {
			continue
		}
		m.owners++
		t, err := m.life.board.Claim(m.ctx, t.ID, board.Claim{Owner: muster.Name(m.name("owner", m.owners))})
		m.must(err)
		lane := m.lane(t, m.tip())
		m.write(lane, p.files)
		if p.kind == "shared" {
			m.addLine(lane, t.ID)
		}
	}
}

// landSome lands some of the tasks that are claimed, at the same time. Something may happen to one of them meanwhile.
func (m *machine) landSome() {
	claimed := m.claimed()
	if len(claimed) == 0 {
		m.beginSome()
		return
	}
	claimed = rapid.Permutation(claimed).Draw(m.r, "order")
	claimed = claimed[:rapid.IntRange(1, min(6, len(claimed))).Draw(m.r, "at once")]
	what := rapid.SampledFrom([]string{"", "", "kill", "kill", "revoke", "delete", "move", "rewind"}).Draw(m.r, "meanwhile")
	m.land(claimed, &event{what: what, victim: claimed[0], at: rapid.IntRange(1, 8*len(claimed)).Draw(m.r, "point")})
}

// land lands tasks at the same time, and does for each what its owner would do then.
func (m *machine) land(tasks []muster.Task, e *event) {
	verdicts, failed := make([]landing.Verdict, len(tasks)), make([]error, len(tasks))
	m.meanwhile(e, func(l *life) {
		var all sync.WaitGroup
		for i, t := range tasks {
			failed[i] = errKilled // a goroutine that is killed sets nothing
			all.Go(func() {
				verdicts[i], failed[i] = l.lander.LandWith(l.ctx, t.ID, t.Fence, "Does it.", t.Owner, landing.Owner{Review: m.reviewer(l)})
			})
		}
		all.Wait()
	})
	for i, t := range tasks {
		m.r.Logf("task %d (%s): %s %.60q %v", t.ID, m.pieces[t.ID].kind, verdicts[i].Task.Status, verdicts[i].Text, failed[i])
		if e.isKill() {
			m.cutOff[t.ID] = t.Fence
			continue
		}
		if _, isCutOff := m.cutOff[t.ID]; isCutOff && errors.Is(failed[i], muster.ErrInvalid) {
			// It had come back with a conflict when its process was killed, and its owner hears that now.
			m.resolve(m.workdir(t))
			continue
		}
		delete(m.cutOff, t.ID)
		m.judge(t, verdicts[i], failed[i], e)
	}
}

// judge looks at how a landing ended that nobody killed, and mends what came back.
func (m *machine) judge(t muster.Task, v landing.Verdict, err error, e *event) {
	p := m.pieces[t.ID]
	isVictim := e.victim.ID == t.ID && (e.what == "revoke" || e.what == "delete")
	switch {
	case isVictim && (errors.Is(err, muster.ErrFenced) || errors.Is(err, muster.ErrNotFound)):
		return
	case err != nil:
		m.r.Fatalf("task %d (%s): %v", t.ID, p.kind, err)
	case v.Task.Status == muster.Completed && v.Task.Landed != nil:
		m.accepted[t.ID] = v.Task.Landed.Commit
		return
	case v.Task.Status == muster.Completed:
		m.r.Fatalf("task %d (%s) is completed, and nothing of it has landed", t.ID, p.kind)
	}
	isRed := strings.HasPrefix(v.Text, "The check ") || strings.HasPrefix(v.Text, "Your work merged with ")
	isReturned := strings.HasPrefix(v.Text, "The reviewer returns your work")
	if (isRed || isReturned) && p.mend == nil {
		m.r.Fatalf("task %d (%s) came back, and it is innocent: %s", t.ID, p.kind, v.Text)
	}
	if v.Text == "" {
		m.r.Fatalf("task %d (%s) came back without a word: %+v", t.ID, p.kind, v.Task)
	}
	if v.Task.Status != muster.InProgress {
		return // set aside
	}
	lane := m.workdir(v.Task)
	m.resolve(lane)
	if isReturned || isRed {
		m.write(lane, p.mend)
	}
}

// undo takes back a task that has landed, as muster undo does.
func (m *machine) undo() {
	tasks := m.tasks()
	var landed []muster.Task
	for _, t := range tasks {
		if t.Landed != nil && undoneBy(tasks, t.ID) == 0 {
			landed = append(landed, t)
		}
	}
	if len(landed) == 0 {
		return
	}
	of := rapid.SampledFrom(landed).Draw(m.r, "undone")
	tip := m.tip()
	commit, err := landing.Revert(m.ctx, m.life.repo, tip, []string{of.Landed.Commit}, "Undo\n")
	_, isConflict := errors.AsType[*landing.RevertConflict](err)
	if isConflict || errors.Is(err, muster.ErrInvalid) {
		return
	}
	m.must(err)
	t, err := m.life.board.Create(m.ctx, board.Draft{Subject: "undo", CreatedBy: muster.User, Undoes: []muster.TaskID{of.ID}})
	m.must(err)
	lane := m.lane(t, tip)
	m.git(lane, "reset", "-q", "--hard", commit)
	m.pieces[t.ID] = &piece{kind: m.name("undo of", int(of.ID)), mend: map[string]string{}}
	t, err = m.life.board.Get(m.ctx, t.ID)
	m.must(err)
	m.land([]muster.Task{t}, &event{what: rapid.SampledFrom([]string{"", "kill"}).Draw(m.r, "meanwhile"),
		victim: t, at: rapid.IntRange(1, 12).Draw(m.r, "point")})
	if now, err := m.life.board.Get(m.ctx, t.ID); err == nil && now.Claimed() {
		// It came back, or the process was killed: the next one gives it up, unless it has landed.
		if err := m.life.lander.Revoke(m.ctx, t.ID, t.Fence); err == nil {
			m.must(m.life.board.Delete(m.ctx, t.ID, true))
		} else if !errors.Is(err, muster.ErrHeld) {
			m.r.Fatal(err)
		}
	}
	delete(m.cutOff, t.ID)
	delete(m.pieces, t.ID)
}

// finish lets all work come to its end.
func (m *machine) finish() {
	for range 14 { // more often nothing can come back
		m.claimAll()
		claimed := m.claimed()
		if len(claimed) == 0 {
			break
		}
		m.land(claimed, &event{})
		m.look()
	}
	for _, t := range m.tasks() {
		if t.Status != muster.Completed && t.Status != muster.NeedsAttention {
			m.r.Fatalf("task %d (%s) does not come to its end: %s", t.ID, m.pieces[t.ID].kind, t.Status)
		}
	}
	m.lookAtReceipts()
	if left := m.git(m.root, "for-each-ref", "refs/muster/landing"); left != "" {
		m.r.Fatalf("left over: %s", left)
	}
}
