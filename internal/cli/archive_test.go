package cli

import (
	"strings"
	"testing"

	"muster/internal/workspace"
	"muster/store/file"
)

// While a process brings the team to life, before it is a host, nothing is put aside; and the other way round.
func TestArchiveAndStartExcludeEachOther(t *testing.T) {
	w := newWorld(t, "task", "add", "one")
	w.run(t.Context(), 0)
	s, err := file.Open(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l, err := s.Leases().Acquire(t.Context(), workspace.LeadLease)
	if err != nil {
		t.Fatal(err)
	}
	w.app.Args = []string{"archive"}
	w.run(t.Context(), 1)
	if !strings.Contains(w.err.String(), "starting the team") {
		t.Errorf("%s", w.err.String())
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	w.run(t.Context(), 0)
}
