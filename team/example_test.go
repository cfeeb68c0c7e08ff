package team_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"muster"
	"muster/llm"
	"muster/llm/script"
	"muster/store/file"
	"muster/store/mem"
	"muster/team"
	"muster/tool"
)

// A team of a lead and one teammate on a throw-away repository. The model is a script; anthropic.New or openai.New
// take its place in earnest.
func ExampleTeam() {
	dir := repository()
	defer os.RemoveAll(dir)
	store := must(file.Open(dir))
	defer store.Close()
	model := must(script.Parse([]byte(`
speakers:
  lead:
    - do: [{task_create: {subject: greet}}, {spawn_teammate: {name: alice, role: coder, prompt: You write code.}}]
    - do: [{wait: {}}]
      until: All done
    - say: The greeting is there.
  alice:
    - do: [{write_file: {path: greeting, content: "hello\n"}}]
    - do: [{complete_task: {task_id: 1, summary: Says hello.}}]
`)))

	t := must(team.Open(context.Background(), team.Config{
		Dir: dir, Store: store, Name: "greeters", Teammates: 1, Check: "test -e README",
		Model: func(string) (llm.Model, error) { return model.Model(), nil },
	}))
	sum := must(t.Run(context.Background(), "write a greeting", team.Start{}))
	fmt.Println(sum.Code, sum.Text)
	for _, task := range sum.Tasks {
		fmt.Println(task.ID, task.Subject, task.Owner, task.Landed.Receipt)
	}
	fmt.Print(git(dir, "show", "muster/greeters:greeting"))
	// Output:
	// 0 The greeting is there.
	// 1 greet alice ok
	// hello
}

// A tool of your own is a typed function. Every member has it, besides its own.
func ExampleConfig_tools() {
	type input struct {
		Ticket int `json:"ticket" jsonschema:"its number"`
	}
	ticket := tool.Func("ticket", "What a ticket asks for.", func(_ context.Context, in input) (string, error) {
		if in.Ticket != 7 {
			return "", errors.New("there is no such ticket") // told to the model
		}
		return "The greeting is not polite.", nil
	}, tool.ReadOnly())

	sum := run(`
speakers:
  lead:
    - do: [{ticket: {ticket: 7}}]
    - cue: not polite
      say: Ticket 7 is about manners.
`, func(c *team.Config) { c.Tools = []llm.Tool{ticket} })
	fmt.Println(sum.Text)
	// Output: Ticket 7 is about manners.
}

// plan is a model of one's own: it makes its calls one after the other, whatever comes back. A real one would ask a
// server, and return its errors as *llm.Error, so that they are dealt with.
type plan []llm.Call

func (p plan) Reply(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Reply, error) {
	said := 0
	for _, m := range r.Messages {
		if m.Role == llm.Assistant {
			said++
		}
	}
	if said < len(p) {
		call := p[said]
		call.ID = fmt.Sprint("call-", said)
		return llm.Reply{Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{call}}, Stop: llm.StopTools}, nil
	}
	return llm.Reply{Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{llm.Text{Text: "That was all."}}}, Stop: llm.StopEnd}, nil
}

// Any Go type with a Reply method is a model. With Teammates 0 the lead does everything.
func Example_ownModel() {
	input := func(s string) json.RawMessage { return json.RawMessage(s) }
	sum := run("", func(c *team.Config) {
		c.Teammates = 0
		c.Model = func(string) (llm.Model, error) {
			return plan{
				{Name: "task_create", Input: input(`{"subject":"greet"}`)},
				{Name: "claim_task", Input: input(`{"task_id":1}`)},
				{Name: "write_file", Input: input(`{"path":"greeting","content":"hello\n"}`)},
				{Name: "complete_task", Input: input(`{"task_id":1,"summary":"Says hello."}`)},
			}, nil
		}
	})
	fmt.Println(sum.Tasks[0].Status, sum.Tasks[0].Result)
	fmt.Println(sum.Text)
	// Output:
	// completed Says hello.
	// That was all.
}

// What happens is in the store's log, in one order. A position is all that a reader keeps: after a break it goes on
// from there.
func Example_events() {
	store := mem.New()
	over, stop := context.WithCancel(context.Background())
	told := make(chan struct{})
	go func() {
		defer close(told)
		follow(over, store.Log(), func(e muster.Event) {
			switch e.Kind {
			case "task.created", "task.claimed", "task.completed":
				fmt.Println(e.Member, e.Kind, e.Task, e.Text("subject"))
			}
		})
	}()
	run(`
speakers:
  lead:
    - do: [{task_create: {subject: look around}}, {claim_task: {task_id: 1}}]
    - do: [{complete_task: {task_id: 1, summary: Nothing to see.}}]
    - say: Done.
`, func(c *team.Config) { c.Store = store })
	stop()
	<-told
	// Output:
	// lead task.created 1 look around
	// lead task.claimed 1 look around
	// lead task.completed 1 look around
}

// follow tells every event, and waits for more until ctx ends; those that are there by then are told too.
func follow(ctx context.Context, log muster.Log, tell func(muster.Event)) {
	var after muster.Pos
	more := log.Watch(ctx, muster.StreamEvents) // before the first read, so that nothing is missed
	for ctx.Err() == nil {
		select {
		case <-more:
		case <-ctx.Done():
		}
		for r, err := range log.Read(context.WithoutCancel(ctx), muster.StreamEvents, after) {
			var e muster.Event
			if err == nil && json.Unmarshal(r.Data, &e) == nil {
				tell(e)
			}
			after = max(after, r.Pos)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// repository makes a git repository with one commit.
func repository() string {
	dir := must(os.MkdirTemp("", "muster-example-"))
	must(0, os.WriteFile(dir+"/README", []byte("an example\n"), 0o644))
	git(dir, "init", "-q", "-b", "main")
	git(dir, "add", ".")
	git(dir, "-c", "user.name=example", "-c", "user.email=example@localhost", "commit", "-q", "-m", "start")
	return dir
}

func git(dir string, args ...string) string {
	return string(must(exec.Command("git", append([]string{"-C", dir}, args...)...).Output()))
}

// run runs a goal on a throw-away repository, with the state in memory and a script for the model, as change has it.
func run(words string, change func(*team.Config)) team.Summary {
	dir := repository()
	defer os.RemoveAll(dir)
	c := team.Config{Dir: dir, Store: mem.New(), Teammates: 1,
		Model: func(string) (llm.Model, error) { return must(script.Parse([]byte(words))).Model(), nil }}
	change(&c)
	t := must(team.Open(context.Background(), c))
	return must(t.Run(context.Background(), "the goal", team.Start{}))
}
