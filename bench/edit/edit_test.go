// Package edit measures how often an edit does what the model means when the call is slightly wrong. Each case in
// testdata is a call as models send it: those in recoverable have one meaning, and those in refuse have none or several.
//
//	go -C bench test -v ./edit
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
	"muster/internal/testing/require"
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

// noPrograms is an environment in which the tools find no program that checks the syntax of an edit.
var noPrograms = []string{"PATH="}

// place is a directory with the file.
type place struct{ dir string }

// Workdir returns the directory.
func (p place) Workdir(context.Context) (code.Workdir, error) {
	return code.Workdir{Dir: p.dir, Writable: true}, nil
}

// form is a way in which an edit is given.
type form string

// The forms, in the order of the table.
var forms = []form{"edit_file", "edit_file with edits", "apply_patch"}

// form returns the form of a case.
func (e example) form() form {
	if e.Tool != "" {
		return form(e.Tool)
	}
	var in struct{ Edits json.RawMessage }
	if json.Unmarshal(e.Input, &in) == nil && in.Edits != nil {
		return "edit_file with edits"
	}
	return "edit_file"
}

// counts are the results of a form.
type counts struct{ recoverable, right, unclear, refused, wrong int }

// least are how many cases of each form there must be at least.
var least = map[form]counts{"edit_file": {recoverable: 60, unclear: 40}, "edit_file with edits": {recoverable: 14, unclear: 9},
	"apply_patch": {recoverable: 35, unclear: 20}}

// TestEdits calls the tools with each case and counts what they did.
func TestEdits(t *testing.T) {
	launcher := require.Value(proc.New(t.Context()))(t)
	defer launcher.Close()
	all := map[form]*counts{}
	for _, f := range forms {
		all[f] = &counts{}
	}
	for name, e := range read(t, "testdata/recoverable") {
		n := all[e.form()]
		n.recoverable++
		switch got, said := run(t, launcher, e); {
		case got == e.Want:
			n.right++
		case got == e.File:
			t.Logf("%s is refused: %s", name, said)
		default:
			n.wrong++
			t.Errorf("%s gives %q, want %q", name, got, e.Want)
		}
	}
	for name, e := range read(t, "testdata/refuse") {
		n := all[e.form()]
		n.unclear++
		if got, _ := run(t, launcher, e); got == e.File {
			n.refused++
		} else {
			n.wrong++
			t.Errorf("%s is done: %q", name, got)
		}
	}
	t.Logf("| %-20s | recoverable | right | to refuse | refused | wrong |", "")
	for _, f := range forms {
		n := all[f]
		t.Logf("| %-20s | %11d | %4.0f%% | %9d | %7d | %5d |", f, n.recoverable,
			100*float64(n.right)/float64(n.recoverable), n.unclear, n.refused, n.wrong)
		if n.recoverable < least[f].recoverable || n.unclear < least[f].unclear {
			t.Errorf("%s has too few cases", f)
		}
		if float64(n.right) < minRight*float64(n.recoverable) {
			t.Errorf("%s: %d of %d recoverable edits are right, and at least %.0f%% must be", f, n.right, n.recoverable,
				100*minRight)
		}
	}
}

// read reads the cases of a directory.
func read(t *testing.T, dir string) map[string]example {
	t.Helper()
	files := require.Value(filepath.Glob(dir + "/*.json"))(t)
	all := map[string]example{}
	for _, path := range files {
		data := require.Value(os.ReadFile(path))(t)
		var e example
		if err := json.Unmarshal(data, &e); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all[strings.TrimSuffix(filepath.Base(path), ".json")] = e
	}
	return all
}

// run calls the tool of a case in a directory of its own. It returns what the file is then, and what the model reads.
func run(t *testing.T, launcher proc.Launcher, e example) (content, said string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, e.Path)
	require.NoError(t, os.WriteFile(path, []byte(e.File), 0o600))
	jobs := code.NewJobs(launcher)
	defer jobs.Close()
	name := "edit_file"
	if e.Tool != "" {
		name = e.Tool
	}
	for _, tl := range code.Tools(place{dir}, launcher, jobs, code.Options{Patches: true, Environ: noPrograms}) {
		if tl.Spec().Name != name {
			continue
		}
		r := require.Value(tl.Run(t.Context(), llm.Call{ID: "1", Name: name, Input: e.Input}, nil))(t)
		data := require.Value(os.ReadFile(path))(t)
		text, _ := r.Parts[0].(llm.Text)
		return string(data), text.Text
	}
	t.Fatalf("there is no tool %s", name)
	return "", ""
}
