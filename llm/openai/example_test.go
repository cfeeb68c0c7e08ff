package openai_test

import (
	"context"
	"fmt"

	"muster/llm"
	"muster/llm/openai"
)

// A model is created without a request; the key is the caller's to find.
func Example() {
	model := openai.New(openai.Options{Model: "a-model", BaseURL: "http://localhost:11434", MaxTokens: 1000})
	ask := func(ctx context.Context) (string, error) {
		reply, err := model.Reply(ctx, llm.Request{
			System: []string{"Answer in one word."},
			Messages: []llm.Message{{Role: llm.User,
				Parts: []llm.Part{llm.Text{Text: "What is the capital of France?"}}}},
		}, func(d llm.Delta) { fmt.Print(d.Text) })
		if err != nil {
			return "", err
		}
		return reply.Message.Text(), nil
	}
	_ = ask // it needs a server
}
