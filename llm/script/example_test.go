package script_test

import (
	"context"
	"fmt"

	"muster/llm"
	"muster/llm/script"
)

// A scripted model says its lines in order.
func Example() {
	s, err := script.Parse([]byte("speakers: {lead: [{say: Hello.}]}"))
	if err != nil {
		fmt.Println(err)
		return
	}
	reply, err := s.Model().Reply(context.Background(), llm.Request{}, func(llm.Delta) {})
	fmt.Println(reply.Message.Text(), err)
	// Output: Hello. <nil>
}
