package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"muster/internal/compact"
	"muster/internal/prompt"
	"muster/llm"
	"muster/llm/repair"
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
	Model llm.Model
	// Models has the models of the kinds that have one of their own.
	Models map[string]Model
	// Explore returns the tools of a new subagent that only reads, and Work those of one that may change files. They
	// are made for each, because tools may remember what their agent has been told. Without Work there are none of
	// those.
	Explore, Work func() []llm.Tool
	// Surroundings returns what a subagent is told of where it works before it is told what to do, each text as a part
	// of the message: what most subagents are told comes first. nil is nothing.
	Surroundings func(context.Context) ([]string, error)
	// MayWork is asked before a subagent that may change files starts. Its error says why none can start now. If it is
	// nil, one can always start.
	MayWork  func(context.Context) error
	System   string // the system prompt of a subagent
	CacheKey string // "" for none
	// CacheGroup names the agents whose subagents have the same prompt and tools. The kind is added to it.
	CacheGroup string
	Turns      int // how often the model is asked; 0 for 30
	MaxTokens  int // of one reply; 0 for the adapter's default
	// Begin, if it is not nil, is called when a subagent starts. The subagent works with the context that it returns,
	// and end is called when it has ended. It is called from several goroutines.
	Begin func(ctx context.Context, kind, prompt string) (_ context.Context, end func(), err error)
}

// Model is the model of a kind of subagents.
type Model struct {
	llm.Model
	MaxTokens int // of one reply; 0 for the adapter's default
}

// subagentInput is the input of subagent.
type subagentInput struct {
	Prompt string `json:"prompt" jsonschema:"everything it must know: it sees nothing of your conversation"`
	Kind   string `json:"kind" jsonschema:"explore reads only; work may also change files and run commands"`
}

// NewSubagent returns the tool that starts a subagent: a loop with a fresh conversation. Only its last words come back.
// Those of one reply that only read run side by side.
func NewSubagent(o Options) llm.Tool {
	if o.Turns <= 0 {
		o.Turns = defaultTurns
	}
	kinds := []string{Explore}
	if o.Work != nil {
		kinds = append(kinds, Work)
	}
	return tool.New("subagent", prompt.Tool("subagent"), o.start, tool.Enum("kind", kinds...),
		tool.ReadOnlyIf(func(in subagentInput) bool { return in.Kind == Explore }))
}

// start checks the input and runs a subagent with the tools of its kind.
func (o Options) start(ctx context.Context, in subagentInput) (llm.Result, error) {
	if strings.TrimSpace(in.Prompt) == "" {
		return llm.ErrorResult("The prompt is empty: say what it is to find or do, and what to report."), nil
	}
	newTools := o.Explore
	if in.Kind == Work {
		newTools = o.Work
		if o.MayWork != nil {
			if err := o.MayWork(ctx); err != nil {
				return tool.FromError(err)
			}
		}
	}
	var said []llm.Part
	if o.Surroundings != nil {
		about, err := o.Surroundings(ctx)
		if err != nil {
			return tool.FromError(tool.Classify(err))
		}
		for _, text := range about {
			said = append(said, llm.Text{Text: text})
		}
	}
	if own, ok := o.Models[in.Kind]; ok {
		o.Model, o.MaxTokens = own.Model, own.MaxTokens
	}
	if o.CacheGroup != "" {
		o.CacheGroup += "/" + in.Kind
	}
	if o.Begin != nil {
		of, end, err := o.Begin(ctx, in.Kind, in.Prompt)
		if err != nil {
			return tool.FromError(tool.Classify(err))
		}
		defer end()
		ctx = of
	}
	return o.run(ctx, append(said, llm.Text{Text: in.Prompt}), newTools())
}

func (o Options) run(ctx context.Context, said []llm.Part, tools []llm.Tool) (llm.Result, error) {
	// The conversation begins with the tools and the system prompt, which are the same for all subagents of a kind,
	// so that the provider can reuse what it has cached of them.
	prefix := llm.Request{MaxTokens: o.MaxTokens, CacheKey: o.CacheKey, CacheGroup: o.CacheGroup, Purpose: "subagent"}
	if o.System != "" {
		prefix.System = []string{o.System}
	}
	for _, t := range tools {
		prefix.Tools = append(prefix.Tools, t.Spec())
	}
	turns, progress := 0, tool.Progress(ctx)
	onReply := func(r llm.Reply) {
		turns++
		for _, call := range r.Message.Calls() {
			progress(fmt.Sprintf("turn %d: %s", turns, call.Name))
		}
	}
	c := loop.NewMemory(prefix)
	c.Say(said...)
	var mistakes repair.Mistakes
	var mistake error
	last, err := loop.Agent{Model: o.Model, Tools: tools, Conversation: c, Parallel: parallel, MaxTurns: o.Turns,
		Boundary: func(_ context.Context, b loop.Boundary) (bool, error) {
			return b == loop.BetweenRounds && mistake == nil, nil
		},
		Emit: func(e loop.Event) {
			if e, ok := e.(loop.TurnEnded); ok {
				onReply(e.Reply)
				mistake = mistakes.Count(e.Reply.Message.Calls())
			}
		}}.Run(ctx)
	if isFull := llm.KindOf(err) == llm.ContextFull && turns > 0; isFull || errors.Is(err, loop.ErrMaxTurns) {
		if last, err = o.askReport(ctx, c, isFull); err == nil {
			onReply(last)
		}
		// Its text is the report, also where the model wanted to call a tool once more.
		last.Stop = llm.StopEnd
	}
	switch llm.KindOf(err) {
	case llm.ContextFull:
		return llm.ErrorResult(
			"The subagent's conversation grew too long before it was done: give it a smaller part."), nil
	case llm.BadRequest, llm.BadHistory:
		return llm.ErrorResult(
			"The subagent's model refuses the request (%v): put it differently, or do it yourself.", err), nil
	}
	if err == nil && mistake != nil {
		return llm.ErrorResult("The subagent was stopped: %v. Put it differently, or do it yourself.", mistake), nil
	}
	if err != nil {
		return llm.Result{}, err // the runtime waits and tries again, or ends the turn
	}
	return report(last, turns), nil
}

// askReport asks a subagent once for its report: it has used its turns, or its conversation is full. Of one that is
// full the newest third is left, which fits most probably. The request keeps the tools: the provider's cache needs the
// same beginning, and some providers want the tools that old calls name. But no call is run any more, even if it makes
// one.
func (o Options) askReport(ctx context.Context, c *loop.Memory, isFull bool) (last llm.Reply, err error) {
	why := fmt.Sprintf("You have used your %d turns.", o.Turns)
	if isFull {
		why = "Your conversation has grown too long: its beginning is left out."
		all := c.Messages()
		tail, _ := compact.Tail(all, compact.Estimate(all)/3)
		if err := c.Replace(ctx, compact.Behind([]string{all[0].Parts.Text()}, tail)); err != nil {
			return last, err
		}
	}
	c.Say(llm.Text{Text: fmt.Sprintf("<reminder>%s Call no more tools. "+
		"Answer with your summary: what you found or did, and what is still open.</reminder>", why)})
	r, err := c.Request(ctx)
	if err != nil {
		return last, err
	}
	return o.Model.Reply(ctx, r, func(llm.Delta) {})
}

// report returns what the calling agent reads: the text of the last reply. Everything else of the conversation is
// dropped, which is the purpose of a subagent.
func report(last llm.Reply, turns int) llm.Result {
	text := strings.TrimSpace(last.Message.Text())
	switch {
	case last.Stop == llm.StopRefused:
		return llm.ErrorResult("The subagent's model declined. %s", text)
	case text == "":
		return llm.ErrorResult("The subagent ended without a word after %d turns: ask for less, or do it yourself.",
			turns)
	case last.Stop == llm.StopMax:
		text += "\n[cut at its length limit]"
	}
	return tool.Text(text)
}
