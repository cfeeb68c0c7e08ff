package launchers

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/internal/proc"
	"muster/internal/testing/require"
)

// A program that is missed and is only in the user's checkout is named with the way out, in one line at the end.
func TestProgramsOfTheCheckoutAreNamed(t *testing.T) {
	root, dir, system := t.TempDir(), t.TempDir(), t.TempDir()
	for _, path := range []string{
		root + "/.venv/bin/mytool", root + "/.venv/bin/python", root + "/.venv/bin/everywhere", root + "/active/bin/lint",
		root + "/node_modules/.bin/jest", root + "/vendor/bin/phpunit", root + "/.direnv/python-3.11/bin/ruff",
		root + "/node_modules/.bin/tracked", dir + "/node_modules/.bin/tracked", system + "/everywhere",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755))
	}
	require.NoError(t, os.WriteFile(root+"/.venv/bin/plain", nil, 0o644))
	p := Programs{Roots: []string{root}, Environ: []string{"PATH=" + root + "/active/bin:" + system}}
	for said, in := range map[string]string{
		"sh: 1: mytool: not found":                                          ".venv/bin",
		"bash: line 1: lint: command not found":                             "active/bin",
		"make: mytool: No such file or directory\nmake: *** Error 2":        ".venv/bin",
		"sh: 1: .venv/bin/mytool: not found":                                ".venv/bin",
		"FileNotFoundError: [Errno 2] No such file or directory: 'phpunit'": "vendor/bin",
		"> jest\nsh: jest: command not found":                               "node_modules/.bin",
		"env: 'ruff': No such file or directory":                            ".direnv/python-3.11/bin",
		"/usr/bin/python3: No module named pytest":                          ".venv/bin",
		"ok\nmytool is fine":                                                "",
		"sh: 1: nowhere: not found":                                         "",
		"sh: 1: everywhere: not found":                                      "",
		"sh: 1: tracked: not found":                                         "",
		"sh: 1: plain: not found":                                           "",
	} {
		line := p.Missing(said, dir)
		if in == "" && line != "" || in != "" && !strings.Contains(line, "in "+in+": --setup") {
			t.Errorf("of %q it is said: %q", said, line)
		}
	}

	launcher := require.Value(proc.New(t.Context()))(t)
	defer launcher.Close()
	run := func(script string) (out bytes.Buffer) {
		s := proc.Spec{Argv: proc.Shell(script), Dir: dir, Env: []string{"PATH=/usr/bin:/bin"}, Out: &out}
		started := require.Value(Explained(launcher, func(s proc.Spec, output string) string { return p.Missing(output, s.Dir) }).Start(t.Context(), s))(t)
		require.Value(started.Wait())(t)
		return out
	}
	if out := run("mytool"); !strings.Contains(out.String(), "not found\n[mytool is only in the user's checkout") ||
		!strings.HasPrefix(Line(out.String()), "mytool is only") {
		t.Errorf("the output is %q", out.String())
	}
	if out := run("echo mytool: not found"); Line(out.String()) != "" {
		t.Errorf("the output of a program that succeeds is %q", out.String())
	}
}
