package main

import (
	"bytes"
	"os"
	"testing"

	"muster/internal/testing/require"
)

// The embedded file is what the program makes of the tables.
func TestModelsAreCurrent(t *testing.T) {
	want := require.Value(generate(".."))(t)
	got := require.Value(os.ReadFile("../models.json"))(t)
	if !bytes.Equal(got, want) {
		t.Error("llm/catalogue/models.json is not what its tables say: go generate ./llm/catalogue")
	}
}
