package watch

import (
	"errors"
	"slices"
	"testing"

	"muster"
	"muster/internal/view"
	"muster/team"
)

// openAs is a screen of a team that is as change makes it.
func openAs(t *testing.T, change func(m *model)) *screen {
	t.Helper()
	s := open(t, 200, 30)
	s.m.canStart = true
	change(s.m)
	_, s.m.isLeft = s.m.o.Run.Left(s.m.o.Tasks) // as apply does
	return s
}

// Each key is offered, and does something, only while it makes sense.
func TestTheKeysOfAWholeTeam(t *testing.T) {
	stopped := func(m *model) { m.o.Alive = false }
	ended := func(m *model) { m.o.Alive, m.o.Run.EndedAt, m.o.Tasks = false, 4990, m.o.Tasks[:1] }
	nothing := func(m *model) {
		m.o.Alive, m.o.Run, m.o.Tasks, m.hasTeam, m.landed = false, muster.Run{}, nil, false, 0
	}
	for _, c := range []struct {
		name   string
		change func(*model)
		offers string
	}{
		{"at work", func(*model) {}, "ST"},
		{"at work, nothing landed", func(m *model) { m.apply(changedMsg{overview: withoutLanded()}) }, "S"},
		{"at work, all taken", func(m *model) { m.untaken = &team.Untaken{} }, "S"},
		{"at work, in a checkout without a branch", func(m *model) { m.untaken = nil }, "ST"},
		{"stopped", stopped, "RT"},
		{"stopped with open tasks after its end", func(m *model) { stopped(m); m.o.Run.EndedAt = 4990 }, "RT"},
		{"ended", ended, "NT"},
		{"no team yet", nothing, "N"},
		{"searching", func(m *model) { ended(m); m.detail.hits = newHits("a") }, "T"},
		{"cannot start", func(m *model) { stopped(m); m.canStart = false }, "T"},
		{"busy", func(m *model) { m.isBusy = true }, ""},
	} {
		s, offers := openAs(t, c.change), ""
		for _, b := range s.m.bindings() {
			isOne := slices.Contains([]string{"new run", "resume", "stop", "take"}, b.short)
			if isOne && b.when(s.m) {
				offers += b.keys
			}
		}
		if offers != c.offers {
			t.Errorf("%s: it offers %q and not %q", c.name, offers, c.offers)
		}
	}
}

// A stop and a merge ask once more, and any other key leaves all as it is.
func TestAStopAsksOnceMore(t *testing.T) {
	s := openAs(t, func(*model) {})
	s.keys("S")
	s.has("stop the team? y: yes")
	s.keys("n")
	s.has("nothing was done")
	s.keys("S", "esc", "T", "enter")
	s.did()
	s.keys("S", "y")
	s.has("the team has stopped; its state is kept, and R goes on")
	s.has("T take")
	s.keys("T")
	s.has("take 2 commits of muster/words to main? y: yes")
	s.keys("y")
	s.has("2 commits of muster/words came to main", "  1 tokenizer")
	s.did("halt", "merge")
	// There is nothing to take any more, until something else lands.
	s.hasNot("T take")
	s.team.untaken = 1
	s.send(changedMsg{overview: overview()})
	s.hasNot("T take")
	o := overview()
	o.Tasks[3].Landed = &muster.Landed{Commit: "bbbb"}
	s.send(changedMsg{overview: o})
	s.has("T take")
}

// withoutLanded is how the team stands before anything has landed.
func withoutLanded() view.Overview {
	o := overview()
	o.Tasks = o.Tasks[1:]
	return o
}

// What a command says where it fails is seen, and the keys are there again.
func TestATeamThatCannotStartSaysWhy(t *testing.T) {
	s := openAs(t, func(m *model) { m.o.Alive = false })
	s.team.err = errors.New("muster: no model is set\n        muster init")
	s.has("R resume")
	s.keys("R")
	s.has("muster: no model is set muster init", "R resume")
	s.did(`begin ""`)
}

// A goal with which no team could begin is offered again.
func TestAGoalIsKept(t *testing.T) {
	s := openAs(t, func(m *model) { m.o.Alive, m.o.Run = false, muster.Run{} })
	s.team.err = muster.Errorf(muster.Invalid, "no model is set")
	s.keys("N", "count the words", "enter")
	s.has("no model is set")
	s.team.err = nil
	s.keys("N")
	s.has("goal of a new run: count the words")
	s.keys("enter")
	s.did(`begin "count the words"`, `begin "count the words"`)
}

// A goal that is empty starts nothing.
func TestAGoalStartsATeam(t *testing.T) {
	s := openAs(t, func(m *model) { m.o.Alive, m.o.Run = false, muster.Run{} })
	s.has("N new run")
	s.keys("N", "enter", "N", "count the words", "esc")
	s.did()
	s.keys("N", "count the words", "enter")
	s.has("the team works in the background")
	s.did(`begin "count the words"`)
}
