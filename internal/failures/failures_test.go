package failures_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster/internal/failures"
)

var update = flag.Bool("update", false, "write what is found into the .want files")

// Each file of testdata is what a program printed, with what is to be found in it beside it.
func TestFind(t *testing.T) {
	logs, err := filepath.Glob("testdata/*.log")
	if err != nil || len(logs) < 15 {
		t.Fatalf("only %d logs: %v", len(logs), err)
	}
	for _, log := range logs {
		data, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		var f failures.Finder
		for part := range slices.Chunk(data, 7) {
			_, _ = f.Write(part)
		}
		got := failures.Lines(f.Failures(), 10_000)
		name := strings.TrimSuffix(log, ".log") + ".want"
		if *update {
			if err := os.WriteFile(name, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(name); err != nil || got != string(want) {
			t.Errorf("%s: %v\n%s\nnot\n%s", log, err, got, want)
		}
	}
}

// Output of any kind is taken, and what is kept of it is bounded.
func TestAnyOutput(t *testing.T) {
	logs, _ := filepath.Glob("testdata/*.log")
	rapid.Check(t, func(t *rapid.T) {
		data, err := os.ReadFile(rapid.SampledFrom(logs).Draw(t, "log"))
		if err != nil {
			t.Fatal(err)
		}
		var f failures.Finder
		for range rapid.IntRange(1, 200).Draw(t, "parts") {
			at := rapid.IntRange(0, len(data)).Draw(t, "at")
			_, _ = f.Write(data[at:min(len(data), at+rapid.IntRange(0, 500).Draw(t, "size"))])
			_, _ = f.Write(rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(t, "noise"))
		}
		found := f.Failures()
		if text := failures.Lines(found, 1000); len(found) > 50 || len(text) > 1100 {
			t.Fatalf("%d failures in %d bytes", len(found), len(text))
		}
	})
	var f failures.Finder
	for range 1000 {
		_, _ = f.Write([]byte(strings.Repeat("--- FAIL: ", 1000)))
	}
	if found := f.Failures(); len(failures.Lines(found, 5000)) > 5000 {
		t.Error(found)
	}
}
