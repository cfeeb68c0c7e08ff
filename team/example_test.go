package team_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"

	"muster"
	"muster/journal"
	"muster/llm"
	"muster/llm/script"
	"muster/store/file"
	"muster/store/mem"
	"muster/team"
	"muster/tool"
)

// A team on a repository: twenty lines, and a model. This one is a script, of a lead and one teammate; in earnest it is
// anthropic.New, openai.New or your own.
func ExampleTeam() {
	ctx, dir := context.Background(), repository()
	defer os.RemoveAll(dir)
	root, err := team.FindRoot(ctx, dir)
	if err != nil {
		log.Fatal(err)
	}
	store, err := file.Open(root)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	t, err := team.Open(ctx, team.Config{Dir: root, Store: store, Model: greeters, Name: "greeters",
		Settings: team.Settings{Teammates: 1, Check: "test -e README"}})
	if err != nil {
		log.Fatal(err)
	}
	sum, err := t.Run(ctx, "write a greeting", team.Start{})
	if err != nil {
		log.Fatal(err)
	}
	for _, task := range sum.Tasks {
		fmt.Println(task.ID, task.Subject, task.Owner, task.Status)
	}
	fmt.Println(sum.Code, sum.Text)
	fmt.Print(git(dir, "show", "muster/greeters:greeting"))
	// Output:
	// 1 greet alice completed
	// 0 The greeting is there.
	// hello
}

func greeters(string) (llm.Model, error) { return scripted(greeting) }

const greeting = `
speakers:
  lead:
    - do: [{task_create: {subject: greet}}, {spawn_teammate: {name: alice, role: coder, prompt: You write code.}}]
    - do: [{wait: {}}]
      until: All done
    - say: The greeting is there.
  alice:
    - do: [{write_file: {path: greeting, content: "hello\n"}}]
    - do: [{complete_task: {task_id: 1, summary: Says hello.}}]
`

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

// What happens is told in one order, while it happens and afterwards. A position is all that a reader keeps: after a
// break it goes on from there.
func Example_events() {
	dir := repository()
	defer os.RemoveAll(dir)
	t := opened(dir, `
speakers:
  lead:
    - do: [{task_create: {subject: look around}}, {claim_task: {task_id: 1}}]
    - do: [{complete_task: {task_id: 1, summary: Nothing to see.}}]
    - say: Done.
`, nil)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := t.Run(ctx, "the goal", team.Start{})
		if err != nil {
			stop() // no run.ended will come
		}
		ended <- err
	}()

	after := muster.Pos(0) // the beginning
	read := func(until string) {
		for e, err := range t.Events(ctx, after) {
			if err != nil {
				fmt.Println(err)
				continue
			}
			after = e.Pos
			switch e.Kind {
			case journal.TaskCreated, journal.TaskClaimed, journal.TaskCompleted:
				fmt.Println(e.Member, e.Kind, e.Task, e.Text("subject"))
			}
			if e.Kind == until {
				return
			}
		}
	}
	read(journal.TaskClaimed)
	fmt.Println("(a break)")
	read(journal.RunEnded)
	fmt.Println(<-ended)
	// Output:
	// lead task.created 1 look around
	// lead task.claimed 1 look around
	// (a break)
	// lead task.completed 1 look around
	// <nil>
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

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

func run(words string, change func(*team.Config)) team.Summary {
	dir := repository()
	defer os.RemoveAll(dir)
	return must(opened(dir, words, change).Run(context.Background(), "the goal", team.Start{}))
}

// opened is a team with the state in memory and a script for the model, as change has it.
func opened(dir, words string, change func(*team.Config)) *team.Team {
	c := team.Config{Dir: dir, Store: mem.New(), Settings: team.Settings{Teammates: 1},
		Model: func(string) (llm.Model, error) { return scripted(words) }}
	if change != nil {
		change(&c)
	}
	return must(team.Open(context.Background(), c))
}

func scripted(words string) (llm.Model, error) {
	s, err := script.Parse([]byte(words))
	if err != nil {
		return nil, err
	}
	return s.Model(), nil
}
