package teammate

import (
	"slices"
	"sync/atomic"

	"muster"
	"muster/internal/compact"
	"muster/internal/prompt"
	"muster/internal/redact"
	"muster/internal/roles"
	"muster/internal/skills"
	"muster/internal/tool/agent"
	"muster/internal/tool/teamtools"
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
	record  muster.Member
	team    muster.Name
	role    roles.Role
	secrets *redact.Secrets
	files   *fileTools
	todo    *agent.Todo
	compact func() llm.Tool // makes the tool by which the model asks for a shorter conversation
	helpers *helpers
	caller  teamtools.Caller
	records teamtools.Services
	skills  []skills.Skill
	memory  *memories
	extra   []llm.Tool // of an embedder
	// serverTools returns those of MCP servers; nil: there are none.
	serverTools func(allows func(tool string, writes bool) bool) []llm.Tool
	wraps       *wrappers
	nested      *nestedInstructions
	newWorkdir  func() *workdir

	made atomic.Pointer[profile]
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

// unload forgets the profile.
func (b *toolbox) unload() { b.made.Store(nil) }

// forget has the model told again what the project says about directories: it has lost it with its conversation.
func (b *toolbox) forget() { b.nested.reset() }

func (b *toolbox) newProfile() *profile {
	p := &profile{}
	p.system = prompt.Teammate(b.record.Role, b.team, b.secrets.String(b.role.Render()), b.role.Writes())
	toolsFor := teamtools.ForTeammate
	if b.record.Name == muster.Lead {
		p.system, toolsFor = prompt.Lead(b.team), teamtools.ForLead
	}
	dir := b.newWorkdir()
	team := toolsFor(b.caller, b.records)
	files := allowed(b.role, b.files.tools(dir, b.helpers.models.own.Name))
	subagent := allowed(b.role, []llm.Tool{b.helpers.newSubagent(dir)})
	extra := allowed(b.role, b.extra)
	if b.serverTools != nil {
		extra = append(extra, b.serverTools(b.role.Allows)...)
	}
	p.bare = slices.Concat(files, []llm.Tool{b.todo.Tool(), b.compact()}, subagent, team, agent.SkillTools(b.skills),
		b.memory.tools(), extra)
	p.effects = effectsOf(slices.Concat(files, subagent), slices.Concat(team, extra))
	p.tools = b.wraps.around(p.bare, b.nested, dir, false)
	for _, t := range p.bare {
		p.specs = append(p.specs, t.Spec())
	}
	p.size = compact.PrefixTokens(p.system, p.specs)
	return p
}

// allowed returns those of some tools that a role has. Every tool with which a member works passes through here, and
// none by which it takes part in the team: what it does not have it cannot call, whoever says so.
func allowed(role roles.Role, list []llm.Tool) []llm.Tool {
	return slices.DeleteFunc(slices.Clone(list), func(t llm.Tool) bool {
		s := t.Spec()
		return !role.Allows(s.Name, !s.ReadOnly)
	})
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

// toolEffects are what the calls of a tool may change.
type toolEffects struct {
	polls   bool // nothing: the tool is asked again and again
	records bool // the board, mail, requests, the team or a lane
	files   bool // files of the lane
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
