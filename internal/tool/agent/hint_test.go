package agent

import (
	"context"
	"testing"

	"muster"
	"muster/llm"
	"muster/tool"
)

// A tool that fails for a subagent tells the subagent's model what to do instead.
func TestTheSubagentsModelReadsTheHint(t *testing.T) {
	var read string
	o := options(func(_ context.Context, r llm.Request, n int) (llm.Reply, error) {
		if n == 0 {
			return calls("", "grep"), nil
		}
		read = r.Messages[len(r.Messages)-1].Parts[0].(llm.Result).Text()
		return says("ok"), nil
	}, new(int))
	o.Tools = func(string) []llm.Tool {
		return []llm.Tool{tool.Func("grep", "", func(context.Context, struct{}) (string, error) {
			return "", muster.Errorf(muster.Fenced, "task 3 was taken from you").WithHint("claim another")
		})}
	}
	run(t, NewSubagent(o), ask)
	if read != "task 3 was taken from you: claim another" {
		t.Errorf("it reads %q", read)
	}
}
