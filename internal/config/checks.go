package config

import (
	"bytes"
	"encoding/json"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/goccy/go-yaml/ast"

	"muster"
	"muster/internal/lazyregexp"
	"muster/internal/text"
	"muster/internal/yamldoc"
)

// The setting checks is a list of mappings, and all other settings are one value. It is a setting of the table all the
// same, because the table decides where a value may come from, when one of a repository counts, and how a change of it
// is shown. For that the list has a canonical text (Checks.String), which the other code takes for the setting's value:
// two lists with the same text mean the same, whatever the file looks like. Only the reader of a file sees its nodes,
// so that a mistake is reported where it is.

// Checks are several named checks. The value of the setting is their text.
type Checks []muster.NamedCheck

// checkEntry is a check as people write it.
type checkEntry struct {
	Name     string   `yaml:"name" json:"name"`
	Command  string   `yaml:"command" json:"command"`
	Paths    []string `yaml:"paths" json:"paths,omitempty"`
	Timeout  string   `yaml:"timeout" json:"timeout,omitempty"`
	Advisory bool     `yaml:"advisory" json:"advisory,omitempty"`
}

// String returns the checks as JSON, one in a line, so that a change can be shown line by line. ParseChecks reads it.
func (c Checks) String() string {
	var lines []string
	for _, x := range c {
		e := checkEntry{Name: x.Name, Command: x.Command, Paths: x.Paths, Advisory: x.Advisory}
		if x.Timeout > 0 {
			e.Timeout = time.Duration(x.Timeout * float64(time.Second)).String()
		}
		var line bytes.Buffer
		enc := json.NewEncoder(&line)
		enc.SetEscapeHTML(false) // people read it: && stays what it is
		_ = enc.Encode(e)        // it can be
		lines = append(lines, strings.TrimSpace(line.String()))
	}
	if len(lines) == 0 {
		return ""
	}
	return "[" + strings.Join(lines, ",\n") + "]"
}

// ParseChecks reads checks as String returns them. The error is a sentence.
func ParseChecks(text string) (all Checks, err error) {
	if text == "" {
		return nil, nil
	}
	var entries []checkEntry
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if dec.Decode(&entries) != nil || dec.More() {
		return nil, muster.Errorf(muster.Invalid, "checks is a list in JSON, such as %s",
			`[{"name":"test","command":"go test ./..."}]`)
	}
	for _, e := range entries {
		c, err := e.check(all)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, all.check()
}

// checkName is the name of a check: a part of the name of a log, and one of several between commas.
var checkName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$`)

// check returns the entry as a check, which comes after others.
func (e checkEntry) check(others Checks) (c muster.NamedCheck, err error) {
	wrong := func(format string, args ...any) (muster.NamedCheck, error) {
		return c, muster.Errorf(muster.Invalid, format, args...)
	}
	c = muster.NamedCheck{Name: e.Name, Command: strings.TrimSpace(e.Command), Paths: e.Paths, Advisory: e.Advisory}
	switch {
	case e.Name == "":
		return wrong("a check needs a name, such as name: test")
	case !checkName().MatchString(e.Name):
		return wrong("the name of a check has letters, digits, dots, - and _, at most 40: not %q", e.Name)
	case slices.ContainsFunc(others, func(o muster.NamedCheck) bool { return strings.EqualFold(o.Name, e.Name) }):
		return wrong("there are two checks with the name %s: give one of them another name", e.Name)
	case c.Command == "":
		return wrong("the check %s has no command: add one, such as command: go test ./...", e.Name)
	}
	for _, p := range e.Paths {
		if p == "" || strings.HasPrefix(p, "/") || strings.HasPrefix(p, "!") || !doublestar.ValidatePattern(p) ||
			slices.ContainsFunc(strings.Split(p, "/"), func(s string) bool { return s == "." || s == ".." }) {
			return wrong("the paths of the check %s are patterns from the root of the repository, such as web/** or "+
				"*.go: not %q", e.Name, p)
		}
	}
	if e.Timeout != "" {
		d, err := time.ParseDuration(e.Timeout)
		if err != nil || d <= 0 {
			return wrong("the timeout of the check %s is a duration with its unit, such as 90s or 2m: not %q", e.Name,
				e.Timeout)
		}
		c.Timeout = d.Seconds()
	}
	return c, nil
}

func (c Checks) check() error {
	if len(c) > 0 && muster.RequiredNames(c) == "" {
		return muster.Errorf(muster.Invalid,
			"all checks are advisory, so nothing would be verified: leave advisory out of one of them")
	}
	return nil
}

// readChecks reads checks from a file. Each mistake is reported where it is.
func (l *fileLoader) readChecks(n ast.Node) (all Checks, err error) {
	s := Section{Name: "checks", File: l.name, Source: l.source, Node: n}
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		return nil, l.errorAt(n, "checks is a list, in which each check begins with - name: and has a command:")
	}
	if err := s.refuseAliases(); err != nil {
		return nil, err
	}
	for _, item := range list.Values {
		var e checkEntry
		if len(yamldoc.Entries(item)) == 0 {
			return nil, l.errorAt(item, "a check has a name: and a command:")
		}
		if err := s.Decode(item, &e); err != nil {
			return nil, err
		}
		c, err := e.check(all)
		if err != nil {
			return nil, l.errorAt(item, err.Error())
		}
		all = append(all, c)
	}
	if err := all.check(); err != nil {
		return nil, l.errorAt(n, err.Error())
	}
	return all, nil
}

// refuseBoth refuses a file that has both check and checks: one of them would not count.
func (l *fileLoader) refuseBoth(key ast.Node, name string) error {
	other := map[string]string{"check": "checks", "checks": "check"}[name]
	if other == "" {
		return nil
	}
	if l.seen = append(l.seen, name); slices.Contains(l.seen, other) {
		return l.errorAt(key, "check and checks exclude each other: write the command of check as one of checks, "+
			"with a name")
	}
	return nil
}

// A file may not have both check and checks, because nobody could say which of them is meant. In different places both
// may stand: a user has a check for all repositories, and one of these has checks of its own; or --check is to try
// another one. Then the place decides, as for any other setting.

// chooseChecks leaves the stronger one of check and checks where both are set.
func (l *loader) chooseChecks() {
	if l.Check == "" || len(l.Checks) == 0 {
		return
	}
	if l.strength("check") >= l.strength("checks") {
		l.Checks, l.sources["checks"] = nil, l.sources["check"]
	} else {
		l.Check, l.sources["check"] = "", l.sources["checks"]
	}
}

// strength says where a setting's value comes from, as a number that is higher for what overrides another one.
func (l *loader) strength(name string) int {
	s, _ := l.find(func(s Setting) bool { return s.Name == name })
	return slices.Index([]Source{FromRepository, fromEnv(s.Env()), fromFlag(s.Flag())}, l.sources[name])
}

// enterDirectory has the set-up and the checks start in the directory, as commands of members do. Those of the
// repository's own file start where that lies, at the top, unless it names the directory, too.
func (l *loader) enterDirectory() {
	l.Directory = path.Clean(filepath.ToSlash(l.Directory))
	if l.Directory == "." {
		l.Directory = ""
		return
	}
	enter := func(name string, command *string) {
		isAtTop := l.sources[name] == FromRepository && l.sources["directory"] != FromRepository
		if *command != "" && !isAtTop {
			*command = "cd " + text.ShellQuote(l.Directory) + "; " + *command
		}
	}
	enter("check", &l.Check)
	enter("setup", &l.Setup)
	for i := range l.Checks {
		enter("checks", &l.Checks[i].Command)
	}
}
