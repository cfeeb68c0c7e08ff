// Package edit measures how often an edit does what the model means when the call is slightly wrong. Each case in
// testdata is a call as models send it: those in recoverable have one meaning, and those in refuse have none or several.
//
//	go test ./bench/edit -v
//
// prints the figures. The test fails if one file is changed in a wrong way, or if too many clear edits are refused.
package edit

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/internal/proc"
	"muster/internal/tool/code"
	"muster/llm"
)

// minRight is the share of the recoverable edits that must be done.
const minRight = 0.85

func TestMain(m *testing.M) {
	proc.GuardMain()
	os.Exit(m.Run())
}

// example is one case.
type example struct {
	Seen  string          `json:"seen"` // what is wrong with the call, and where it was seen
	Path  string          `json:"path"`
	File  string          `json:"file"`           // its content
	Tool  string          `json:"tool,omitempty"` // edit_file is the default
	Input json.RawMessage `json:"input"`
	Want  string          `json:"want"` // the content after the edit
}

// place is a directory with the file.
type place struct{ dir string }

// Workdir returns the directory.
func (p place) Workdir(context.Context) (code.Workdir, error) {
	return code.Workdir{Dir: p.dir, Writable: true}, nil
}

// TestEdits calls the tools with each case and counts what they did.
func TestEdits(t *testing.T) {
	right, refused, wrong := 0, 0, 0
	good := read(t, "testdata/recoverable")
	for name, e := range good {
		switch got, said := run(t, e); {
		case got == e.Want:
			right++
		case got == e.File:
			refused++
			t.Logf("%s is refused: %s", name, said)
		default:
			wrong++
			t.Errorf("%s gives %q, want %q", name, got, e.Want)
		}
	}
	bad := read(t, "testdata/refuse")
	for name, e := range bad {
		if got, _ := run(t, e); got != e.File {
			wrong++
			t.Errorf("%s is done: %q", name, got)
		}
	}
	share := float64(right) / float64(len(good))
	t.Logf("%d recoverable edits: %d right (%.0f%%), %d refused", len(good), right, 100*share, refused)
	t.Logf("%d edits to refuse; %d wrong in all", len(bad), wrong)
	if len(good) < 40 || len(bad) < 30 || share < minRight {
		t.Errorf("%.0f%% of the recoverable edits are right, and at least %.0f%% must be", 100*share, 100*minRight)
	}
}

// read reads the cases of a directory.
func read(t *testing.T, dir string) map[string]example {
	t.Helper()
	files, err := filepath.Glob(dir + "/*.json")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]example{}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var e example
		if err := json.Unmarshal(data, &e); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all[strings.TrimSuffix(filepath.Base(path), ".json")] = e
	}
	return all
}

// run calls the tool of a case in a directory of its own. It returns what the file is then, and what the model reads.
func run(t *testing.T, e example) (content, said string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, e.Path)
	if err := os.WriteFile(path, []byte(e.File), 0o600); err != nil {
		t.Fatal(err)
	}
	launcher, err := proc.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer launcher.Close()
	jobs := code.NewJobs(launcher)
	defer jobs.Close()
	name := "edit_file"
	if e.Tool != "" {
		name = e.Tool
	}
	for _, tl := range code.Tools(place{dir}, launcher, jobs, code.Options{}) {
		if tl.Spec().Name != name {
			continue
		}
		r, err := tl.Run(t.Context(), llm.Call{ID: "1", Name: name, Input: e.Input}, nil)
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := r.Parts[0].(llm.Text)
		return string(data), text.Text
	}
	t.Fatalf("there is no tool %s", name)
	return "", ""
}
