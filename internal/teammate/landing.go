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
	"muster/llm"
)

// Lander brings a lane's work to the target: landing.Lander.
type Lander interface {
	Target(ctx context.Context) (commit string, err error)
	LandWith(
		ctx context.Context, id muster.TaskID, fence int, summary string, by muster.Name, owner landing.Owner,
	) (landing.Verdict, error)
	Revoke(ctx context.Context, id muster.TaskID, fence int) error
	CheckBase(ctx context.Context) (landing.CheckResult, error)
}

// review lets a reviewer look at the work in the lane, for a landing. The reviewer runs in the lane while the member is
// parked in complete_task: its calls of tools pass the same hooks, appear in the same events, and end when the claim is
// lost. What it costs counts for the member and its task. It has the model that the settings give its role, or the
// member's, and no tool that could change anything, whatever its role says.
func (b *toolbox) review(ctx context.Context, r landing.ReviewRequest) (v landing.ReviewVerdict, err error) {
	defer b.presence.showActivity(ctx, "in review by "+r.Role)()
	x := Subagent{}
	if b.Config.Subagent != nil {
		if x, err = b.Config.Subagent(r.Role, b.presence.now, b.presence.onModelWait); err != nil {
			return v, err
		}
	}
	if x.Model == nil {
		x = Subagent{b.model, b.ModelName, b.NoImages, b.MaxTokens}
	}
	file, _ := roles.Named(b.Roles, r.Role)
	dir := subagentDir{b.newWorkdir(), x.NoImages}
	return landingagent.Agent{Team: b.Team, Role: r.Role, File: file, Model: x.Model, MaxTokens: x.MaxTokens,
		ModelName: cmp.Or(x.Name, "the team's model"), Turns: b.Limits.SubagentTurns,
		Tools: b.decorateFor(file, b.newReadTools(readOnlyDir{dir}), dir),
		KeepDiff: func(text string) (string, error) {
			path := filepath.Join(b.outputs(), fmt.Sprintf("%s-task-%d.diff", muster.RoleKey(r.Role), r.Task.ID))
			return path, durable.WriteBelow(string(b.Home), path, []byte(text))
		},
		OnReply: func(ctx context.Context, reply llm.Reply) {
			b.diary.replied(ctx, reply, map[string]any{"subagent": true})
		}}.Review(ctx, r)
}

// decorateFor returns those of some tools that a role has, decorated like the member's: the hooks of the user are asked
// about each call, secrets are hidden, and the journal tells what was done.
func (b *toolbox) decorateFor(role roles.Role, list []llm.Tool, dir subagentDir) (allowed []llm.Tool) {
	for _, t := range list {
		if s := t.Spec(); role.Allows(s.Name, !s.ReadOnly) {
			allowed = append(allowed, t)
		}
	}
	return b.decorate(allowed, b.nested.ofSubagent(), dir.workdir, true)
}

// readOnlyDir is a directory in which nothing is written, whatever tool may come to stand in it.
type readOnlyDir struct{ subagentDir }

// Workdir returns the directory.
func (d readOnlyDir) Workdir(ctx context.Context) (code.Workdir, error) {
	at, err := d.subagentDir.Workdir(ctx)
	at.Writable, at.Why = false, "you only read"
	return at, err
}
