package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/internal/config"
)

const twoChecks = `checks:
  - name: test
    command: go test ./... && true
    timeout: 90s
  - name: web
    command: |
      cd web
      npm test
    paths: [web/**, "*.json"]
    advisory: true
`

// write writes a file.
func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// trustAll trusts whatever a repository sets.
func trustAll(string, string) (bool, error) { return true, nil }

// Checks are read, and their text can be read back.
func TestChecks(t *testing.T) {
	root := t.TempDir()
	write(t, root, config.File, twoChecks)
	s, values, err := config.Load(config.Options{Root: root, UserDir: t.TempDir(), Trusts: trustAll})
	if err != nil || len(s.Checks) != 2 || s.Check != "" || s.CheckText() != "test" {
		t.Fatalf("%+v, %v", s.Checks, err)
	}
	if c := s.Checks[1]; c.Command != "cd web\nnpm test" || len(c.Paths) != 2 || !c.Advisory || s.Checks[0].Timeout != 90 {
		t.Errorf("%+v", s.Checks)
	}
	for _, v := range values {
		if v.Name != "checks" {
			continue
		}
		again, err := config.ParseChecks(v.Value)
		if err != nil || again.String() != s.Checks.String() || !strings.Contains(v.Value, "./... && true") {
			t.Errorf("%s: %v, %v", v.Value, again, err)
		}
	}
}

// Who does not trust the file has no checks, and no run begins.
func TestChecksNeedTrust(t *testing.T) {
	root := t.TempDir()
	write(t, root, config.File, twoChecks)
	for _, c := range []struct {
		env        []string
		overridden bool
	}{{nil, false}, {[]string{"MUSTER_CHECK=true"}, true}, {[]string{`MUSTER_CHECKS=[{"name":"a","command":"true"}]`}, true}} {
		s, values, err := config.Load(config.Options{Root: root, UserDir: t.TempDir(), Environ: c.env})
		if err != nil || strings.Contains(s.Checks.String(), "web") {
			t.Fatalf("%+v, %v", s.Checks, err)
		}
		for _, v := range values {
			if v.Name == "checks" && (v.Withheld == nil || !v.Withheld.StopsRuns || v.Withheld.IsOverridden != c.overridden ||
				!strings.Contains(v.Withheld.Value, "npm test")) {
				t.Errorf("%+v", v.Withheld)
			}
		}
	}
}

// A mistake is reported with its line, and with what to do.
func TestWrongChecks(t *testing.T) {
	for text, says := range map[string]string{
		"checks: go test\n":         "muster.yaml:1:9: checks is a list",
		"checks:\n  - go test\n":    "muster.yaml:2:5: a check has a name: and a command:",
		"checks:\n  - command: a\n": "muster.yaml:2:5: a check needs a name",
		"checks:\n  - name: a, b\n": "letters, digits",
		"checks:\n  - name: a\n":    "muster.yaml:2:5: the check a has no command",
		"checks:\n  - {name: a, command: x}\n  - {name: A, command: y}\n": "muster.yaml:3:6: there are two checks with the name A",
		"checks:\n  - {name: a, command: x, path: y}\n":                   "muster.yaml:2:",
		"checks:\n  - {name: a, command: x, timeout: 5}\n":                "a duration with its unit",
		"checks:\n  - {name: a, command: x, timeout: -5s}\n":              "a duration with its unit",
		"checks:\n  - {name: a, command: x, paths: [\"[\"]}\n":            "patterns from the root",
		"checks:\n  - {name: a, command: x, paths: [/etc]}\n":             "patterns from the root",
		"checks:\n  - {name: a, command: x, paths: [../x]}\n":             "patterns from the root",
		"checks:\n  - {name: a, command: x, advisory: true}\n":            "all checks are advisory",
		"check: a\nchecks:\n  - {name: a, command: x}\n":                  "muster.yaml:2:1: check and checks exclude each other",
		"checks:\n  - {name: a, command: x}\ncheck: a\n":                  "muster.yaml:3:1: check and checks exclude each other",
		"checks:\n  - &a {name: a, command: x}\n  - *a\n":                 "anchors and aliases",
		"checks:\n  - {name: a, command: x, advisory: perhaps}\n":         "muster.yaml:2:",
	} {
		root := t.TempDir()
		write(t, root, config.File, text)
		_, _, err := config.Load(config.Options{Root: root, UserDir: t.TempDir(), Trusts: trustAll})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}

// The stronger of check and checks holds.
func TestCheckOrChecks(t *testing.T) {
	root, user := t.TempDir(), t.TempDir()
	write(t, user+"/muster", "config.yaml", "check: mine\n")
	for _, c := range []struct {
		file, flag, env string
		want            string
	}{
		{"", "", "", "mine"},
		{twoChecks, "", "", "test"},
		{twoChecks, "flag", "", "flag"},
		{twoChecks, "", "MUSTER_CHECK=env", "env"},
		{"check: theirs\n", "", `MUSTER_CHECKS=[{"name":"env","command":"true"}]`, "env"},
		{twoChecks, "flag", `MUSTER_CHECKS=[{"name":"env","command":"true"}]`, "flag"},
	} {
		write(t, root, config.File, c.file)
		o := config.Options{Root: root, UserDir: user, Trusts: trustAll, Environ: []string{c.env}}
		if c.flag != "" {
			o.Flags = map[string]string{"check": c.flag}
		}
		s, _, err := config.Load(o)
		if err != nil || s.CheckText() != c.want || s.Check != "" && len(s.Checks) > 0 {
			t.Errorf("%+v: %q, %v, %v", c, s.Check, s.Checks, err)
		}
	}
	if _, _, err := config.Load(config.Options{UserDir: user, Environ: []string{`MUSTER_CHECKS=[{"nam":"a"}]`}}); err == nil ||
		!strings.Contains(err.Error(), "a list in JSON") {
		t.Error(err)
	}
}
