package teammate

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"muster/internal/proc"
	"muster/internal/prompt"
	"muster/internal/tool/agent"
	"muster/internal/tool/code"
	"muster/internal/tool/teamtools"
	"muster/journal"
	"muster/llm"
	"muster/tool"
)

// profile is the stable prefix of every request: the system prompt and the tools of the lead
// or of a teammate. It never changes while the member works.
type profile struct {
	system []string
	tools  []llm.Tool // decorated; outermost first: the audit, the output limit, the plan gate, the tool
	specs  []llm.Spec // of tools, in the same order
	bare   []llm.Tool // tools without their decorators
}

// toolbox makes the profile of a member. It keeps the profile only while the member works: a
// team may have thousands of idle members. Safe for concurrent use.
type toolbox struct {
	*self
	extra []llm.Tool // of an embedder

	mu   sync.Mutex
	made *profile
}

// get returns the profile, which it makes when the member begins to work.
func (b *toolbox) get() *profile {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.made == nil {
		b.made = b.newProfile()
	}
	return b.made
}

// drop frees the profile.
func (b *toolbox) drop() {
	b.mu.Lock()
	b.made = nil
	b.mu.Unlock()
}

// newProfile makes the profile of the member's record, limits and services.
func (b *toolbox) newProfile() *profile {
	p := &profile{}
	p.system = prompt.Teammate(b.name(), b.record.Role, b.Team)
	toolsFor := teamtools.ForTeammate
	if b.isLead() {
		p.system, toolsFor = prompt.Lead(b.Team), teamtools.ForLead
	}
	dir := &workdir{self: b.self}
	files := code.Tools(dir, b.Launcher, b.jobs, code.Options{BashTimeout: b.limits.BashTimeout,
		BackgroundTimeout: b.limits.BackgroundTimeout, Outputs: b.outputs()})
	team := toolsFor(b.caller(), teamtools.Services{Board: b.Board, Post: b.Post, Roster: b.Roster,
		Requests: b.Requests, Lanes: b.Lanes, Run: b.Run, Log: b.Store.Log(), Exec: b.execInLane})
	p.bare = slices.Concat(files, []llm.Tool{b.todo.Tool(), b.newSubagent(code.ReadTools(dir), files)}, team, b.extra)
	p.tools = b.decorate(p.bare, false)
	for _, t := range p.bare {
		p.specs = append(p.specs, t.Spec())
	}
	return p
}

// newSubagent makes the subagent tool. Its own tools are decorated like the member's: whoever
// calls a tool, the journal tells what it did.
func (b *toolbox) newSubagent(read, files []llm.Tool) llm.Tool {
	return agent.NewSubagent(agent.Options{
		Model: b.model, System: prompt.Subagent(), CacheKey: b.agentID() + "/sub",
		Turns: b.limits.SubagentTurns, MaxTokens: b.limits.MaxTokens,
		Explore: b.decorate(read, true),
		Work:    b.decorate(files, true),
		MayWork: func(ctx context.Context) error { return b.plans.require(ctx, "subagent") },
		OnUsage: func(ctx context.Context, r llm.Reply) {
			b.presence.event(ctx, journal.TurnEnded, usageFields(r, map[string]any{"subagent": true}))
		},
	})
}

// polls reports whether the tool with the name may be called again and again.
func (p *profile) polls(name string) bool {
	return slices.ContainsFunc(p.specs, func(s llm.Spec) bool { return s.Name == name && s.Polls })
}

// recoverer returns the tool with the name if its outcome is in records, or nil.
func (b *toolbox) recoverer(name string) tool.Recoverer {
	for _, t := range b.get().bare {
		if r, ok := t.(tool.Recoverer); ok && t.Spec().Name == name {
			return r
		}
	}
	return nil
}

// decorate puts the decorators around tools. The plan gate is the innermost, so that the
// audit also shows what it refused. The audit is the outermost, so that its events have what
// the model sees.
func (b *toolbox) decorate(list []llm.Tool, subagent bool) []llm.Tool {
	out := make([]llm.Tool, len(list))
	for i, t := range list {
		if t.Spec().NeedsPlan {
			t = tool.Wrap(t, b.plans.gate)
		}
		t = tool.Limit(t, tool.MaxOutput, func(_ context.Context, c llm.Call, whole string) (string, error) {
			return keepOutput(b.outputs(), c.Name+"-"+strings.Map(fileRune, c.ID)+".txt", whole)
		})
		out[i] = tool.Wrap(t, func(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) {
			return b.audit(ctx, c, next, subagent)
		})
	}
	return out
}

// execInLane runs a command in a lane for worktree_run.
func (b *toolbox) execInLane(ctx context.Context, dir, command string, timeout time.Duration) (string, int, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out := code.NewOutput(b.outputs(), "worktree_run")
	p, err := b.Launcher.Start(ctx, proc.Spec{Argv: proc.Shell(command), Dir: dir,
		Env: code.Environ(ctx, os.Environ(), dir), Out: out})
	if err != nil {
		return "", 0, err
	}
	exit, err := p.Wait()
	out.Done()
	text := out.Text()
	if ctx.Err() == context.DeadlineExceeded { // the caller is told what the command had printed by then
		return text + fmt.Sprintf("\n[killed after %s]", timeout), exit, nil
	}
	return text, exit, err
}

// fileRune replaces what does not belong into a file's name.
func fileRune(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
		return r
	}
	return '-'
}
