package agent

import (
	"context"
	"strings"
	"testing"

	"muster/internal/compact"
	"muster/llm"
)

// A subagent whose conversation no longer fits is asked for its report with the newest part of it.
func TestASubagentThatIsFullReports(t *testing.T) {
	full, asked := 0, 0
	o := options(func(_ context.Context, r llm.Request, n int) (llm.Reply, error) {
		if size := compact.Estimate(r.Messages); size > 200 {
			full = size
			return llm.Reply{}, llm.Errorf(llm.ContextFull, "too long")
		}
		last := r.Messages[len(r.Messages)-1].Parts.Text()
		if strings.Contains(last, "grown too long") {
			asked++
			if !strings.HasPrefix(r.Messages[0].Parts.Text(), "where is it?") {
				t.Errorf("it no longer knows what it was asked: %+v", r.Messages[0])
			}
			return says("Half of it."), nil
		}
		return callsGrep("on"), nil
	}, new(int))
	if r := run(t, NewSubagent(o), ask); r.IsError || r.Text() != "Half of it." || full == 0 || asked != 1 {
		t.Errorf("%q after %d tokens, asked %d times", r.Text(), full, asked)
	}
}
