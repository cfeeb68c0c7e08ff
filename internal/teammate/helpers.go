package teammate

import (
	"cmp"
	"context"
	"fmt"

	"muster"
	"muster/internal/landing"
	"muster/internal/landingagent"
	"muster/internal/prompt"
	"muster/internal/roles"
	"muster/internal/tool/agent"
	"muster/internal/tool/code"
	"muster/llm"
)

// helpers are the agents that work for the member: its subagents, and the reviewers of its landings. Their calls of
// tools pass the same wrappers as the member's: whoever calls one, the journal tells what it did.
type helpers struct {
	name     muster.Name
	team     muster.Name
	role     roles.Role
	roles    []roles.Role
	models   *models
	turns    int
	files    *fileTools
	wraps    *wrappers
	nested   *nestedInstructions
	plans    *plans
	about    facts
	presence display
	diary    *diary

	newWorkdir func() *workdir
}

// facts are what a model is told of its surroundings.
type facts interface {
	texts(ctx context.Context, isSubagent bool) ([]string, error)
}

// models are the member's model and those of its helpers.
type models struct {
	own       Subagent
	subagents map[string]Subagent // by kind
	// choose returns the model of a kind of helpers; its Model is nil where that is the member's. Nil: always.
	choose func(kind string) (Subagent, error)
}

func (m *models) of(kind string) (x Subagent, err error) {
	if m.choose != nil {
		x, err = m.choose(kind)
	}
	if err == nil && x.Model == nil {
		x = m.own
	}
	return x, err
}

// newSubagent makes the subagent tool.
func (h *helpers) newSubagent(dir *workdir) llm.Tool {
	wrap := func(list []llm.Tool) []llm.Tool {
		return h.wraps.around(allowed(h.role, list), h.nested.ofSubagent(), dir, true)
	}
	explore, work := h.models.subagents[agent.Explore], h.models.subagents[agent.Work]
	o := agent.Options{
		Models: map[string]agent.Model{agent.Explore: {Model: explore.Model, MaxTokens: explore.MaxTokens},
			agent.Work: {Model: work.Model, MaxTokens: work.MaxTokens}},
		System: prompt.Subagent(), CacheKey: agentID(h.name, h.team) + "/sub", CacheGroup: string(h.team) + "/sub",
		Turns:   h.turns,
		Explore: func() []llm.Tool { return wrap(h.files.reading(subagentDir{dir, explore.NoImages})) },
		Surroundings: func(ctx context.Context) ([]string, error) {
			at, err := dir.Workdir(ctx)
			if err != nil {
				return nil, err
			}
			about, err := h.about.texts(ctx, true)
			return append(about, prompt.SubagentDir(at.Dir)), err
		},
		MayWork: func(ctx context.Context) error { return h.plans.require(ctx, "subagent") },
		OnUsage: func(ctx context.Context, r llm.Reply) {
			h.diary.replied(ctx, r, map[string]any{"subagent": true})
		},
	}
	if h.role.Writes() {
		o.Work = func() []llm.Tool { return wrap(h.files.tools(subagentDir{dir, work.NoImages}, work.Name)) }
	}
	return agent.NewSubagent(o)
}

// review lets a reviewer look at the work in the lane, for a landing. The reviewer runs in the lane while the member is
// parked in complete_task: its calls of tools end when the claim is lost. What it costs counts for the member and its
// task. It has the model that the settings give its role, or the member's, and no tool that could change anything,
// whatever its role says.
func (h *helpers) review(ctx context.Context, r landing.ReviewRequest) (v landing.ReviewVerdict, err error) {
	defer h.presence.showActivity(ctx, "in review by "+r.Role)()
	x, err := h.models.of(r.Role)
	if err != nil {
		return v, err
	}
	file, _ := roles.Named(h.roles, r.Role)
	dir := subagentDir{h.newWorkdir(), x.NoImages}
	tools := allowed(file, h.files.reading(readOnlyDir{dir}))
	return landingagent.Agent{Team: h.team, Role: r.Role, File: file, Model: x.Model, MaxTokens: x.MaxTokens,
		ModelName: cmp.Or(x.Name, "the team's model"), Turns: h.turns,
		Tools: h.wraps.around(tools, h.nested.ofSubagent(), dir.workdir, true),
		KeepDiff: func(text string) (string, error) {
			return h.files.keep(fmt.Sprintf("%s-task-%d.diff", muster.RoleKey(r.Role), r.Task.ID), text)
		},
		OnReply: func(ctx context.Context, reply llm.Reply) {
			h.diary.replied(ctx, reply, map[string]any{"subagent": true})
		}}.Review(ctx, r)
}

// readOnlyDir is a directory in which nothing is written, whatever tool may come to stand in it.
type readOnlyDir struct{ subagentDir }

// Workdir returns the directory.
func (d readOnlyDir) Workdir(ctx context.Context) (code.Workdir, error) {
	at, err := d.subagentDir.Workdir(ctx)
	at.Writable, at.Why = false, "you only read"
	return at, err
}
