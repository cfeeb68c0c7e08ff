package retry_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"muster/internal/testing/require"
	"muster/llm"
	"muster/llm/retry"
)

// picky is a model that refuses some tools, one after the other.
type picky struct {
	refuses []string
	asked   []string // the tools of each request
	always  bool     // it refuses every request
}

// Reply implements llm.Model.
func (m *picky) Reply(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Reply, error) {
	var names []string
	for _, t := range r.Tools {
		names = append(names, t.Name)
	}
	m.asked = append(m.asked, strings.Join(names, " "))
	for _, name := range m.refuses {
		if slices.Contains(names, name) {
			e := llm.Errorf(llm.BadRequest, "bad %s", name)
			e.Tools = []string{name}
			return llm.Reply{}, e
		}
	}
	if m.always {
		return llm.Reply{}, llm.Errorf(llm.BadRequest, "something else")
	}
	return llm.Reply{Stop: llm.StopEnd}, nil
}

// A request that is refused because of tools is made without them, as are the next ones, and one line says so.
func TestRefusedToolsAreLeftOut(t *testing.T) {
	request := llm.Request{Tools: []llm.Spec{{Name: "bash"}, {Name: "x"}, {Name: "y"}, {Name: "z"}}}
	m := &picky{refuses: []string{"x", "z"}}
	var tools retry.Tools
	var lines []string
	w := tools.Wrap(m, "m", func(line string) { lines = append(lines, line) })
	for range 2 {
		_, err := w.Reply(t.Context(), request, nil)
		require.NoError(t, err)
	}
	want := []string{"bash x y z", "bash y z", "bash y", "bash y"}
	if !slices.Equal(m.asked, want) || len(request.Tools) != 4 {
		t.Errorf("asked with %q, want %q", m.asked, want)
	}
	if len(lines) != 1 || lines[0] != "m is asked without the tools x, z, because of which its server refused a request: bad z" {
		t.Errorf("told %q", lines)
	}
}

// Nothing is left out for good that did not help.
func TestToolsThatAreNotTheReason(t *testing.T) {
	m := &picky{refuses: []string{"x"}, always: true}
	var tools retry.Tools
	w := tools.Wrap(m, "m", func(line string) { t.Error(line) })
	for range 2 {
		if _, err := w.Reply(t.Context(), llm.Request{Tools: []llm.Spec{{Name: "x"}}}, nil); llm.KindOf(err) != llm.BadRequest {
			t.Error(err)
		}
	}
	if want := []string{"x", "", "x", ""}; !slices.Equal(m.asked, want) {
		t.Errorf("asked with %q, want %q", m.asked, want)
	}
}
