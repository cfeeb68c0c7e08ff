// Package demo makes the repository of muster demo: a small Go program that lacks most of what it should do
// (repo.txtar), and the words that the models of the demo's team say (script.yaml). Everything else in a demo is
// real: git, the tools, the tests and the landings. The package starts no team; the commands do.
package demo

import (
	"bytes"
	"context"
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"golang.org/x/tools/txtar"

	"muster"
	"muster/internal/check"
	"muster/internal/git"
)

//go:embed repo.txtar
var repo []byte

//go:embed script.yaml
var script []byte

// Demo is what the demo's team is started with.
type Demo struct {
	Goal, Check, Team string
	Teammates         int
	Script            string // the file with the model's words, outside of what git sees
}

// Make makes the repository in dir, which must be empty. cache is where muster keeps what it can make again; "" is
// nowhere. In a demo that isPlayed the lead leaves the decision about a plan to the user.
// The error is NotFound when the machine has no go command.
func Make(ctx context.Context, dir, cache string, isPlayed bool) (Demo, error) {
	d := Demo{Goal: "let tally report words, the longest and the commonest word", Check: "go test ./...",
		Team: "demo", Teammates: 3, Script: filepath.Join(dir, ".git", "muster-demo.yaml")}
	if _, err := exec.LookPath("go"); err != nil {
		return d, muster.Errorf(muster.NotFound,
			"the demo's repository is a Go program, and there is no go command on this machine").
			WithHint("install Go, or run muster on a repository of yours: muster run \"GOAL\"")
	}
	// CopyFS never overwrites a file, so nothing of the user's is lost where dir is not empty after all.
	files, err := txtar.FS(txtar.Parse(repo))
	if err != nil {
		return d, err
	}
	if err := os.CopyFS(dir, files); err != nil {
		return d, err
	}
	if err := initRepository(ctx, dir); err != nil {
		return d, muster.Errorf(muster.Unavailable, "the demo's repository cannot be made: %w", err).
			WithHint("muster doctor")
	}
	compile(ctx, dir, os.Environ())
	if cache != "" {
		compile(ctx, dir, append(os.Environ(), "GOCACHE="+check.GoCache(filepath.Join(cache, "checks"))))
	}
	words := script
	if isPlayed {
		before, rest, _ := bytes.Cut(script, []byte("  # the lead decides"))
		_, after, _ := bytes.Cut(rest, []byte("  # the lead has decided\n"))
		words = slices.Concat(before, after)
	}
	return d, os.WriteFile(d.Script, words, 0o600)
}

// initRepository makes a repository of the files in dir, with one commit on the branch main and nothing of the user's.
func initRepository(ctx context.Context, dir string) error {
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"add", "."},
		{"-c", "user.name=muster", "-c", "user.email=muster@localhost", "-c", "commit.gpgSign=false",
			"-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "Count lines"},
	} {
		if _, err := git.RunAsUser(ctx, dir, nil, args...); err != nil {
			return err
		}
	}
	return nil
}

// compile compiles the tests. The go command compiles the standard library once in each cache, for half a minute or
// more. A member that waits for that answers nobody, and the team's requests run out of time. What fails here, the
// demo's check tells.
func compile(ctx context.Context, dir string, env []string) {
	cmd := exec.CommandContext(ctx, "go", "test", "-C", dir, "-run", "^$", "./...")
	cmd.Env = env
	_ = cmd.Run()
}
