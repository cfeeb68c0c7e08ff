package chat

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"muster/internal/paths"
	"muster/internal/testing/require"
)

// What was typed is read again in its order, without lines that cannot be read, and only the last of it.
func TestTypedLinesAreKept(t *testing.T) {
	dir := paths.Dir(t.TempDir())
	for _, d := range []string{dir.Team(), dir.Locks()} {
		require.NoError(t, os.MkdirAll(d, 0o700))
	}
	h := OpenHistory(dir)
	if got := h.Lines(); len(got) > 0 {
		t.Errorf("before anything was typed: %q", got)
	}
	h.Add(t.Context(), "one\nmore")
	data, err := os.ReadFile(h.path)
	if err == nil {
		err = os.WriteFile(h.path, append(data, "no json\n\"\"\n"...), 0o600)
	}
	require.NoError(t, err)
	h.Add(t.Context(), "two")
	if got := OpenHistory(dir).Lines(); !slices.Equal(got, []string{"one\nmore", "two"}) {
		t.Errorf("%q", got)
	}
	for i := range maxHistoryLines {
		h.Add(t.Context(), fmt.Sprint(i))
	}
	if got := h.Lines(); len(got) != maxHistoryLines || got[0] != "0" {
		t.Errorf("%d lines, the first %q", len(got), got[0])
	}
}
