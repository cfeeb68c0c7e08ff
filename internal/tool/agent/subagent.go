package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"muster/llm"
	"muster/loop"
	"muster/tool"
)

// The kinds of subagents.
const (
	// Explore is a subagent that only reads.
	Explore = "explore"
	// Work is a subagent with all tools for files and commands.
	Work = "work"
)

// The limits of a subagent.
const (
	defaultTurns = 30
	parallel     = 8 // read-only calls of one reply that run at the same time
)

// Options say what a subagent is made of.
type Options struct {
	Model   llm.Model
	Explore []llm.Tool // the tools of a subagent that only reads
	Work    []llm.Tool // the tools of one that may change files
	// MayWork is asked before a subagent that may change files starts. Its error says why none can start now. If it is
	// nil, one can always start.
	MayWork   func(context.Context) error
	System    string // the system prompt of a subagent
	CacheKey  string // "" for none
	Turns     int    // how often the model is asked; 0 for 30
	MaxTokens int    // of one reply; 0 for the adapter's default
	// OnUsage, if it is not nil, gets every reply of a subagent. It is called from several goroutines.
	OnUsage func(context.Context, llm.Reply)
}

// subagentInput is the input of subagent.
type subagentInput struct {
	Prompt string `json:"prompt" jsonschema:"everything it must know: it sees nothing of your conversation"`
	Kind   string `json:"kind" jsonschema:"explore reads only; work may also change files and run commands"`
}

// NewSubagent returns the tool that starts a subagent: a loop with a fresh conversation. Only its last words come back.
func NewSubagent(o Options) llm.Tool {
	if o.Turns <= 0 {
		o.Turns = defaultTurns
	}
	return tool.New("subagent", "Let another agent with an empty conversation do one bounded thing and report. "+
		"Use it for searches whose output you do not need to keep.", o.start, tool.Enum("kind", Explore, Work))
}

// start checks the input and runs a subagent with the tools of its kind.
func (o Options) start(ctx context.Context, in subagentInput) (llm.Result, error) {
	if strings.TrimSpace(in.Prompt) == "" {
		return llm.ErrorResult("The prompt is empty: say what it is to find or do, and what to report."), nil
	}
	if in.Kind != Work {
		return o.run(ctx, in.Prompt, o.Explore)
	}
	if o.MayWork != nil {
		if err := o.MayWork(ctx); err != nil {
			return tool.FromError(err)
		}
	}
	return o.run(ctx, in.Prompt, o.Work)
}

// conversation is the conversation of one subagent. It reports the replies to those who count and watch them.
type conversation struct {
	*loop.Memory
	onUsage  func(context.Context, llm.Reply)
	progress func(string)
	turns    int
	last     llm.Reply
}

// Append adds a reply and reports it. The cost is reported first: it has to be paid in any case.
func (c *conversation) Append(ctx context.Context, r llm.Reply) error {
	c.turns++
	c.last = r
	if c.onUsage != nil {
		c.onUsage(ctx, r)
	}
	for _, call := range r.Message.Calls() {
		c.progress(fmt.Sprintf("turn %d: %s", c.turns, call.Name))
	}
	return c.Memory.Append(ctx, r)
}

// run runs a subagent to its end and returns its report.
func (o Options) run(ctx context.Context, prompt string, tools []llm.Tool) (llm.Result, error) {
	prefix := llm.Request{MaxTokens: o.MaxTokens, CacheKey: o.CacheKey}
	if o.System != "" {
		prefix.System = []string{o.System}
	}
	for _, t := range tools {
		prefix.Tools = append(prefix.Tools, t.Spec())
	}
	c := &conversation{Memory: loop.NewMemory(prefix), onUsage: o.OnUsage, progress: tool.Progress(ctx)}
	c.Say(llm.Text{Text: prompt})
	agent := loop.Agent{Model: o.Model, Tools: tools, Conversation: c, Parallel: parallel, MaxTurns: o.Turns}
	_, err := agent.Run(ctx)
	if errors.Is(err, loop.ErrMaxTurns) {
		err = o.conclude(ctx, c)
	}
	switch llm.KindOf(err) {
	case llm.ContextFull:
		return llm.ErrorResult(
			"The subagent's conversation grew too long before it was done: give it a smaller part."), nil
	case llm.BadRequest:
		return llm.ErrorResult(
			"The subagent's model refuses the request (%v): put it differently, or do it yourself.", err), nil
	}
	if err != nil {
		return llm.Result{}, err // the runtime waits and tries again, or ends the turn
	}
	return c.report(), nil
}

// conclude asks once for a summary when the turns are used up. The request keeps the tools: the provider's cache needs
// the same beginning, and some providers want the tools that old calls name. But no call is run any more.
func (o Options) conclude(ctx context.Context, c *conversation) error {
	c.Say(llm.Text{Text: fmt.Sprintf("<reminder>You have used your %d turns. Call no more tools. "+
		"Answer with your summary: what you found or did, and what is still open.</reminder>", o.Turns)})
	r, err := c.Request(ctx)
	if err != nil {
		return err
	}
	reply, err := o.Model.Reply(ctx, r, func(llm.Delta) {})
	if err != nil {
		return err
	}
	reply.Stop = llm.StopEnd // even if it calls a tool
	return c.Append(ctx, reply)
}

// report returns what the calling agent reads: the text of the last reply. Everything else of the conversation is
// dropped, which is the purpose of a subagent.
func (c *conversation) report() llm.Result {
	text := strings.TrimSpace(c.last.Message.Text())
	switch {
	case c.last.Stop == llm.StopRefused:
		return llm.ErrorResult("The subagent's model declined. %s", text)
	case text == "":
		return llm.ErrorResult("The subagent ended without a word after %d turns: ask for less, or do it yourself.",
			c.turns)
	case c.last.Stop == llm.StopMax:
		text += "\n[cut at its length limit]"
	}
	return tool.Text(text)
}
