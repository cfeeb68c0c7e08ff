package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// pkg is a package as go list describes it.
type pkg struct {
	Dir, ImportPath           string
	GoFiles                   []string
	TestImports, XTestImports []string
}

// outcome is what the tests said of a mutant.
type outcome int

const (
	survived outcome = iota // they pass
	killed                  // they fail, or do not end
	broken                  // the mutant does not compile
)

const (
	leastTimeout = 20 * time.Second
	buildTime    = 5 * time.Minute // for the compiler, beside the time limit of the tests
)

// list returns the packages that the patterns name. Their directories are relative to the current one, if that is
// possible.
func list(ctx context.Context, tags string, patterns []string) ([]pkg, error) {
	args := append([]string{"list", "-json=Dir,ImportPath,GoFiles,TestImports,XTestImports", "-tags=" + tags, "--"},
		patterns...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	at, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	var all []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p pkg
		if err := d.Decode(&p); err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if short, err := filepath.Rel(at, p.Dir); err == nil {
			p.Dir = short
		}
		all = append(all, p)
	}
	return all, nil
}

// baseline runs the tests on the source as it is, which must pass, and returns the time limit for a mutant.
func (p pkg) baseline(ctx context.Context, o options) (time.Duration, error) {
	started := time.Now()
	out, err := p.goTest(ctx, o, p.ImportPath, "-count=1")
	for _, other := range o.also {
		if err == nil {
			out, err = p.goTest(ctx, o, other, "-count=1")
		}
	}
	if err != nil {
		return 0, fmt.Errorf("the tests of %s fail without any mutant: %w\n%s", p.ImportPath, err, out)
	}
	if strings.Contains(out, "[no test files]") {
		return 0, fmt.Errorf("%s has no tests", p.ImportPath)
	}
	if o.timeout > 0 {
		return o.timeout, nil
	}
	return max(leastTimeout, 4*time.Since(started)), nil
}

// test runs the package's tests with the mutant in place of its file, and those of the packages that also count while
// they pass.
func (p pkg) test(ctx context.Context, o options, m mutant, limit time.Duration) (outcome, error) {
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return broken, err
	}
	defer os.RemoveAll(dir)
	source, overlay := filepath.Join(dir, "mutant.go"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{m.path: source}})
	if err != nil {
		return broken, err
	}
	if err := errors.Join(os.WriteFile(source, m.source, 0o600), os.WriteFile(overlay, replace, 0o600)); err != nil {
		return broken, err
	}
	limited, cancel := context.WithTimeout(ctx, limit+buildTime)
	defer cancel()
	flags := []string{"-failfast", "-timeout=" + limit.String(), "-overlay=" + overlay}
	out, err := p.goTest(limited, o, p.ImportPath, flags...)
	for _, other := range o.also {
		if err == nil {
			out, err = p.goTest(limited, o, other, flags...)
		}
	}
	exit := new(exec.ExitError)
	switch {
	case ctx.Err() != nil:
		return broken, ctx.Err()
	case err == nil:
		return survived, nil
	case strings.Contains(out, "[build failed]"), strings.Contains(out, "[setup failed]"):
		return broken, nil
	case errors.As(err, &exit), limited.Err() != nil:
		return killed, nil
	}
	return broken, fmt.Errorf("go test: %w", err)
}

// goTest runs go test on the package, or on another one. The tests get a directory for temporary files of their own,
// which is removed with all that a killed test has left there.
func (p pkg) goTest(ctx context.Context, o options, tested string, args ...string) (string, error) {
	tmp, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	args = append([]string{"test", "-vet=off", "-tags=" + o.tags}, append(args, tested)...)
	imports := slices.Concat(p.TestImports, p.XTestImports)
	if tested == p.ImportPath && slices.Contains(imports, "pgregory.net/rapid") {
		args = append(args, "-rapid.nofailfile") // it would write into the tree, and the next test would read it
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	cmd.WaitDelay = time.Second // a process that the tests left behind may hold the output open
	out, err := cmd.CombinedOutput()
	return string(out), err
}
