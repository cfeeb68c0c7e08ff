package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster"
	"muster/agent"
	"muster/internal/proc"
	"muster/internal/testing/require"
	"muster/llm"
	"muster/llm/script"
	"muster/loop"
)

func TestMain(m *testing.M) {
	proc.GuardMain()
	os.Exit(m.Run())
}

// open makes an agent with a scripted model in a directory of the test's own.
func open(t *testing.T, words string, o agent.Options) (*agent.Agent, string) {
	t.Helper()
	s := require.Value(script.Parse([]byte(words)))(t)
	o.Dir, o.Model = t.TempDir(), s.Model()
	a := require.Value(agent.New(t.Context(), o))(t)
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a, o.Dir
}

// results are what the tools have answered so far.
func results(a *agent.Agent) (all []string) {
	for _, m := range a.Messages() {
		for _, p := range m.Parts {
			if r, ok := p.(llm.Result); ok {
				all = append(all, r.Text())
			}
		}
	}
	return all
}

func TestAskGoesOnWithTheConversation(t *testing.T) {
	a, dir := open(t, `
scenes:
  - cue: write it
    turns: [{do: [{write_file: {path: a, content: x}}, {read_file: {path: ../b}}]}, {say: Written.}]
  - cue: look at it
    turns: [{do: [{subagent: {prompt: inspect the file, kind: explore}}]}, {say: Looked.}]
  - cue: inspect the file
    turns: [{do: [{read_file: {path: a}}]}, {say: It is an x.}]
`, agent.Options{})
	if got, err := a.Ask(t.Context(), "write it"); err != nil || got != "Written." {
		t.Fatalf("%q, %v", got, err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(data) != "x" {
		t.Errorf("a has %q, %v", data, err)
	}
	if got, err := a.Ask(t.Context(), "look at it"); err != nil || got != "Looked." {
		t.Fatalf("%q, %v", got, err)
	}
	all := results(a)
	if len(all) != 3 || !strings.Contains(all[1], "leads out of") || all[2] != "It is an x." {
		t.Errorf("the tools answered %q", all)
	}
}

func TestMaxTurnsEndsAnAsk(t *testing.T) {
	turns := 0
	a, _ := open(t, "speakers: {agent: [{do: [{glob: {pattern: '*'}}]}, {do: [{glob: {pattern: '*'}}]}, {say: Done.}]}",
		agent.Options{MaxTurns: 2, Emit: func(e loop.Event) {
			if _, is := e.(loop.TurnStarted); is {
				turns++
			}
		}})
	if _, err := a.Ask(t.Context(), "go"); !errors.Is(err, loop.ErrMaxTurns) || turns != 2 {
		t.Errorf("%v after %d turns", err, turns)
	}
	if got, err := a.Ask(t.Context(), "go on"); err != nil || got != "Done." {
		t.Errorf("%q, %v", got, err)
	}
}

func TestWhatCannotWorkIsRefused(t *testing.T) {
	s := require.Value(script.Parse([]byte("speakers: {agent: [{say: Hello.}]}")))(t)
	for name, o := range map[string]agent.Options{
		"no model":     {Dir: t.TempDir()},
		"no directory": {Model: s.Model()},
		"not there":    {Model: s.Model(), Dir: filepath.Join(t.TempDir(), "gone")},
	} {
		if _, err := agent.New(t.Context(), o); !errors.Is(err, muster.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
