package config

import (
	"strings"
	"testing"
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

// Checks are read, and their text can be read back.
func TestChecks(t *testing.T) {
	s, values, err := Load(place(t, twoChecks, ""))
	if err != nil || len(s.Checks) != 2 || s.Check != "" || s.CheckText() != "test" {
		t.Fatalf("%+v, %v", s.Checks, err)
	}
	if c := s.Checks[1]; c.Command != "cd web\nnpm test" || len(c.Paths) != 2 || !c.Advisory || s.Checks[0].Timeout != 90 {
		t.Errorf("%+v", s.Checks)
	}
	v := value(t, values, "checks")
	again, err := ParseChecks(v.Value)
	if err != nil || again.String() != s.Checks.String() || !strings.Contains(v.Value, "./... && true") {
		t.Errorf("%s: %v, %v", v.Value, again, err)
	}
}

// Who does not trust the file has no checks, and no run begins.
func TestChecksNeedTrust(t *testing.T) {
	for _, c := range []struct {
		env        []string
		overridden bool
	}{{nil, false}, {[]string{"MUSTER_CHECK=true"}, true}, {[]string{`MUSTER_CHECKS=[{"name":"a","command":"true"}]`}, true}} {
		o := place(t, twoChecks, "")
		o.Trusts, o.Environ = nil, c.env
		s, values, err := Load(o)
		if err != nil || strings.Contains(s.Checks.String(), "web") {
			t.Fatalf("%+v, %v", s.Checks, err)
		}
		if w := value(t, values, "checks").Withheld; w == nil || !w.StopsRuns || w.IsOverridden != c.overridden || !strings.Contains(w.Value, "npm test") {
			t.Errorf("%+v", w)
		}
	}
}

// A mistake is reported with its line, and with what to do.
func TestWrongChecks(t *testing.T) {
	for text, says := range map[string]string{
		"checks: go test\n":         "muster.yaml:1:9: checks is a list",
		"checks:\n  - go test\n":    "muster.yaml:2:5: a check has a name: and a command:",
		"checks:\n  - command: a\n": "muster.yaml:2:5: a check needs a name",
		"checks:\n  - name: a\n":    "muster.yaml:2:5: the check a has no command",
		"checks:\n  - {name: a, command: x}\n  - {name: A, command: y}\n": "muster.yaml:3:6: there are two checks with the name A",
		"checks:\n  - {name: a, command: x, timeout: 5}\n":                "a duration with its unit",
		"checks:\n  - {name: a, command: x, paths: [\"[\"]}\n":            "patterns from the root",
		"checks:\n  - {name: a, command: x, paths: [../x]}\n":             "patterns from the root",
		"checks:\n  - {name: a, command: x, advisory: true}\n":            "all checks are advisory",
		"check: a\nchecks:\n  - {name: a, command: x}\n":                  "muster.yaml:2:1: check and checks exclude each other",
		"checks:\n  - {name: a, command: x}\ncheck: a\n":                  "muster.yaml:3:1: check and checks exclude each other",
		"checks:\n  - &a {name: a, command: x}\n  - *a\n":                 "anchors and aliases",
	} {
		_, _, err := Load(place(t, text, ""))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}

// The stronger of check and checks holds.
func TestCheckOrChecks(t *testing.T) {
	const mine = "check: mine\n"
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
		o := place(t, c.file, mine)
		o.Environ = []string{c.env}
		if c.flag != "" {
			o.Flags = map[string]string{"check": c.flag}
		}
		s, _, err := Load(o)
		if err != nil || s.CheckText() != c.want || s.Check != "" && len(s.Checks) > 0 {
			t.Errorf("%+v: %q, %v, %v", c, s.Check, s.Checks, err)
		}
	}
	o := place(t, "", mine)
	o.Environ = []string{`MUSTER_CHECKS=[{"nam":"a"}]`}
	if _, _, err := Load(o); err == nil || !strings.Contains(err.Error(), "a list in JSON") {
		t.Error(err)
	}
}
