package llmtest_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"muster/llm"
	"muster/llm/anthropic"
	"muster/llm/llmtest"
	"muster/llm/script"
)

// An adapter is tested against a server whose answers come from a script.
func ExampleHandler() {
	s, err := script.Parse([]byte("speakers: {lead: [{say: Hello.}]}"))
	if err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(llmtest.Handler(s.Model()))
	defer server.Close()
	model := anthropic.New(anthropic.Options{Model: "a-model", BaseURL: server.URL})
	hello := llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text{Text: "Hi."}}}
	reply, err := model.Reply(context.Background(), llm.Request{Messages: []llm.Message{hello}}, nil)
	fmt.Println(reply.Message.Text(), err)
	// Output: Hello. <nil>
}
