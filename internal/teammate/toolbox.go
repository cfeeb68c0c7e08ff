package teammate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"muster"
	"muster/internal/compact"
	"muster/internal/durable"
	"muster/internal/proc"
	"muster/internal/prompt"
	"muster/internal/text"
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
	size   int        // tokens of system and specs, as they are estimated
	bare   []llm.Tool // tools without their decorators

	effects map[string]toolEffects // of those tools that have some, by their names
}

// toolbox makes the profile of a member. It keeps the profile only while the member works: a
// team may have thousands of idle members. Safe for concurrent use.
type toolbox struct {
	*self
	made    atomic.Pointer[profile]
	denials denials
	since   float64 // when this process began to run the member
}

// get returns the profile, which it makes when the member begins to work. Two calls at the
// same time may both make one; the two are the same.
func (b *toolbox) get() *profile {
	if p := b.made.Load(); p != nil {
		return p
	}
	p := b.newProfile()
	b.made.Store(p)
	return p
}

func (b *toolbox) newProfile() *profile {
	p := &profile{}
	p.system = prompt.Teammate(b.Record.Role, b.Team, b.Secrets.String(b.role.Render()), b.role.Writes())
	toolsFor := teamtools.ForTeammate
	if b.isLead() {
		p.system, toolsFor = prompt.Lead(b.Team), teamtools.ForLead
	}
	dir := b.newWorkdir()
	team := toolsFor(b.caller(), teamtools.Services{Board: b.Board, Post: b.Post, Roster: b.Roster,
		Requests: b.Requests, Lanes: b.Lanes, Run: b.Run, Log: b.Store.Log(), Exec: b.execInLane,
		Revoke: b.revoke})
	files, subagent := b.allowed(b.newFileTools(dir, b.ModelName)), b.allowed([]llm.Tool{b.newSubagent(dir)})
	extra, remember := b.allowed(b.Extra), b.memoryTools()
	if b.ServerTools != nil {
		extra = append(extra, b.ServerTools(b.role.Allows)...)
	}
	p.bare = slices.Concat(files, []llm.Tool{b.todo.Tool(), b.compaction.tool()}, subagent, team,
		agent.SkillTools(b.Skills), remember, extra)
	p.effects = effectsOf(slices.Concat(files, subagent), slices.Concat(team, extra))
	p.tools = b.decorate(p.bare, b.nested, dir, false)
	for _, t := range p.bare {
		p.specs = append(p.specs, t.Spec())
	}
	p.size = compact.PrefixTokens(p.system, p.specs)
	return p
}

// allowed returns those of some tools that the member's role has. Every tool with which a member works passes through
// here, and none by which it takes part in the team: what it does not have it cannot call, whoever says so.
func (b *toolbox) allowed(list []llm.Tool) []llm.Tool {
	return slices.DeleteFunc(slices.Clone(list), func(t llm.Tool) bool {
		s := t.Spec()
		return !b.role.Allows(s.Name, !s.ReadOnly)
	})
}

// Prefix returns what each request of a member begins with: its system prompt and tools, made from the record, the
// model's name, the services that exist in every process, and the tools of an embedder. Nothing is started.
func Prefix(c Config) (system []string, tools []llm.Spec) {
	b := &toolbox{self: newSelf(c)}
	p := b.newProfile()
	return p.system, p.specs
}

func (b *toolbox) newFileTools(dir code.Place, model string) []llm.Tool {
	return code.Tools(dir, b.Launcher, b.jobs, code.Options{BashTimeout: b.Limits.BashTimeout,
		BackgroundTimeout: b.Limits.BackgroundTimeout, Environ: b.Environ, Outputs: b.outputs(),
		Root: string(b.Home), Patches: knowsPatches(model), MayRun: b.role.MayRun})
}

// newReadTools makes the tools that only read the files in a directory.
func (b *toolbox) newReadTools(dir code.Place) []llm.Tool {
	return code.ReadTools(dir, b.Launcher, code.Options{BashTimeout: b.Limits.BashTimeout, Environ: b.Environ,
		Root: string(b.Home)})
}

// knowsPatches reports whether a model was trained on apply_patch: those of OpenAI were. Others edit better without it,
// and need not read of it.
func knowsPatches(model string) bool {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	return strings.HasPrefix(name, "gpt-") || strings.Contains(name, "codex")
}

// newSubagent makes the subagent tool. The tools of each subagent are decorated like the member's: whoever calls
// one, the journal tells what it did.
func (b *toolbox) newSubagent(dir *workdir) llm.Tool {
	decorate := func(list []llm.Tool) []llm.Tool {
		return b.decorate(list, b.nested.ofSubagent(), dir, true)
	}
	explore, work := b.subagents[agent.Explore], b.subagents[agent.Work]
	o := agent.Options{
		Models: map[string]agent.Model{agent.Explore: {Model: explore.Model, MaxTokens: explore.MaxTokens},
			agent.Work: {Model: work.Model, MaxTokens: work.MaxTokens}},
		System: prompt.Subagent(), CacheKey: b.agentID() + "/sub", CacheGroup: string(b.Team) + "/sub",
		Turns:   b.Limits.SubagentTurns,
		Explore: func() []llm.Tool { return decorate(b.allowed(b.newReadTools(subagentDir{dir, explore.NoImages}))) },
		Surroundings: func(ctx context.Context) ([]string, error) {
			at, err := dir.Workdir(ctx)
			if err != nil {
				return nil, err
			}
			about, err := b.surroundings(ctx, true)
			return append(about, prompt.SubagentDir(at.Dir)), err
		},
		MayWork: func(ctx context.Context) error { return b.plans.require(ctx, "subagent") },
		OnUsage: func(ctx context.Context, r llm.Reply) {
			b.diary.replied(ctx, r, map[string]any{"subagent": true})
		},
	}
	if b.role.Writes() {
		o.Work = func() []llm.Tool {
			return decorate(b.allowed(b.newFileTools(subagentDir{dir, work.NoImages}, work.Name)))
		}
	}
	return agent.NewSubagent(o)
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
func (b *toolbox) decorate(list []llm.Tool, nested *nestedInstructions, dir *workdir, subagent bool) []llm.Tool {
	out := make([]llm.Tool, len(list))
	for i, t := range list {
		// The innermost one, so that neither a file of a long result nor an event has a secret that the result had.
		t = tool.Wrap(t, b.hideSecrets)
		t = tool.Wrap(t, b.permit(t, dir)) // inside of the hooks, which may change what a call is
		if s := t.Spec(); s.NeedsPlan {
			t = tool.Wrap(t, func(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) {
				if s.OnlyReads(c.Input) {
					return next(ctx, c)
				}
				return b.plans.gate(ctx, c, next)
			})
		}
		t = tool.Wrap(t, b.hooks.around(t, dir, subagent))
		t = tool.Limit(t, tool.MaxOutput, func(_ context.Context, c llm.Call, whole string) (string, error) {
			// Every member can read the file. It is no state: where it is lost, the call can be repeated.
			path := filepath.Join(b.outputs(), fmt.Sprintf("%s-%.150s.txt", c.Name, url.QueryEscape(c.ID)))
			return path, durable.WriteBelow(string(b.Home), path, []byte(whole))
		})
		t = tool.Wrap(t, nested.around)
		if !subagent { // it has no scratch checkout of its own
			t = tool.Wrap(t, b.scratch.around)
		}
		out[i] = tool.Wrap(t, func(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) {
			return b.audit(ctx, c, next, subagent)
		})
	}
	return out
}

// revoke ends the claim of somebody outside the team.
func (b *toolbox) revoke(ctx context.Context, t muster.Task, reason string) error {
	// The right to land ends before the claim: work that landed in between would be of a task that is on the board.
	if t.Worktree != "" {
		if err := b.Lander.Revoke(ctx, t.ID, t.Fence); err != nil {
			return err
		}
	}
	_, err := b.Board.Revoke(ctx, t.ID, t.Fence, b.name(), reason)
	return err
}

func (b *toolbox) hideSecrets(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) {
	r, err := next(ctx, c)
	return b.Secrets.Result(r), b.Secrets.Error(err)
}

// execInLane runs a command in a lane for worktree_run.
func (b *toolbox) execInLane(ctx context.Context, dir, command string, timeout time.Duration) (string, int, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out := code.NewOutput(b.outputs(), "worktree_run").Below(string(b.Home))
	p, err := b.Launcher.Start(ctx, proc.Spec{Argv: proc.Shell(command), Dir: dir,
		Env: code.Environ(ctx, b.Environ, dir), Out: out})
	if err != nil {
		return "", 0, err
	}
	exit, err := p.Wait()
	out.Done()
	text := out.Text()
	if errors.Is(err, code.ErrTooMuchOutput) {
		return text + fmt.Sprintf("\n[killed: %v]", err), exit, nil
	}
	if ctx.Err() == context.DeadlineExceeded { // the caller is told what the command had printed by then
		return text + fmt.Sprintf("\n[killed after %s]", timeout), exit, nil
	}
	return text, exit, err
}

// audit runs a call between the two events that tell of it. A subagent's calls are events of
// the member that it works for. A call of the member's own that the end of the process has cut
// off stays without an answer if records tell its outcome.
func (b *toolbox) audit(ctx context.Context, c llm.Call, next tool.Next, subagent bool) (llm.Result, error) {
	event := func(kind string, fields map[string]any) {
		fields["tool"], fields["call"] = c.Name, c.ID // the transcript has the whole call by its id
		if subagent {
			fields["subagent"] = true
		}
		b.diary.event(ctx, kind, fields)
	}
	event(journal.ToolStarted, map[string]any{"text": text.CutBytes(Gist(c), 120)})
	started := time.Now()
	r, err := next(ctx, c)
	end := map[string]any{"seconds": seconds(time.Since(started))}
	failed := r.IsError || err != nil
	if !failed && writesFiles(c.Name) {
		b.claims.noteWrite()
	}
	if failed {
		end["error"] = text.CutBytes(textOf(llm.Message{Parts: r.Parts}), 200)
	}
	event(journal.ToolEnded, end)
	if !failed && !subagent && b.todo.Owns(c) {
		done, of, current := b.todo.Progress()
		b.diary.event(ctx, journal.MemberSteps, map[string]any{"done": done, "of": of,
			"text": text.CutBytes(current, 120)})
	}
	// An error of a call that was cut off says nothing about what the call did. If its tool
	// can read the outcome from records, the call is left open, and answerCalls answers it.
	if failed && context.Cause(ctx) != nil && b.recoverer(c.Name) != nil {
		b.phase.noteOpen(c.ID)
	}
	return r, err
}

// Gist is a call in a few words, for people: its most telling value.
func Gist(c llm.Call) string {
	var in map[string]any
	if json.Unmarshal(c.Input, &in) != nil {
		return ""
	}
	for _, key := range []string{"command", "path", "pattern", "subject", "to", "name", "task_id", "prompt"} {
		if v, ok := in[key]; ok && v != nil && v != "" {
			line, _, _ := strings.Cut(fmt.Sprint(v), "\n")
			return text.OneLine(line)
		}
	}
	return ""
}

// caller is the member as the team's tools see it: teamtools.Caller. Each part of the member
// answers for itself: presence for Me and Asked, claims for the task, phase for Idle, plans
// and lead for what their names say, and conversation for Inbox.
type caller struct {
	*presence
	*conversation
	*claims
	*phase
	*plans
	*lead
	*self
}

func (s *self) caller() teamtools.Caller {
	return caller{s.presence, s.conversation, s.claims, s.phase, s.plans, s.lead, s}
}

// Spawn records a new teammate; the supervisor that sees the record starts it.
func (c caller) Spawn(ctx context.Context, m muster.Member) (muster.Member, error) {
	// The supervisor would refuse the model too, but only after the record was written.
	if check := c.self.CheckModel; check != nil && m.Model != "" {
		if err := check(m.Model); err != nil {
			return muster.Member{}, err
		}
	}
	run, runErr := c.self.Run(ctx)
	// Two spawns at the same time could both see room for one. Only the lead spawns, and its
	// calls that write are run one after the other.
	n, err := c.self.Roster.Teammates(ctx)
	if err = cmp.Or(runErr, err); err != nil {
		return muster.Member{}, err
	}
	if n >= run.Cap {
		return muster.Member{}, muster.Errorf(muster.Invalid, "%d teammates live and %d is the most this run may have "+
			"(--teammates): wait for them, or shut one down first", n, run.Cap)
	}
	m.StartedBy, m.Status = c.self.name(), muster.Working
	m, err = c.self.Roster.Add(ctx, m)
	if err == nil && c.self.Spawned != nil {
		c.self.Spawned()
	}
	return m, err
}

// Leave answers a shutdown request for a tool call. When it is granted the member's life ends
// after the round of tools.
func (c caller) Leave(ctx context.Context, id muster.RequestID, approve bool, reason string) error {
	r, err := c.self.Requests.Get(ctx, id)
	if err != nil {
		return err
	}
	if r.Kind != muster.AskShutdown {
		return muster.Errorf(muster.Invalid, "request %s is no shutdown but a %s request", id, r.Kind)
	}
	// The first decision stands. If the deadline or somebody else was faster, that is what
	// counts here, and not what the model has just said.
	r, _, err = c.self.Requests.Decide(ctx, id, c.self.name(), approve, reason)
	if err == nil && r.Status == muster.RequestApproved {
		c.phase.leave()
	}
	return err
}
