package cli

import (
	"strings"
	"testing"

	"muster/internal/testing/require"
	"muster/internal/workspace"
	"muster/store/file"
)

// While a process brings the team to life, before it is a host, nothing is put aside; and the other way round.
func TestArchiveAndStartExcludeEachOther(t *testing.T) {
	w := newWorld(t, "task", "add", "one")
	w.run(t.Context(), 0)
	s := require.Value(file.Open(w.dir))(t)
	defer s.Close()
	l := require.Value(s.Leases().Acquire(t.Context(), workspace.LeadLease))(t)
	w.muster(1, "archive", "--yes")
	if !strings.Contains(w.err.String(), "starting the team") {
		t.Errorf("%s", w.err.String())
	}
	require.NoError(t, l.Release())
	w.run(t.Context(), 0)
}
