package tool_test

import (
	"context"
	"encoding/json"
	"testing"

	"muster/llm"
	"muster/tool"
)

// A wrapper that looks at an input sees what the tool will read, through all other wrappers.
func TestFit(t *testing.T) {
	type in struct {
		Command string `json:"command"`
		Timeout int    `json:"timeout,omitempty"`
	}
	made := tool.New("run", "runs", func(context.Context, in) (llm.Result, error) { return llm.Result{}, nil })
	around := func(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) { return next(ctx, c) }
	recoverable := tool.Recoverable(made, func(context.Context, in, bool) (llm.Result, bool, error) {
		return llm.Result{}, false, nil
	})
	for _, x := range []llm.Tool{made, tool.Wrap(made, around), tool.Wrap(recoverable, around)} {
		for input, want := range map[string]string{
			`{"command":"ls"}`:                 `{"command":"ls"}`,
			`{"Command":"ls","timeout":"5"}`:   `{"command":"ls","timeout":5}`,
			`{"nothing":"like","it":"at all"}`: `{"nothing":"like","it":"at all"}`,
		} {
			got := tool.Fit(x, json.RawMessage(input))
			var a, b map[string]any
			if json.Unmarshal(got, &a) != nil || json.Unmarshal([]byte(want), &b) != nil || len(a) != len(b) {
				t.Fatalf("%s is read as %s, want %s", input, got, want)
			}
			for name := range b {
				if a[name] != b[name] {
					t.Errorf("%s is read as %s, want %s", input, got, want)
				}
			}
		}
	}
}
