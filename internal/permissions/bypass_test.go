package permissions

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml/parser"

	"muster/internal/config"
	"muster/internal/testing/require"
)

// policy returns a policy with rules, each as "deny bash(x)".
func policy(t testing.TB, mode Mode, rules ...string) Policy {
	t.Helper()
	p := Policy{Mode: mode}
	for _, text := range rules {
		if text == "" {
			continue
		}
		action, rule, _ := strings.Cut(text, " ")
		a := map[string]Action{"allow": Allow, "ask": Ask, "deny": Deny}[action]
		r := require.Value(ParseRule(a, rule, "config.yaml"))(t)
		p.Rules = append(p.Rules, r)
	}
	return p
}

// bash returns a call of bash.
func bash(command string) Call { return Call{Tool: "bash", Command: command, Writes: true} }

// lines returns the lines of a file of the test data, or its parts between lines of dashes.
func lines(t testing.TB, name, separator string) []string {
	t.Helper()
	return strings.Split(strings.TrimSpace(string(require.Value(os.ReadFile("testdata/"+name))(t))), separator)
}

// ways returns scripts in which bash runs the parts that a % stands for.
func ways(t testing.TB) (all []string) {
	for _, line := range lines(t, "ways.txt", "\n") {
		all = append(all, strings.ReplaceAll(line, `\n`, "\n"))
	}
	return all
}

// TestDecisions: each script of decisions.txt comes to what stands before it.
func TestDecisions(t *testing.T) {
	var p Policy
	for _, line := range lines(t, "decisions.txt", "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		want, script, _ := strings.Cut(line, " ")
		if want == "==" {
			mode, rules, _ := strings.Cut(script, "; ")
			p = policy(t, Mode(mode), strings.Split(rules, "; ")...)
			continue
		}
		if text, err := strconv.Unquote(script); err == nil && script[0] == '"' {
			script = text
		}
		if d := p.Decide(bash(script), nil); d.Action.String() != want {
			t.Errorf("mode %s, %v: %q: %v by %s: %s, not %s", p.Mode, p.Rules, script, d.Action, d.Rule, d.Why, want)
		}
	}
}

// TestNoBypass: nothing that may run a denied command is allowed, in whatever mode, and no rule that allows helps.
func TestNoBypass(t *testing.T) {
	for _, p := range []Policy{
		policy(t, Auto, "deny bash(git push *)"), policy(t, AskFirst, "deny bash(git push:*)", "allow bash"),
		policy(t, Auto, "ask bash(git push *)", "allow bash(*)"), policy(t, Plan, "deny Bash(git push)", "deny bash(git push *)"),
	} {
		for _, way := range ways(t) {
			script := strings.ReplaceAll(way, "%", "git push")
			if d := p.Decide(bash(script), nil); script != way && d.Action == Allow {
				t.Errorf("%s %s: %q is allowed by %s", p.Mode, p.Rules[0], script, d.Rule)
			}
		}
	}
}

// TestPlanModeOfFiles: in the mode plan files are read only.
func TestPlanModeOfFiles(t *testing.T) {
	for tool, want := range map[string]Action{"write_file": Deny, "read_file": Allow} {
		call := Call{Tool: tool, Paths: []string{"x"}, Writes: want == Deny}
		if d := policy(t, Plan).Decide(call, nil); d.Action != want {
			t.Errorf("%s: %+v", tool, d)
		}
	}
}

// sectionOf returns a section of the settings with a text.
func sectionOf(t *testing.T, source config.Source, text string) config.Section {
	t.Helper()
	file := require.Value(parser.ParseBytes([]byte(text), 0))(t)
	return config.Section{Name: Section, File: "muster.yaml", Source: source, Node: file.Docs[0].Body}
}

// users are settings of users, from the loosest to the strictest.
var users = []string{"mode: auto", "allow: ['bash(git push *)']", "{mode: auto, ask: ['bash(git push *)'], wait: 5m}",
	"{mode: ask, allow: ['bash(go test *)', 'bash(ls)']}", "{mode: ask, deny: [bash], wait: 0s}", "mode: plan"}

// TestARepositoryOnlyTightens: whatever deny and ask rules a repository has, no call has a weaker decision than without
// them, and the mode and the wait stay those of the user.
func TestARepositoryOnlyTightens(t *testing.T) {
	for _, user := range users {
		own := []config.Section{sectionOf(t, "config.yaml", user)}
		alone := require.Value(FromSections(own))(t)
		for _, text := range []string{"deny: [bash]", "ask: [bash]", "ask: ['*']", "deny: ['*']", "ask: ['bash(= git push)']",
			"{ask: ['bash(git *)'], deny: ['bash(git push *)', 'write_file(**)']}", "ask: ['mcp__*']", "deny: []"} {
			both, err := FromSections(append(own[:1:1], sectionOf(t, config.FromRepository, text)))
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			if both.Mode != alone.Mode || both.Wait != alone.Wait {
				t.Errorf("%s makes of %s the mode %s and the wait %v", text, user, both.Mode, both.Wait)
			}
			calls := []Call{{Tool: "write_file", Paths: []string{"x"}, Writes: true}, {Tool: "read_file", Paths: []string{"x"}},
				{Tool: "mcp__a__b", Writes: true}, {Tool: "task_create"}}
			for _, command := range append(lines(t, "everyday.txt", "\n----\n"), ways(t)...) {
				calls = append(calls, bash(command))
			}
			for _, c := range calls {
				if was, is := alone.Decide(c, nil), both.Decide(c, nil); is.Action < was.Action {
					t.Errorf("%s makes of %s for %s %s: %v, and it was %v", text, user, c.Tool, c.Command, is.Action, was.Action)
				}
			}
		}
	}
}

// TestARepositoryCannotLoosen: what could allow anything is an error where it comes with a repository.
func TestARepositoryCannotLoosen(t *testing.T) {
	for _, text := range []string{"mode: auto", "mode: ask", "wait: 1h", "allow: [bash]", "allow: []", "{deny: [bash], mode: auto}"} {
		_, err := FromSections([]config.Section{sectionOf(t, config.FromRepository, text)})
		if err == nil || !strings.Contains(err.Error(), "a repository may only deny and ask") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestWrongSettings: a mistake is an error with its place, and no rule is left out.
func TestWrongSettings(t *testing.T) {
	for text, want := range map[string]string{
		"mode: yolo": "the mode is plan, ask or auto", "wait: 5": "wait is a duration", "wait: -5m": "wait is a duration", "wait: soon": "wait is a duration",
		"deny: ['bash(x']": "is no rule", "deny: ['bash()']": "is no rule", "deny: ['write_file([)']": "is no pattern", "deny: [WebFetch]": "does not have",
		"denny: [bash]": "denny", "deny: bash": "sequence is expected",
	} {
		_, err := FromSections([]config.Section{sectionOf(t, "config.yaml", text)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	s, err := FromSections([]config.Section{sectionOf(t, "config.yaml", "{wait: 3m, deny: ['Bash(git push:*)']}")})
	if err != nil || s.Wait != 3*time.Minute || s.Decide(bash("git push"), nil).Action != Deny {
		t.Errorf("%+v, %v", s, err)
	}
}

// Commands run unasked only on systems that can confine them, unless the user says otherwise.
func TestModeOfASystem(t *testing.T) {
	for system, want := range map[string]Mode{"linux": Auto, "darwin": Auto, "windows": AskFirst, "freebsd": AskFirst} {
		if got := defaultMode(system); got != want {
			t.Errorf("%s: %s", system, got)
		}
	}
	s, err := FromSections([]config.Section{sectionOf(t, "config.yaml", "{mode: plan}")})
	if err != nil || s.Mode != Plan {
		t.Errorf("set to plan: %s, %v", s.Mode, err)
	}
}

// TestNormalForms: the tools find a file by a name in another normal form, so a rule is for it by each, too.
func TestNormalForms(t *testing.T) {
	names := []string{"th\u00e9.txt", "the\u0301.txt"}
	for _, rule := range names {
		for _, name := range names {
			p := policy(t, "", "deny write_file("+rule+")")
			call := NewCall("write_file", nil, t.TempDir(), []string{name})
			if d := p.Decide(call, nil); d.Action != Deny {
				t.Errorf("%+q is not denied by a rule for %+q", name, rule)
			}
			if d := p.Decide(bash("echo > "+name), nil); d.Action != Deny {
				t.Errorf("%+q is not denied to a command by a rule for %+q", name, rule)
			}
		}
	}
}
