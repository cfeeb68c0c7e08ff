package teammate

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"

	"muster"
	"muster/internal/durable"
	"muster/internal/landing"
	"muster/internal/landingagent"
	"muster/internal/roles"
	"muster/internal/tool/code"
	"muster/journal"
	"muster/llm"
)

// Lander brings a lane's work to the target: landing.Lander.
type Lander interface {
	Target(ctx context.Context) (commit string, err error)
	LandWith(ctx context.Context, id muster.TaskID, fence int, summary string, by muster.Name, agents landing.Agents) (
		landing.Verdict, error)
	Revoke(ctx context.Context, id muster.TaskID, fence int) error
	CheckBase(ctx context.Context) (landing.CheckResult, error)
}

// landingAgents returns the agents that a landing of the member's task may need. They run while the member is parked in
// complete_task, in its lane and for its claim: their calls of tools pass the same hooks, are told of in the same way,
// and end when the claim is lost. What they cost counts for the member and its task.
func (b *toolbox) landingAgents() landing.Agents {
	agents := landing.Agents{Review: b.review}
	if b.Limits.ArbiterTurns > 0 {
		agents.Arbitrate = b.arbitrate
	}
	return agents
}

// review lets a reviewer look at the work in the lane. It has no tool that could change anything, whatever its role
// says.
func (b *toolbox) review(ctx context.Context, r landing.ReviewRequest) (v landing.ReviewVerdict, err error) {
	defer b.presence.showActivity(ctx, "in review by "+r.Role)()
	a, dir, err := b.landingAgent(r.Role, r.Task)
	if err != nil {
		return v, err
	}
	a.Turns = b.Limits.SubagentTurns
	a.Tools = b.decorateFor(a.File, code.ReadTools(readOnlyDir{dir}), dir)
	return a.Review(ctx, r)
}

// arbitrate lets an arbiter work in the lane. What it has started ends with it.
func (b *toolbox) arbitrate(ctx context.Context, d landing.Dispute) (r landing.ArbiterReport, err error) {
	defer b.presence.showActivity(ctx, "in arbitration")()
	a, dir, err := b.landingAgent(landing.DefaultArbiter, d.Task)
	if err != nil {
		return r, err
	}
	run, err := b.Run(ctx)
	if err != nil {
		return r, err
	}
	jobs := code.NewJobs(b.Launcher)
	defer jobs.Close()
	a.Turns, a.Check = b.Limits.ArbiterTurns, run.Check
	a.Tools = b.decorateFor(a.File, code.Tools(dir, b.Launcher, jobs, code.Options{BashTimeout: b.Limits.BashTimeout,
		BackgroundTimeout: b.Limits.BackgroundTimeout, Environ: b.Environ, Outputs: b.outputs(), Root: string(b.Home),
		Patches: knowsPatches(a.ModelName), MayRun: a.File.MayRun}), dir)
	return a.Arbitrate(ctx, d)
}

// landingAgent makes an agent of a role, with the model that the settings give the role, or the member's. dir is where
// its tools run.
func (b *toolbox) landingAgent(role string, t muster.Task) (a landingagent.Agent, dir subagentDir, err error) {
	x := Subagent{}
	if b.Config.Subagent != nil {
		if x, err = b.Config.Subagent(role, b.presence.now, b.presence.onModelWait); err != nil {
			return a, dir, err
		}
	}
	if x.Model == nil {
		x = Subagent{b.model, b.ModelName, b.NoImages, b.MaxTokens}
	}
	file, _ := roles.Named(b.Roles, role)
	dir = subagentDir{&workdir{self: b.self}, x.NoImages}
	return landingagent.Agent{Team: b.Team, Role: role, File: file, Model: x.Model, MaxTokens: x.MaxTokens,
		ModelName: cmp.Or(x.Name, "the team's model"),
		KeepDiff: func(text string) (string, error) {
			path := filepath.Join(b.outputs(), fmt.Sprintf("%s-task-%d.diff", muster.RoleKey(role), t.ID))
			return path, durable.WriteBelow(string(b.Home), path, []byte(text))
		},
		OnReply: func(ctx context.Context, r llm.Reply) {
			b.presence.event(ctx, journal.TurnEnded, usageFields(r, map[string]any{"subagent": true}))
		}}, dir, nil
}

// decorateFor returns those of some tools that a role has, decorated like the member's: the hooks of the user are asked
// about each call, secrets are hidden, and the journal tells what was done.
func (b *toolbox) decorateFor(role roles.Role, list []llm.Tool, dir subagentDir) (allowed []llm.Tool) {
	for _, t := range list {
		if s := t.Spec(); role.Allows(s.Name, !s.ReadOnly) {
			allowed = append(allowed, t)
		}
	}
	return b.decorate(allowed, &nestedInstructions{self: b.self}, dir.workdir, true)
}

// readOnlyDir is a directory in which nothing is written, whatever tool may come to stand in it.
type readOnlyDir struct{ subagentDir }

// Workdir returns the directory.
func (d readOnlyDir) Workdir(ctx context.Context) (code.Workdir, error) {
	at, err := d.subagentDir.Workdir(ctx)
	at.Writable, at.Why = false, "you only read"
	return at, err
}
