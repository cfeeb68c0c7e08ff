// Package demo makes the demo's repository (repo.txtar), a small real Go program that lacks most of what it should do,
// and the words of the team that completes it (script.yaml). All else in the demo is the real thing.
package demo

import (
	"context"
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/tools/txtar"

	"muster"
	"muster/internal/git"
)

//go:embed repo.txtar
var repo []byte

//go:embed script.yaml
var script []byte

// Rehearsal is what the demo's team is started with.
type Rehearsal struct {
	Goal, Check, Team string
	Teammates         int
	Script            string // the file with the model's words, outside of what git sees
}

// Make makes the repository in an empty directory.
func Make(ctx context.Context, dir string) (Rehearsal, error) {
	r := Rehearsal{Goal: "let tally report words, the longest line and the commonest word", Check: "go test ./...", Team: "demo",
		Teammates: 2, Script: filepath.Join(dir, ".git", "muster-demo.yaml")}
	if _, err := exec.LookPath("go"); err != nil {
		return r, muster.Errorf(muster.NotFound, "the demo's repository is a Go program, and there is no go command on this machine").
			WithHint("install Go, or run muster on a repository of yours: muster run \"GOAL\"")
	}
	for _, f := range txtar.Parse(repo).Files {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return r, err
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			return r, err
		}
	}
	if err := git.Init(ctx, dir, "Count lines"); err != nil {
		return r, muster.Errorf(muster.Unavailable, "the demo's repository cannot be made: %w", err).WithHint("muster doctor")
	}
	return r, os.WriteFile(r.Script, script, 0o600)
}
