package loop_test

import (
	"context"
	"fmt"

	"muster/llm"
	"muster/llm/script"
	"muster/loop"
	"muster/tool"
)

// An agent without a team: a model, a tool, a conversation that is kept nowhere.
func ExampleAgent() {
	words, err := script.Parse([]byte(`
speakers:
  helper:
    - do: [{add: {numbers: [1, 2, 3]}}]
    - cue: '6'
      say: It is six.
`))
	if err != nil {
		panic(err)
	}
	add := tool.Func("add", "Adds numbers.", func(_ context.Context, in struct {
		Numbers []int `json:"numbers"`
	}) (string, error) {
		sum := 0
		for _, n := range in.Numbers {
			sum += n
		}
		return fmt.Sprint(sum), nil
	}, tool.ReadOnly())

	talk := loop.NewMemory(llm.Request{System: []string{"You add."}, Tools: []llm.Spec{add.Spec()}, CacheKey: "helper"})
	talk.Say(llm.Text{Text: "What is 1 + 2 + 3?"})
	last, err := loop.Agent{Model: words.Model(), Tools: []llm.Tool{add}, Conversation: talk}.Run(context.Background())
	fmt.Println(last.Message.Text(), err)
	for _, m := range talk.Messages() {
		fmt.Printf("%s: %q, %d calls\n", m.Role, m.Text(), len(m.Calls()))
	}
	// Output:
	// It is six. <nil>
	// user: "What is 1 + 2 + 3?", 0 calls
	// assistant: "", 1 calls
	// user: "", 0 calls
	// assistant: "It is six.", 0 calls
}

// A boundary is where mail, limits and whatever else is around an agent get in.
func ExampleAgent_boundary() {
	words, err := script.Parse([]byte("speakers: {helper: [{say: 'Is there more?'}, {cue: carry on, say: 'That was " +
		"all.'}]}"))
	if err != nil {
		panic(err)
	}
	talk := loop.NewMemory(llm.Request{CacheKey: "helper"})
	talk.Say(llm.Text{Text: "Begin."})
	mail := []string{"carry on"}
	boundary := func(_ context.Context, at loop.Boundary) (bool, error) {
		if at == loop.BeforeStop && len(mail) > 0 {
			talk.Say(llm.Text{Text: mail[0]})
			mail = mail[1:]
			return true, nil
		}
		return at == loop.BetweenRounds, nil
	}
	_, err = loop.Agent{Model: words.Model(), Conversation: talk, Boundary: boundary}.Run(context.Background())
	for _, m := range talk.Messages() {
		fmt.Printf("%s: %s\n", m.Role, m.Text())
	}
	fmt.Println(err)
	// Output:
	// user: Begin.
	// assistant: Is there more?
	// user: carry on
	// assistant: That was all.
	// <nil>
}
