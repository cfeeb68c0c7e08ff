package teammate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"muster"
	"muster/internal/compact"
	"muster/internal/durable"
	"muster/internal/landing"
	"muster/internal/landingagent"
	"muster/internal/lazyregexp"
	"muster/internal/memory"
	"muster/internal/proc"
	"muster/internal/prompt"
	"muster/internal/redact"
	"muster/internal/roles"
	"muster/internal/skills"
	"muster/internal/tool/agent"
	"muster/internal/tool/code"
	"muster/internal/tool/teamtools"
	"muster/internal/transcript"
	"muster/journal"
	"muster/llm"
	"muster/tool"
)

// toolbox makes the profile of a member, and keeps it while the member works. Safe for concurrent use.
type toolbox struct {
	record        muster.Member
	team          muster.Name
	role          roles.Role
	roles         []roles.Role
	secrets       *redact.Secrets
	models        *models
	subagentTurns int
	files         *fileTools
	todo          *agent.Todo
	compact       func() llm.Tool // makes the tool by which the model asks for a shorter conversation
	caller        teamtools.Caller
	records       teamtools.Services
	skills        []skills.Skill
	memory        *memories
	extra         []llm.Tool                                                  // of an embedder
	serverTools   func(allows func(tool string, writes bool) bool) []llm.Tool // nil: there are none
	wraps         *wrappers
	nested        *nestedInstructions
	newWorkdir    func() *workdir
	claims        *claims
	helpers       *helpers
	alone         *alone                                                       // nil: the member is no lead
	facts         func(ctx context.Context, isSubagent bool) ([]string, error) // of the surroundings

	made atomic.Pointer[profile]
}

type models struct {
	own       Subagent
	subagents map[string]Subagent                       // by kind
	of        func(kind string) (x Subagent, err error) // also of reviewers
}

// get returns the profile. Two calls at the same time may both make one; the two are the same.
func (b *toolbox) get(ctx context.Context) *profile {
	if p := b.made.Load(); p != nil {
		return p
	}
	p := b.newProfile(ctx)
	b.made.Store(p)
	return p
}

func (b *toolbox) unload() { b.made.Store(nil) }

// forget has the model told again of the directories: it has lost what it knew with its conversation.
func (b *toolbox) forget() { b.nested.reset() }

func (b *toolbox) newProfile(ctx context.Context) *profile {
	p := &profile{}
	p.system = prompt.Teammate(b.record.Role, b.team, b.secrets.String(b.role.Render()), b.role.Writes())
	toolsFor := teamtools.ForTeammate
	if b.record.Name == muster.Lead {
		p.system, toolsFor = prompt.Lead(), teamtools.ForLead
	}
	dir := b.newWorkdir()
	team := toolsFor(b.caller, b.records)
	files := allowed(b.role, b.files.tools(dir, b.models.own.Name))
	subagent := allowed(b.role, []llm.Tool{b.newSubagent(dir)})
	extra := allowed(b.role, b.extra)
	if b.serverTools != nil {
		extra = append(extra, b.serverTools(b.role.Allows)...)
	}
	p.bare = slices.Concat(files, []llm.Tool{b.todo.Tool(), b.compact()}, subagent, team, agent.SkillTools(b.skills),
		b.memory.tools(), extra)
	p.effects = effectsOf(slices.Concat(files, subagent), slices.Concat(team, extra))
	p.tools = withMerged(b.wraps.around(p.bare, b.nested, dir, false))
	if b.alone != nil {
		for i, t := range p.tools {
			p.tools[i] = tool.Wrap(t, b.growing)
		}
	}
	needsFew := b.alone.is(ctx)
	isForTeam := func(name string) bool {
		return name == "compact" || !teamtools.IsForOne(name) &&
			slices.ContainsFunc(team, func(t llm.Tool) bool { return t.Spec().Name == name })
	}
	patches := slices.ContainsFunc(p.bare, func(t llm.Tool) bool { return t.Spec().Name == "apply_patch" })
	needsLanes := b.needsLanes(ctx)
	for _, t := range p.bare {
		s := t.Spec()
		hidden := isMerged(s.Name) || needsFew && isForTeam(s.Name) ||
			patches && (s.Name == "edit_file" || s.Name == "write_file") ||
			!needsLanes && strings.HasPrefix(s.Name, "worktree_")
		if !hidden {
			p.specs = append(p.specs, s)
		}
	}
	p.size = compact.PrefixTokens(p.system, p.specs)
	return p
}

// needsLanes reports whether the tools for lanes are offered: the goal speaks of worktrees, or a person has made a lane
// without a task.
func (b *toolbox) needsLanes(ctx context.Context) bool {
	if b.claims.run == nil {
		return false // nothing runs: see Prefix
	}
	run, err := b.claims.run(ctx)
	if err != nil || run.Cap == 0 {
		return false
	}
	lanes, _ := b.records.Lanes.List(ctx) // the tools say what is wrong with them
	return strings.Contains(strings.ToLower(run.Goal+run.FirstWords), "worktree") ||
		slices.ContainsFunc(lanes, func(l muster.Lane) bool { return l.TaskID == 0 && l.Name != ownLaneName })
}

// growing looks, after a call that the lead makes, whether it still works alone. If not, the result has the rules for a
// team, and the next request has the tools for one. All of them can be called before.
func (b *toolbox) growing(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) {
	wasAlone := b.alone.is(ctx)
	r, err := next(ctx, c)
	if err != nil || !wasAlone || !slices.Contains([]string{"task_create", "spawn_teammate"}, c.Name) {
		return r, err
	}
	b.alone.mayEnd()
	isAlone, err := b.alone.look(ctx)
	if err == nil && !isAlone {
		b.unload()
		r.Parts = append(r.Parts, llm.Text{Text: "\n" + prompt.TeamRules()})
	}
	return r, err
}

// allowed returns the tools that a role has. Every tool with which a member works passes through here, and none by
// which it takes part in the team: what it does not have it cannot call, whoever says so.
func allowed(role roles.Role, list []llm.Tool) []llm.Tool {
	return slices.DeleteFunc(slices.Clone(list), func(t llm.Tool) bool {
		s := t.Spec()
		return !role.Allows(s.Name, !s.ReadOnly)
	})
}

func (b *toolbox) recoverer(ctx context.Context, name string) tool.Recoverer {
	for _, t := range b.get(ctx).bare {
		if r, ok := t.(tool.Recoverer); ok && t.Spec().Name == name {
			return r
		}
	}
	return nil
}

// surroundings returns the first texts of a conversation of a subagent or a reviewer.
func (b *toolbox) surroundings(ctx context.Context, dir *workdir) ([]string, error) {
	at, err := dir.Workdir(ctx)
	if err != nil {
		return nil, err
	}
	about, err := b.facts(ctx, true)
	return append(about, prompt.SubagentDir(at.Start())), err
}

// newSubagent makes the subagent tool. Its tools have the same wrappers as the member's: the journal tells what it did.
func (b *toolbox) newSubagent(dir *workdir) llm.Tool {
	wrap := func(list []llm.Tool) []llm.Tool {
		return b.wraps.around(allowed(b.role, list), b.nested.ofSubagent(), dir, true)
	}
	explore, work := b.models.subagents[agent.Explore], b.models.subagents[agent.Work]
	o := agent.Options{
		Models: map[string]agent.Model{
			agent.Explore: {Model: helperModel{explore.Model}, MaxTokens: explore.MaxTokens},
			agent.Work:    {Model: helperModel{work.Model}, MaxTokens: work.MaxTokens}},
		System: prompt.Subagent(), CacheKey: agentID(b.record.Name, b.team) + "/sub",
		CacheGroup: string(b.team) + "/sub", Turns: b.subagentTurns,
		Explore:      func() []llm.Tool { return wrap(b.files.reading(subagentDir{dir, explore.NoImages, false})) },
		Surroundings: func(ctx context.Context) ([]string, error) { return b.surroundings(ctx, dir) },
		MayWork:      func(ctx context.Context) error { return b.claims.plans.require(ctx, "subagent") },
		Begin: func(ctx context.Context, kind, prompt string) (context.Context, func(), error) {
			return b.helpers.begin(ctx, kind, b.models.subagents[kind].Name, prompt)
		},
	}
	if b.role.Writes() {
		o.Work = func() []llm.Tool { return wrap(b.files.tools(subagentDir{dir, work.NoImages, false}, work.Name)) }
	}
	return agent.NewSubagent(o)
}

// review lets a reviewer look at the work in the lane, for a landing. It runs while the member is parked in
// complete_task: its calls pass the same wrappers, and end when the claim is lost. Its cost counts for the member too.
// It has no tool that could change anything, whatever its role says.
func (b *toolbox) review(ctx context.Context, r landing.ReviewRequest) (v landing.ReviewVerdict, err error) {
	defer b.claims.presence.showActivity(ctx, "in review by "+r.Role)()
	x, err := b.models.of(r.Role)
	if err != nil {
		return v, err
	}
	file, _ := roles.Named(b.roles, r.Role)
	dir := subagentDir{b.newWorkdir(), x.NoImages, true}
	tools := allowed(file, b.files.reading(dir))
	about, err := b.surroundings(ctx, dir.workdir)
	if err != nil {
		return v, err
	}
	title := fmt.Sprintf("review of task %d: %s", r.Task.ID, r.Task.Subject)
	ctx, end, err := b.helpers.begin(ctx, r.Role, x.Name, title)
	if err != nil {
		return v, err
	}
	defer end()
	return landingagent.Agent{Team: b.team, Surroundings: about, Role: r.Role, File: file, Model: helperModel{x.Model},
		MaxTokens: x.MaxTokens, ModelName: cmp.Or(x.Name, "the team's model"), Turns: b.subagentTurns,
		Tools: b.wraps.around(tools, b.nested.ofSubagent(), dir.workdir, true),
		KeepDiff: func(text string) (string, error) {
			return b.files.keep(fmt.Sprintf("%s-task-%d.diff", muster.RoleKey(r.Role), r.Task.ID), text)
		}}.Review(ctx, r)
}

func effectsOf(files, records []llm.Tool) map[string]toolEffects {
	all := map[string]toolEffects{}
	for i, t := range slices.Concat(files, records) {
		s := t.Spec()
		writes, onFiles := !s.ReadOnly && !s.Polls, i < len(files)
		all[s.Name] = toolEffects{polls: s.Polls, files: writes && onFiles, records: writes && !onFiles}
	}
	return all
}

type fileTools struct {
	launcher  proc.Launcher
	jobs      *code.Jobs
	directory string // below the top, where commands start
	options   code.Options
}

func (f *fileTools) tools(dir code.Place, model string) []llm.Tool {
	o := f.options
	o.Patches = knowsPatches(model)
	return code.Tools(dir, f.launcher, f.jobs, o)
}

func (f *fileTools) reading(dir code.Place) []llm.Tool {
	o := f.options
	return code.ReadTools(dir, f.launcher, code.Options{BashTimeout: o.BashTimeout, Environ: o.Environ, Root: o.Root})
}

// keep writes a text to a file of the member that every member can read. It is no state: what is lost is made again.
func (f *fileTools) keep(name, text string) (path string, err error) {
	path = filepath.Join(f.options.Outputs, name)
	return path, durable.WriteBelow(f.options.Root, path, []byte(text))
}

// patchModels match the models that were trained on apply_patch, and write it in the place of other edits: those of
// OpenAI from gpt-5 on. Azure writes gpt-35 for gpt-3.5, and Bedrock puts the maker before the name.
var patchModels = lazyregexp.New(`^([a-z]+\.)*gpt-([5-9]|oss)|codex`)

func knowsPatches(model string) bool {
	return patchModels().MatchString(strings.ToLower(model[strings.LastIndexByte(model, '/')+1:]))
}

func (f *fileTools) execInLane(ctx context.Context, dir, command string, timeout time.Duration) (string, int, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out := code.NewOutput(f.options.Outputs, "worktree_run").Below(f.options.Root)
	at := code.Workdir{Dir: dir}
	if f.directory != "" {
		at.Enter(f.directory)
	}
	spec := at.Spec(f.options.Environ, proc.Shell(command), at.Start())
	spec.Out = out
	p, err := f.launcher.Start(ctx, spec)
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

type memories struct {
	claims  *claims
	dirs    func() (repository, user memory.Dir) // nil: nothing is remembered
	log     muster.Log
	secrets *redact.Secrets
}

func (k *memories) tools() []llm.Tool {
	if k.dirs == nil {
		return nil
	}
	return []llm.Tool{agent.MemoryTool(k.save)}
}

// save saves a memory for later runs in this repository. Its head says who has saved it, and whether the member had
// read the output of a tool by then.
func (k *memories) save(ctx context.Context, m memory.Memory) (string, error) {
	run, err := k.claims.run(ctx)
	if err != nil {
		return "", err
	}
	t, _ := k.claims.CurrentTask()
	if m.Name = k.secrets.String(m.Name); len(m.Name) <= 32 { // a longer one would be cut to what may be another's
		m.Name = cmp.Or(string(muster.Slug(m.Name, "")), m.Name)
	}
	m.Description, m.Content = k.secrets.String(m.Description), k.secrets.String(m.Content)
	m.By, m.Task, m.Run = string(k.claims.name), t.ID, k.secrets.String(run.Goal)
	if m = m.Clean(); m.Check() != nil { // before the whole conversation is read
		return "", m.Check()
	}
	m.SawOutput = k.sawOutput(ctx)
	dir, _ := k.dirs()
	replaced, err := dir.Save(ctx, m)
	if err != nil {
		return "", err
	}
	k.claims.diary.event(ctx, journal.MemorySaved,
		map[string]any{"name": m.Name, "type": m.Type, "text": m.Description})
	text := "Saved as " + m.Name + "."
	if replaced != "" {
		text += " The text that was there is kept in " + replaced + "."
	}
	if m.SawOutput {
		text += " It is marked as saved after output of tools."
	}
	return text, nil
}

// sawOutput reports whether a tool has returned anything, also what was cleared from the conversation since.
func (k *memories) sawOutput(ctx context.Context) bool {
	for e, err := range transcript.Read(ctx, k.log, k.claims.name, 0) {
		if err != nil || e.Kind == transcript.KindResult { // what cannot be read may be a result
			return true
		}
	}
	return false
}
