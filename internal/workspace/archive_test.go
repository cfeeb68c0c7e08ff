package workspace

import (
	"testing"

	"muster"
	"muster/internal/board"
	"muster/internal/durable"
	"muster/internal/testing/require"
	"muster/journal"
	"muster/store/file"
)

// A task that is added while the board is being archived lands on the next board, under an id that no task had.
func TestATaskOnItsWayIsNotArchived(t *testing.T) {
	dir := t.TempDir()
	open := func() *file.Store {
		s := require.Value(file.Open(dir))(t)
		t.Cleanup(func() { s.Close() })
		return s
	}
	s, archived := open(), open()
	b := board.New(s, journal.New(s.Log())) // of a command that has looked, and found no note
	require.Value(b.Create(t.Context(), board.Draft{Subject: "one", CreatedBy: muster.User}))(t)
	if all, err := b.List(t.Context()); err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	w := require.Value(OpenRoot(dir, Options{Store: archived}))(t)
	a := &archiver{ArchivedTeam: ArchivedTeam{Name: "here"}, w: w, files: durable.New(durable.OS{})}
	require.NoError(t, a.moveTasks(t.Context()))
	if a.Tasks != 1 || a.NextID != 2 {
		t.Errorf("archived: %+v", a.ArchivedTeam)
	}
	got, err := b.Create(t.Context(), board.Draft{Subject: "two", CreatedBy: muster.User})
	if err != nil || got.ID != 2 {
		t.Errorf("added as %d, %v", got.ID, err)
	}
	if all, err := w.Board().List(t.Context()); err != nil || len(all) != 1 || all[0].Subject != "two" {
		t.Errorf("on the board: %v, %v", all, err)
	}
}
