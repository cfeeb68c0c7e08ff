package tool_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"muster"
	"muster/llm"
	"muster/tool"
)

func TestFromErrorKeepsTheHint(t *testing.T) {
	hinted := muster.Errorf(muster.Held, "task 7 is bob's").WithHint("take another")
	for _, c := range []struct {
		name string
		err  error
		text string
	}{
		{"a plain error", errors.New("it is late"), "it is late"},
		{"without a hint", muster.Errorf(muster.Held, "task 7 is bob's"), "task 7 is bob's"},
		{"with a hint", hinted, "task 7 is bob's: take another"},
		{"wrapped", fmt.Errorf("claim: %w", hinted), "claim: task 7 is bob's: take another"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if r, err := tool.FromError(c.err); err != nil || !r.IsError || r.Text() != c.text {
				t.Errorf("the model reads %q, %v", r.Text(), err)
			}
			whole := tool.New("t", "", func(context.Context, struct{}) (llm.Result, error) {
				return tool.FromError(c.err)
			})
			text := tool.Func("t", "", func(context.Context, struct{}) (string, error) { return "", c.err })
			for _, tl := range []llm.Tool{whole, text} {
				if r, err := tl.Run(t.Context(), llm.Call{}, nil); err != nil || !r.IsError || r.Text() != c.text {
					t.Errorf("a tool's model reads %q, %v", r.Text(), err)
				}
			}
			if _, err := tool.FromError(tool.Fatal(c.err)); !errors.Is(err, c.err) {
				t.Errorf("the runtime got %v", err)
			}
		})
	}
}

func TestClassify(t *testing.T) {
	held := muster.Errorf(muster.Held, "bob has it")
	for _, c := range []struct {
		name  string
		err   error
		fatal bool
	}{
		{"nothing", nil, false},
		{"the model can act on it", fmt.Errorf("claim: %w", held), false},
		{"the engine is away", muster.Errorf(muster.Unavailable, "no disk"), true},
		{"anything else", errors.New("broken pipe"), true},
		{"marked already", tool.Fatal(held), true},
	} {
		if got := tool.Classify(c.err); tool.IsFatal(got) != c.fatal || !errors.Is(got, c.err) {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
