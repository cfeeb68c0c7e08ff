// Package agent makes a single agent with the standard tools in a directory: it reads, searches and changes files,
// runs commands, keeps a list of its steps and starts subagents. It needs no git repository, no board and no store,
// and nothing of it lands anywhere. A team that does is package team; an agent with no tools but your own is package
// loop.
//
// New makes an Agent, Ask gives it something to do, Close ends what it has left running. The conversation is in memory:
// each Ask goes on with it, and it ends with the program. File tools are confined to the directory; commands are not.
//
// Read in this order: agent.go (what an agent is), example_test.go (one at work).
//
// The fields of Options and the methods of Agent stay compatible; fields may be added. The names and the input of the
// standard tools, and DefaultSystem, are what a model reads: they may change with any version.
package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"muster"
	"muster/internal/proc"
	"muster/internal/prompt"
	"muster/internal/tool/agent"
	"muster/internal/tool/code"
	"muster/llm"
	"muster/llm/retry"
	"muster/loop"
	"muster/tool"
)

// DefaultSystem is the system prompt of an agent that is given none.
const DefaultSystem = "You work alone in one directory, " +
	"with tools to read and change its files and to run commands there. " +
	"Look before you change anything, check what you have done, and answer with what you did and what is still open."

// DefaultMaxTurns is how often the model is asked for one Ask where Options do not say.
const DefaultMaxTurns = 100

// parallel is how many read-only calls of one reply run side by side.
const parallel = 8

// Options say what an agent is made of. Dir and Model must be set.
type Options struct {
	// Dir is the directory that the agent works in.
	Dir string
	// Model answers it. The agent repeats requests that fail, and waits for rate limits, so Model need not do so.
	Model llm.Model
	// System is its system prompt; "" is DefaultSystem.
	System string
	// Tools are its tools besides the standard ones.
	Tools []llm.Tool
	// MaxTurns is how often the model is asked for one Ask; 0 is DefaultMaxTurns.
	MaxTurns int
	// SubagentTurns is the same for one subagent; 0 is 30.
	SubagentTurns int
	// Emit gets the events of its turns. It must not block, and is called from several goroutines.
	Emit func(loop.Event)
}

// Agent is an agent in a directory.
type Agent struct {
	asking       sync.Mutex // held by Ask: one at a time
	conversation *loop.Memory
	loop         loop.Agent
	launcher     proc.Launcher
	jobs         *code.Jobs
	todo         *agent.Todo
	outputs      string // long outputs of tools, where the agent can read them
}

// Guard makes sure that no tool outlives this program, even if the program is killed. Call it first in main: on Linux
// it may start the program a second time, and does not return there. It does the same as team.Guard, which says more.
func Guard() { proc.GuardMain() }

// New makes an agent. The error is Invalid if the options are. The caller closes the agent.
func New(ctx context.Context, o Options) (*Agent, error) {
	if o.Model == nil {
		return nil, muster.Errorf(muster.Invalid, "an agent needs a Model").
			WithHint("llm/anthropic.New or llm/openai.New")
	}
	dir, err := filepath.Abs(o.Dir)
	if fi, statErr := os.Stat(dir); err != nil || statErr != nil || !fi.IsDir() || o.Dir == "" {
		return nil, muster.Errorf(muster.Invalid, "%q is no directory that an agent can work in", o.Dir)
	}
	outputs, err := os.MkdirTemp("", "muster-agent-")
	if err != nil {
		return nil, err
	}
	launcher, err := proc.New(ctx)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(outputs))
	}
	if o.MaxTurns <= 0 {
		o.MaxTurns = DefaultMaxTurns
	}
	a := &Agent{launcher: launcher, jobs: code.NewJobs(launcher), todo: agent.NewTodo(0, 0), outputs: outputs}
	a.assemble(o, workdir{Dir: dir, Writable: true, ReadOnly: []string{outputs}})
	return a, nil
}

// assemble gives the agent its tools and its conversation.
func (a *Agent) assemble(o Options, dir workdir) {
	key := "agent@" + filepath.Base(dir.Dir) // providers only route by it: two agents may have the same
	model := retry.Wrap(o.Model, retry.Options{})
	newFiles := func() []llm.Tool { return code.Tools(dir, a.launcher, a.jobs, code.Options{Outputs: a.outputs}) }
	subagent := agent.NewSubagent(agent.Options{Model: model, System: prompt.Subagent(), CacheKey: key + "/sub",
		Turns: o.SubagentTurns, Work: newFiles,
		Explore: func() []llm.Tool { return code.ReadTools(dir, a.launcher, code.Options{}) }})
	tools := append(newFiles(), a.todo.Tool(), subagent)
	tools = append(tools, o.Tools...)
	prefix := llm.Request{System: []string{DefaultSystem}, CacheKey: key}
	if o.System != "" {
		prefix.System[0] = o.System
	}
	for i, t := range tools {
		tools[i] = tool.Limit(t, tool.MaxOutput, nil)
		prefix.Tools = append(prefix.Tools, t.Spec())
	}
	a.conversation = loop.NewMemory(prefix)
	a.loop = loop.Agent{Model: model, Conversation: a.conversation, Tools: tools, Boundary: a.boundary, Emit: o.Emit,
		Parallel: parallel, MaxTurns: o.MaxTurns}
}

// Ask tells the agent what to do and returns its answer when it has stopped. The next Ask goes on with the
// conversation, also after an error such as loop.ErrMaxTurns. Calls from several goroutines
// wait for each other.
func (a *Agent) Ask(ctx context.Context, text string) (string, error) {
	a.asking.Lock()
	defer a.asking.Unlock()
	a.conversation.Say(llm.Text{Text: text})
	last, err := a.loop.Run(ctx)
	return last.Message.Text(), err
}

// Messages returns the conversation so far.
func (a *Agent) Messages() []llm.Message { return a.conversation.Messages() }

// Close ends what the agent has left running and removes the long outputs of its tools. The agent cannot be asked
// afterwards.
func (a *Agent) Close() error {
	a.jobs.Close()
	return errors.Join(a.launcher.Close(), os.RemoveAll(a.outputs))
}

// boundary tells the agent which of its background jobs have ended, and reminds it of a list that it has left alone.
func (a *Agent) boundary(_ context.Context, b loop.Boundary) (bool, error) {
	done := a.jobs.Finished()
	if len(done) > 0 {
		a.conversation.Say(llm.Text{Text: code.Render(done)})
	}
	if b == loop.BeforeStop {
		return len(done) > 0, nil
	}
	if text, due := a.todo.Round(slices.ContainsFunc(a.lastCalls(), a.todo.Owns)); due {
		a.conversation.Say(llm.Text{Text: prompt.Reminder("%s", text)})
	}
	return true, nil
}

// lastCalls returns the calls of the last reply.
func (a *Agent) lastCalls() []llm.Call {
	for _, m := range slices.Backward(a.conversation.Messages()) {
		if m.Role == llm.Assistant {
			return m.Calls()
		}
	}
	return nil
}

// workdir is a directory that the agent never leaves.
type workdir code.Workdir

// Workdir returns the directory.
func (w workdir) Workdir(context.Context) (code.Workdir, error) { return code.Workdir(w), nil }
