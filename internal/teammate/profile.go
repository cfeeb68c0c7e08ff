package teammate

import (
	"context"
	"path/filepath"
	"strings"

	"muster/internal/prompt"
	"muster/internal/tool/agent"
	"muster/internal/tool/code"
	"muster/internal/tool/teamtools"
	"muster/llm"
	"muster/tool"
)

// profile is what makes a member the lead or a teammate while it works: everything that depends on its role, its limits
// and its tools is decided here and nowhere else. It never changes: it is the stable prefix of every request.
type profile struct {
	Limits
	system []string
	tools  []llm.Tool // wrapped; outermost first: what happened, output limit, plan gate, the tool
	specs  []llm.Spec // of tools, in the same order
	// recoverers are the tools whose outcome is in records, by name.
	recoverers map[string]tool.Recoverer
}

// profile returns the member's profile, which it makes when the member begins to work: an idle one holds none.
func (m *Member) profile() *profile {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.made == nil {
		m.made = m.newProfile()
	}
	return m.made
}

// newProfile makes the profile of the member's record, limits and services.
func (m *Member) newProfile() *profile {
	p := &profile{Limits: m.Limits, recoverers: map[string]tool.Recoverer{}}
	services := teamtools.Services{Board: m.Board, Post: m.Post, Roster: m.Roster, Requests: m.Requests, Lanes: m.Lanes,
		Run: m.Run, Log: m.Store.Log(), Exec: m.exec}
	p.system = prompt.Teammate(m.name(), m.Record.Role, m.Team)
	forRole := teamtools.ForTeammate
	if m.lead() {
		p.system, forRole = prompt.Lead(m.Team), teamtools.ForLead
	}
	files := code.Tools(m, m.Launcher, m.jobs, code.Options{BashTimeout: p.BashTimeout,
		BackgroundTimeout: p.BackgroundTimeout, Outputs: filepath.Join(m.Home.Outputs(), string(m.name()))})
	own := append([]llm.Tool{}, files...)
	own = append(own, m.todo.Tool(), agent.NewSubagent(agent.Options{
		Model: m.model, System: prompt.Subagent(), CacheKey: m.agentID() + "/sub",
		Turns: p.SubagentTurns, MaxTokens: p.MaxTokens,
		Explore: m.wrap(code.ReadTools(m), m.auditSubagent), Work: m.wrap(files, m.auditSubagent),
		MayWork: func(ctx context.Context) error { return m.requirePlan(ctx, "subagent") },
		OnUsage: func(r llm.Reply) { m.meter(context.Background(), r, map[string]any{"subagent": true}) },
	}))
	own = append(append(own, forRole(m, services)...), m.Extra...)
	p.tools = m.wrap(own, m.audit)
	for _, t := range own {
		p.specs = append(p.specs, t.Spec())
		if r, ok := t.(tool.Recoverer); ok {
			p.recoverers[t.Spec().Name] = r
		}
	}
	return p
}

// polls reports whether the tool with the name may be called again and again.
func (p *profile) polls(name string) bool {
	for _, s := range p.specs {
		if s.Name == name {
			return s.Polls
		}
	}
	return false
}

// auditor is a decorator that writes the calls of a tool to the journal.
type auditor = func(context.Context, llm.Call, tool.Next) (llm.Result, error)

// wrap puts the decorators around tools. Every tool has an auditor: whoever calls it, what it did can be read.
func (m *Member) wrap(list []llm.Tool, audit auditor) []llm.Tool {
	out := make([]llm.Tool, len(list))
	for i, t := range list {
		if t.Spec().NeedsPlan {
			t = tool.Wrap(t, m.planGate)
		}
		t = tool.Limit(t, maxOutput, func(_ context.Context, c llm.Call, whole string) (string, error) {
			return m.keepOutput(c.Name+"-"+strings.Map(plain, c.ID)+".txt", whole)
		})
		out[i] = tool.Wrap(t, audit)
	}
	return out
}

// planGate refuses a tool that changes something while a required plan is not approved.
func (m *Member) planGate(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) {
	if err := m.requirePlan(ctx, c.Name); err != nil {
		return tool.FromError(err)
	}
	return next(ctx, c)
}
