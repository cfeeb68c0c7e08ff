package agent_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"muster/agent"
	"muster/llm/script"
)

// A single agent in a directory. The model is a scripted one; anthropic.New and openai.New make others.
func ExampleNew() {
	words, err := script.Parse([]byte(`
speakers:
  agent:
    - do: [{write_file: {path: greeting, content: "hello\n"}}]
    - do: [{bash: {command: cat greeting}}]
    - say: The greeting is there.
`))
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	ctx := context.Background()
	a, err := agent.New(ctx, agent.Options{Dir: dir, Model: words.Model()})
	if err != nil {
		log.Fatal(err)
	}
	defer a.Close()
	answer, err := a.Ask(ctx, "Write something to greet people.")
	fmt.Println(answer, err)
	data, _ := os.ReadFile(filepath.Join(dir, "greeting"))
	fmt.Print(string(data))
	// Output:
	// The greeting is there. <nil>
	// hello
}
