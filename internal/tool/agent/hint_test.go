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
			return callsGrep(""), nil
		}
		read = r.Messages[len(r.Messages)-1].Parts[0].(llm.Result).Text()
		return says("ok"), nil
	}, new(int))
	grep := tool.Func("grep", "", func(context.Context, struct{}) (string, error) {
		return "", muster.Errorf(muster.Fenced, "task 3 was taken from you").WithHint("claim another")
	})
	o.Explore = func() []llm.Tool { return []llm.Tool{grep} }
	run(t, NewSubagent(o), ask)
	if read != "task 3 was taken from you: claim another" {
		t.Errorf("it reads %q", read)
	}
}

// A subagent that may not change files now does not start, and its member's model reads what to do first.
func TestTheModelReadsWhyASubagentMayNotWork(t *testing.T) {
	o := options(func(context.Context, llm.Request, int) (llm.Reply, error) { return says("I looked."), nil }, new(int))
	o.MayWork = func(context.Context) error {
		return muster.Errorf(muster.Invalid, "no plan is approved").WithHint("call submit_plan")
	}
	r := run(t, NewSubagent(o), `{"prompt":"x","kind":"work"}`)
	if !r.IsError || r.Text() != "no plan is approved: call submit_plan" {
		t.Errorf("work: it reads %q", r.Text())
	}
	if r := run(t, NewSubagent(o), ask); r.IsError || r.Text() != "I looked." {
		t.Errorf("explore: it reads %q", r.Text())
	}
}
