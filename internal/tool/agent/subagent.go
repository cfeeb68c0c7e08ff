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
	Explore = "explore" // reads only
	Work    = "work"    // has all tools for code
)

const (
	defaultTurns = 30
	parallel     = 8 // read-only calls of one reply side by side
)

// Options say what a subagent is made of.
type Options struct {
	Model     llm.Model
	Explore   []llm.Tool                       // the tools of a subagent that only reads
	Work      []llm.Tool                       // the tools of one that may change files
	MayWork   func(context.Context) error      // asked before one that may change files starts; nil: it always may
	System    string                           // its system prompt
	CacheKey  string                           // "": none
	Turns     int                              // 0: 30
	MaxTokens int                              // of a reply; 0: the adapter's default
	OnUsage   func(context.Context, llm.Reply) // gets every reply of a subagent; called from several goroutines; nil: nobody
}

type subagentInput struct {
	Prompt string `json:"prompt" jsonschema:"everything it must know: it sees nothing of your conversation"`
	Kind   string `json:"kind" jsonschema:"explore reads only; work may change files and run commands where you stand"`
}

// NewSubagent makes the tool that starts a subagent: a loop with a fresh conversation. Only its last words come back.
func NewSubagent(o Options) llm.Tool {
	if o.Turns <= 0 {
		o.Turns = defaultTurns
	}
	return tool.New("subagent", "Let another agent with an empty conversation do one bounded thing and report. Use it for searches whose output you do not need to keep.",
		func(ctx context.Context, in subagentInput) (llm.Result, error) {
			if strings.TrimSpace(in.Prompt) == "" {
				return llm.ErrorResult("The prompt is empty: say what it is to find or do, and what to report."), nil
			}
			tools := o.Explore
			if in.Kind == Work {
				tools = o.Work
				if err := o.mayWork(ctx); err != nil {
					return tool.FromError(err)
				}
			}
			return o.run(ctx, in.Prompt, tools)
		}, tool.Enum("kind", Explore, Work))
}

// conversation is one subagent's conversation, metered.
type conversation struct {
	*loop.Memory
	onUsage  func(context.Context, llm.Reply)
	progress func(string)
	turns    int
	last     llm.Reply
}

// Append keeps a reply, and tells who counts and who watches.
func (e *conversation) Append(ctx context.Context, r llm.Reply) error {
	e.turns++
	e.last = r
	if e.onUsage != nil {
		e.onUsage(ctx, r)
	}
	for _, c := range r.Message.Calls() {
		e.progress(fmt.Sprintf("turn %d: %s", e.turns, c.Name))
	}
	return e.Memory.Append(ctx, r)
}

// mayWork says why a subagent that may change files cannot start now, nil when it can.
func (o Options) mayWork(ctx context.Context) error {
	if o.MayWork == nil {
		return nil
	}
	return o.MayWork(ctx)
}

// run runs a subagent to its end.
func (o Options) run(ctx context.Context, prompt string, tools []llm.Tool) (llm.Result, error) {
	prefix := llm.Request{MaxTokens: o.MaxTokens, CacheKey: o.CacheKey}
	if o.System != "" {
		prefix.System = []string{o.System}
	}
	for _, t := range tools {
		prefix.Tools = append(prefix.Tools, t.Spec())
	}
	e := &conversation{Memory: loop.NewMemory(prefix), onUsage: o.OnUsage, progress: tool.Progress(ctx)}
	e.Say(llm.Text{Text: prompt})
	_, err := loop.Agent{Model: o.Model, Tools: tools, Conversation: e, Parallel: parallel, MaxTurns: o.Turns}.Run(ctx)
	if errors.Is(err, loop.ErrMaxTurns) {
		err = o.conclude(ctx, e)
	}
	switch llm.KindOf(err) {
	case llm.ContextFull:
		return llm.ErrorResult("The subagent's conversation grew too long before it was done: give it a smaller part."), nil
	case llm.BadRequest:
		return llm.ErrorResult("The subagent's model refuses the request (%v): put it differently, or do it yourself.", err), nil
	}
	if err != nil {
		return llm.Result{}, err // the runtime waits, or ends the turn
	}
	return e.report(), nil
}

// conclude asks once for a summary when the turns are used up. The tools stay in the request, which is the same for
// the cache and for providers that want them beside old calls; but a call would not be run.
func (o Options) conclude(ctx context.Context, e *conversation) error {
	e.Say(llm.Text{Text: fmt.Sprintf("<reminder>You have used your %d turns. Call no more tools. Answer with your summary: what you found or did, and what is still open.</reminder>", o.Turns)})
	r, err := e.Request(ctx)
	if err != nil {
		return err
	}
	reply, err := o.Model.Reply(ctx, r, func(llm.Delta) {})
	if err != nil {
		return err
	}
	reply.Stop = llm.StopEnd // whatever it calls
	return e.Append(ctx, reply)
}

// report is what comes back: the last reply's text.
func (e *conversation) report() llm.Result {
	text := strings.TrimSpace(e.last.Message.Text())
	switch {
	case e.last.Stop == llm.StopRefused:
		return llm.ErrorResult("The subagent's model declined. %s", text)
	case text == "":
		return llm.ErrorResult("The subagent ended without a word after %d turns: ask for less, or do it yourself.", e.turns)
	case e.last.Stop == llm.StopMax:
		text += "\n[cut at its length limit]"
	}
	return tool.Text(text)
}
