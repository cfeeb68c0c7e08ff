package cli

import (
	"strings"
	"testing"

	"muster"
	"muster/internal/board"
	"muster/internal/durable"
	"muster/journal"
	"muster/store/file"
	"muster/team"
)

// A task that was on its way when the board was put aside is on the next one, under an id that no task had.
func TestATaskOnItsWayIsNotPutAside(t *testing.T) {
	w := newWorld(t, "task", "add", "one")
	w.run(t.Context(), 0)
	s, err := file.Open(w.dir) // that of a command that has looked, and found no note
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b := board.New(s, journal.New(s.Log()))
	if all, err := b.List(t.Context()); err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	p, err := w.app.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	files := durable.New(durable.OS{})
	on := shelf{Name: "here"}
	if err := p.shelveTasks(t.Context(), files, &on); err != nil {
		t.Fatal(err)
	}
	if on.Tasks != 1 || on.NextID != 2 {
		t.Errorf("put aside: %+v", on)
	}
	got, err := b.Create(t.Context(), board.Draft{Subject: "two", CreatedBy: muster.User})
	if err != nil || got.ID != 2 {
		t.Errorf("added as %d, %v", got.ID, err)
	}
	if all, err := p.theBoard().List(t.Context()); err != nil || len(all) != 1 || all[0].Subject != "two" {
		t.Errorf("on the board: %v, %v", all, err)
	}
}

// While a process brings the team to life, before it is a host, nothing is put aside; and the other way round.
func TestArchiveAndStartExcludeEachOther(t *testing.T) {
	w := newWorld(t, "task", "add", "one")
	w.run(t.Context(), 0)
	s, err := file.Open(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l, err := s.Leases().Acquire(t.Context(), team.LeadLease)
	if err != nil {
		t.Fatal(err)
	}
	w.app.Args = []string{"archive"}
	w.run(t.Context(), 1)
	if !strings.Contains(w.err.String(), "bringing the team to life") {
		t.Errorf("%s", w.err.String())
	}
	l.Release()
	w.run(t.Context(), 0)
}
