package config

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/internal/testing/require"
)

// Each setting in a repository's file, with what becomes of it before the user has trusted anything.
func TestWhatOfARepositoryCounts(t *testing.T) {
	left := func(value string) *Withheld { return &Withheld{Value: value, NeedsTrust: true} }
	stops := func(value string) *Withheld { return &Withheld{Value: value, NeedsTrust: true, StopsRuns: true} }
	for _, c := range []struct {
		repo, user, name, value string // value is what holds
		want                    *Withheld
	}{
		{"check: make", "", "check", "", stops("make")},
		{"check: make", "check: go vet", "check", "go vet", stops("make")},
		{"check: \"\"", "check: go vet", "check", "go vet", stops("")},
		{"check: go vet", "check: go vet", "check", "go vet", nil},
		{"setup: npm ci", "", "setup", "", stops("npm ci")},
		{"model: openai/dear", "", "model", "", left("openai/dear")},
		{"model: openai/dear", "model: openai/cheap", "model", "openai/cheap", left("openai/dear")},
		{"max_turns: 1000", "", "max_turns", "0", left("1000")},
		{"max_turns: 0x10", "", "", "", nil},
		{"subagent_turns: 31", "", "subagent_turns", "30", left("31")},
		{"effort: max", "effort: low", "effort", "low", left("max")},
		{"worktrees: {dir: /etc}", "", "worktrees.dir", "", left("/etc")},
		{"worktrees.dir: /etc", "", "worktrees.dir", "", left("/etc")},
		{"worktrees: {dir: /etc}\nworktrees.dir: /usr", "", "worktrees.dir", "", left("/usr")},
		{"teammates: 5", "", "teammates", "4", &Withheld{Value: "5"}},
		{"teammates: 3", "", "teammates", "3", nil},
		{"teammates: 3", "teammates: 2", "teammates", "2", &Withheld{Value: "3"}},
		{"teammates: 5", "teammates: 9", "teammates", "5", nil},
		{"todo_limit: 30", "", "todo_limit", "30", nil},
		{"idle_poll: 1m", "", "idle_poll", "1m", nil},
		{"budget: {team: 5}", "", "budget.team", "5", nil},
		{"budget: {team: 5}", "budget: {team: 8}", "budget.team", "5", nil},
		{"budget: {team: 9}", "budget: {team: 8}", "budget.team", "8", &Withheld{Value: "9"}},
		{"budget: {team: none}", "budget: {team: 8}", "budget.team", "8", &Withheld{Value: "none"}},
		{"budget: {task: 1k tokens}", "budget: {task: 8}", "budget.task", "8", &Withheld{Value: "1k tokens"}},
		{"budget: {member: 1k tokens}", "budget: {member: 2k tokens}", "budget.member", "1k tokens", nil},
		{"budget: {member: 200k}", "", "", "", nil},
		{"budget: {day: 1}", "", "", "", nil},
		{"check_timeout: 1s", "check_timeout: 2s", "check_timeout", "1s", nil},
		{"landing: {merge_commits: true}", "", "landing.merge_commits", "true", nil},
	} {
		o := place(t, c.repo+"\n", c.user)
		o.Trusts = nil
		_, vs, err := Load(o)
		if c.name == "" {
			if err == nil {
				t.Errorf("%s: no error", c.repo)
			}
			continue
		}
		require.NoError(t, err)
		v := value(t, vs, c.name)
		if d := cmp.Diff(c.want, v.Withheld); d != "" || v.Value != c.value {
			t.Errorf("%s over %s: %q holds\n%s", c.repo, c.user, v.Value, d)
		}
	}
}

// Every setting that is not known to be harmless needs trust, with just the value that it has.
func TestTrustIsInAValue(t *testing.T) {
	o := place(t, "check: make\nsetup: npm ci\nteammates: 9\n", "")
	o.Trusts = func(name, value string) (bool, error) { return name == "check" && value == "make", nil }
	s, vs, err := Load(o)
	if err != nil || s.Check != "make" || s.Setup != "" || s.Teammates != 4 {
		t.Errorf("%+v, %v", s, err)
	}
	if v := value(t, vs, "check"); v.Withheld != nil || v.Source != FromRepository {
		t.Errorf("%+v", v)
	}
	// A flag or a variable is stronger in any case.
	o.Flags, o.Environ = map[string]string{"setup": "mine"}, []string{"MUSTER_TEAMMATES=7"}
	s, vs, err = Load(o)
	if err != nil || s.Setup != "mine" || s.Teammates != 7 || !value(t, vs, "setup").Withheld.IsOverridden ||
		!value(t, vs, "teammates").Withheld.IsOverridden {
		t.Errorf("%+v, %v", s, err)
	}
	failed := errors.New("the registry")
	o.Trusts = func(string, string) (bool, error) { return false, failed }
	if _, _, err := Load(o); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
}

// Two names of models have one Server only if the same key goes to the same place.
func TestServer(t *testing.T) {
	for _, c := range []struct{ model, want string }{
		{"openai/gpt-5.5", ""},
		{"openai/x@latest", ""},
		{"openai/x@http://localhost:11434/v1", "openai@http://localhost:11434/v1"},
		{"openai-chat/other@http://LOCALHOST:11434/v1/", "openai@http://localhost:11434/v1"},
		{"anthropic/x@http://localhost:11434/v1", "anthropic@http://localhost:11434/v1"},
		{"openai/x@https://h:443/v1", "openai@https://h/v1"},
		{"openai/x@http://h:443/v1", "openai@http://h:443/v1"},
		{"openai/x@https://h/v1?key=secret", "openai@https://h/v1?"},
		{"openai/x@https://h/v1#secret", "openai@https://h/v1?"},
		{"script/words.yaml", "script/words.yaml"},
	} {
		m, err := ParseModel(c.model)
		if err != nil || m.Server() != c.want {
			t.Errorf("%s: %q, %v", c.model, m.Server(), err)
		}
	}
}
