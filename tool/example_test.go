package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"muster"
	"muster/llm"
	"muster/tool"
)

// A tool is a function and a struct. The struct is what the model may pass.
func ExampleFunc() {
	type input struct {
		City string `json:"city" jsonschema:"its name in English"`
		Days int    `json:"days,omitempty"`
	}
	weather := tool.Func("weather", "The weather of a city, when plans depend on it.",
		func(_ context.Context, in input) (string, error) {
			if in.City != "Oslo" {
				return "", errors.New("only Oslo is known")
			}
			return fmt.Sprintf("Rain for %d days.", max(in.Days, 1)), nil
		}, tool.ReadOnly())

	fmt.Printf("%s\n", weather.Spec().Schema)
	for _, input := range []string{`{"city":"Oslo","days":3}`, `{"city":"Rome"}`, `{"town":"Oslo"}`} {
		call := llm.Call{ID: "1", Name: "weather", Input: json.RawMessage(input)}
		r, err := weather.Run(context.Background(), call, nil)
		fmt.Println(r.Parts[0].(llm.Text).Text, r.IsError, err)
	}
	// Output:
	// {"type":"object","properties":{"city":{"type":"string","description":"its name in English"},"days":{"type":"integer"}},"required":["city"]}
	// Rain for 3 days. false <nil>
	// only Oslo is known true <nil>
	// weather: "city" is missing; there is no field "town" (did you mean "city"?). Fields: city (string), days (integer, optional). true <nil>
}

// What goes around a tool, audit or policy or a limit, is a wrapper; wrappers nest.
func ExampleWrap() {
	shout := tool.Func("shout", "Shouts.", func(_ context.Context, in struct {
		Text string `json:"text"`
	}) (string, error) {
		return in.Text + "!", nil
	})
	audited := tool.Wrap(shout, func(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) {
		r, err := next(ctx, c)
		fmt.Println("audit:", c.Name, string(c.Input), err)
		return r, err
	})
	r, _ := audited.Run(context.Background(), llm.Call{Name: "shout", Input: json.RawMessage(`{"text":"hey"}`)}, nil)
	fmt.Println(r.Parts[0].(llm.Text).Text)
	// Output:
	// audit: shout {"text":"hey"} <nil>
	// hey!
}

// Long output is cut in the middle, and the whole kept where the model can read it.
func ExampleLimit() {
	count := tool.Func("count", "Counts.", func(context.Context, struct{}) (string, error) {
		return "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29," +
			"30,31,32,33,34,35,36,37,38,39,40", nil
	})
	short := tool.Limit(count, 100, func(_ context.Context, c llm.Call, whole string) (string, error) {
		fmt.Println("kept:", len(whole), "characters of", c.ID)
		return "outputs/" + c.ID, nil
	})
	r, err := short.Run(context.Background(), llm.Call{ID: "7", Name: "count", Input: json.RawMessage(`{}`)}, nil)
	fmt.Println(r.Text(), err)
	// Output:
	// kept: 110 characters of 7
	// 1,2,3,4,5,6,7,8,
	// ... 78 of 110 characters cut here; the whole is in outputs/7 ...
	// 5,36,37,38,39,40 <nil>
}

// A tool converts an error of what it works on: the model reads the hint, too.
func ExampleFromError() {
	claim := tool.New("claim", "Claims a task.", func(context.Context, struct{}) (llm.Result, error) {
		err := muster.Errorf(muster.Held, "task 7 is bob's").WithHint("take another")
		return tool.FromError(tool.Classify(err))
	})
	r, err := claim.Run(context.Background(), llm.Call{ID: "1", Input: json.RawMessage(`{}`)}, nil)
	fmt.Println(r.Text(), r.IsError, err)
	// Output: task 7 is bob's: take another true <nil>
}
