package teammate

import (
	"context"
	"encoding/json"
	"slices"

	"muster/llm"
	"muster/tool"
)

// merged are tools that are offered as a part of another one: a call of the other one with the field is a call of the
// tool. They can still be called by their own names, which rules, hooks, roles and scripts have.
var merged = []struct {
	tool, into, field string
	is                func(value any) bool
}{
	{"task_get", "task_list", "task_id", func(v any) bool { return v != 0.0 && v != nil }},
	{"broadcast", "send_message", "to", func(v any) bool { return v == "all" }},
	{"stop_background", "check_background", "stop", func(v any) bool { return v == true }},
}

func isMerged(name string) bool {
	for _, m := range merged {
		if m.tool == name {
			return true
		}
	}
	return false
}

// withMerged returns the tools, of which some run another one of the list for a part of their calls: see merged. The
// other one runs with its own rules and hooks.
func withMerged(list []llm.Tool) []llm.Tool {
	out := slices.Clone(list)
	for i, t := range list {
		for _, m := range merged {
			at := slices.IndexFunc(list, func(t llm.Tool) bool { return t.Spec().Name == m.tool })
			if t.Spec().Name != m.into || at < 0 {
				continue
			}
			out[i] = tool.Wrap(out[i], func(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) {
				var in map[string]any
				if json.Unmarshal(tool.Fit(t, c.Input), &in) != nil || !m.is(in[m.field]) {
					return next(ctx, c)
				}
				if m.field != "task_id" {
					delete(in, m.field)
				}
				data, err := json.Marshal(in)
				if err != nil {
					return llm.Result{}, err
				}
				r, err := list[at].Run(ctx, llm.Call{ID: c.ID, Name: m.tool, Input: data}, nil)
				r.ID = c.ID
				return r, err
			})
		}
	}
	return out
}
