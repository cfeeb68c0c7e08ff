package permissions

import (
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml/parser"

	"muster/internal/config"
)

// sectionOf returns a section of the settings with a text.
func sectionOf(t *testing.T, source config.Source, text string) config.Section {
	t.Helper()
	file, err := parser.ParseBytes([]byte(text), 0)
	if err != nil {
		t.Fatal(err)
	}
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
		alone, err := FromSections(own)
		if err != nil {
			t.Fatal(err)
		}
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
			for _, command := range append(append([]string{"ls", "go test ./..."}, ordinary...), bypasses...) {
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
