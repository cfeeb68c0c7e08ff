package main

import (
	"bytes"
	"os"
	"testing"
)

// The embedded file is what the program makes of the tables.
func TestModelsAreCurrent(t *testing.T) {
	want, err := generate("..")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../models.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("llm/catalogue/models.json is not what its tables say: go generate ./llm/catalogue")
	}
}
