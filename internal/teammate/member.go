// Package teammate runs one member of a team, the lead or a teammate, from its start to its end.
//
// A member has four parts. Each has the files that begin with its name:
//
//   - The life decides what the member does. Facts are what the records and this process say now; Next is a pure
//     function that chooses an Action by them; the Action does it, and the life gathers facts again. The lead and a
//     teammate are the same machine with other facts. The Action RunPhase lets package loop work on a session until the
//     model calls no more tools. The life also has the presence in the roster and the counters of a phase.
//   - The conversation is the transcript with the mail that enters it, and the compaction that keeps it short.
//   - The toolbox has the tools, what stands around each of them (wrappers), and the claims with their plans and lanes.
//   - The lead waits for its team and staffs it. Overview, which reads how the team stands, belongs to it.
//
// The life calls the other parts. These call neither the life nor one another: what they use of another part is an
// interface or a function beside their type, which assemble sets. All use ground.go. To add an action, see
// docs/architecture.md, "Where to add things".
//
// The invariants:
//   - A record is written before its effect is visible: a mail is in the transcript before it leaves the inbox, a claim
//     is on the board before its lane exists. Another process can go on at any point.
//   - A member says that it works before it takes anything from its inbox, so that the team never looks finished while
//     something is under way.
//   - Only the host in the roster's record writes a member's status and its transcript.
//   - A member has at most one claim. The board says whether it still holds; what the member keeps is the claim's key.
//
// How tasks change, how work lands and how mail is stored is decided in packages board, landing and mailbox.
package teammate

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"muster"
	"muster/internal/collision"
	"muster/internal/hooks"
	"muster/internal/instructions"
	"muster/internal/memory"
	"muster/internal/paths"
	"muster/internal/permissions"
	"muster/internal/proc"
	"muster/internal/prompt"
	"muster/internal/redact"
	"muster/internal/requests"
	"muster/internal/roles"
	"muster/internal/skills"
	"muster/internal/tool/agent"
	"muster/internal/tool/code"
	"muster/internal/tool/teamtools"
	"muster/internal/transcript"
	"muster/internal/worktree"
	"muster/journal"
	"muster/llm"
	"muster/loop"
)

// Config is what New makes a Member of.
type Config struct {
	Services
	Limits
	Record   muster.Member // as it was in the roster when this life began
	OwnModel bool          // the member's model is not the team's
	// Model returns the member's model, which reports its waits to onWait. now returns the claimed task and the turn.
	Model func(now func() (muster.TaskID, int), onWait func(until time.Time, why error)) (llm.Model, error)
	// Subagent returns the model of a kind of subagents; its Model is nil where that is the member's. Nil: always.
	Subagent func(kind string, now func() (muster.TaskID, int), onWait func(until time.Time, why error)) (
		Subagent, error)
	ModelName           string     // "" where it is not known
	NoImages            bool       // the model takes no images
	Window, ReplyTokens int        // tokens of a request with its reply, and of the reply; 0 where they are not known
	Extra               []llm.Tool // of an embedder
	// ServerTools returns the tools of MCP servers that allows lets through; nil: there are none.
	ServerTools func(allows func(tool string, writes bool) bool) []llm.Tool
	Emit        func(loop.Event) // shows what happens in a turn; it must not block
}

// New makes a member of its record. Live starts it.
func New(c Config) (*Member, error) {
	c.Log = c.Log.With("member", c.Record.Name)
	return assemble(c)
}

// Prefix returns what each request of a member begins with: its system prompt and tools, made from the record, the
// model's name, the services that exist in every process, and the tools of an embedder. messages are its conversation,
// which tells whether a lead has a team. Nothing is started.
func Prefix(ctx context.Context, c Config, messages []llm.Message) (system []string, tools []llm.Spec) {
	c.Model, c.Subagent, c.Run = nil, nil, nil
	m, _ := assemble(c) // it fails only where a model cannot be made
	if m.isLead() {
		m.toolbox.alone.set(!hasText(messages, prompt.TeamRules()))
	}
	p := m.toolbox.get(ctx)
	return p.system, p.specs
}

// assemble makes the parts of a member, and gives each the things that it uses.
func assemble(c Config) (*Member, error) {
	name, team := c.Record.Name, &c.Overview
	if c.Instructions == nil {
		c.Instructions = &instructions.Files{Root: string(c.Home), Directory: c.Directory}
	}
	jobs, todo := code.NewJobs(c.Launcher), agent.NewTodo(c.TodoLimit, c.TodoReminder)
	var role roles.Role // the zero Role without a file, and for the lead
	phase := &phase{}
	if name != muster.Lead {
		role, _ = roles.Named(c.Roles, c.Record.Role)
		phase.change(func(c *counters) { c.still.onlyReads = !role.Writes() })
	}
	claims := &claims{name: name, role: c.Record.Role, mayWrite: role.Writes(), requirePlan: c.Record.RequirePlan,
		board: c.Board, run: c.Run, worktrees: c.Lanes, lander: c.Lander, jobs: jobs, collisions: c.Collisions,
		readyLane: c.ReadyLane, phase: phase}
	diary := &diary{name, c.Journal, c.Post, c.Log, claims}
	presence := newPresence(c.Record, c.Roster, diary)
	models, err := newModels(c, presence)
	if err != nil {
		return nil, err
	}

	// The toolbox.
	userHooks := &userHooks{runner: c.Hooks, team: c.Team, member: name, role: c.Record.Role, model: c.ModelName,
		home: c.Home, environ: c.Environ, tasks: claims}
	occupant := worktree.Occupant{Member: name, Host: c.Record.Host}
	claims.lanes = laneKeeper{occupant, c.Lanes, c.Board, c.Lander, c.Roster, diary}
	var single *alone
	if name == muster.Lead {
		single = &alone{run: c.Run, board: c.Board, roster: c.Roster, diary: diary}
		claims.own = &ownLane{claims: claims, alone: single, log: c.Store.Log()}
	}
	claims.plans, claims.hooks = &plans{claims: claims, requests: c.Requests}, userHooks
	claims.diary, claims.presence = diary, presence
	scratchPath := filepath.Join(c.Home.Scratch(), string(name), filepath.FromSlash(c.Directory))
	scratch := &scratchView{claims: claims, isConfined: c.CommandLimits != ""}
	files := &fileTools{c.Launcher, jobs, c.Directory, code.Options{BashTimeout: c.BashTimeout, Environ: c.Environ,
		BackgroundTimeout: c.BackgroundTimeout, Outputs: filepath.Join(c.Home.Outputs(), string(name)),
		Root: string(c.Home), MayRun: role.MayRun}}
	if claims.own != nil {
		claims.own.exec = files.execInLane
	}
	permits := &permits{claims: claims, settings: c.Permissions, always: c.Granted, extra: c.Extra,
		requests: c.Requests, secrets: c.Secrets, since: muster.UnixTime(time.Now())}
	about := &surroundings{home: c.Home, directory: c.Directory, scratch: scratchPath, isLead: name == muster.Lead,
		run: c.Run, lander: c.Lander, gitState: c.GitState, commandLimits: c.CommandLimits,
		permissions: c.Permissions.Line(), instructions: c.Instructions, skills: c.Skills, roles: c.Roles,
		memory: c.Memory, secrets: c.Secrets, tasks: claims, diary: diary}
	onePath := &onePath{home: c.Home, isConfined: c.CommandLimits != ""}
	last := new(guarded[code.Workdir])
	newWorkdir := func() *workdir {
		return &workdir{claims: claims, noImages: c.NoImages, directory: c.Directory, last: last,
			readable: func() []string { return readable(c.Home, name, c.Skills, c.Memory) }}
	}
	toolbox := &toolbox{record: c.Record, team: c.Team, role: role, roles: c.Roles, secrets: c.Secrets, models: models,
		subagentTurns: c.SubagentTurns, files: files, todo: todo, skills: c.Skills, extra: c.Extra,
		serverTools: c.ServerTools, memory: &memories{claims, c.Memory, c.Store.Log(), c.Secrets},
		wraps:      &wrappers{c.Secrets, permits, userHooks, files, scratch, claims, claims.own, onePath, todo},
		nested:     newNested(last, c.Instructions, c.Secrets, diary.told),
		newWorkdir: newWorkdir, claims: claims, alone: single, facts: about.texts,
		helpers: &helpers{diary: diary, log: c.Store.Log()},
		records: teamtools.Services{Board: c.Board, Post: c.Post, Roster: c.Roster, Requests: c.Requests,
			Lanes: c.Lanes, Run: c.Run, Log: c.Store.Log(), Exec: files.execInLane, Revoke: claims.revoke}}
	claims.review = toolbox.review

	// The conversation.
	about.isAlone = single.is
	conversation := &conversation{record: c.Record, team: c.Team, maxTokens: c.MaxTokens, run: c.Run,
		log: c.Store.Log(), post: c.Post, requests: c.Requests, talk: c.Talk, jobs: jobs, tasks: claims, diary: diary,
		status: presence, phase: phase, askHooks: userHooks.prompt, hasAnswer: claims.plans.hasReturned,
		isAlone: single.is}
	claims.hasRead, permits.repliedAt = conversation.hasRead, conversation.repliedAt
	compaction := &compaction{conversation: conversation, model: models.own.Model, tools: toolbox,
		window: cmp.Or(c.Window, UsualWindow), replyTokens: cmp.Or(c.MaxTokens, c.ReplyTokens),
		record: filepath.Join(c.Home.Transcripts(), string(name), "log.jsonl"), todo: todo, claims: claims,
		diary: diary, status: presence, phase: phase, about: about, planState: claims.plans.state,
		leadTasks: team.tasksForLead, board: c.Board, roster: c.Roster, landedFiles: c.LandedFiles}
	conversation.compaction, toolbox.compact = compaction, compaction.tool

	// What only the lead does.
	staff := &staff{team, c.CheckModel, c.Spawned, diary}
	lead := &lead{team: team, staff: staff, tasks: claims, diary: diary, mail: conversation,
		status: presence, phase: phase, told: map[string]time.Time{}}

	toolbox.caller = caller{presence, conversation, claims, claims.plans, phase, lead, staff, c.Requests}
	return &Member{record: c.Record, limits: c.Limits, ownModel: c.OwnModel, run: c.Run, model: models.own.Model,
		emit: c.Emit, talk: c.Talk, phases: c.Phases, requests: c.Requests, team: team, jobs: jobs, todo: todo,
		diary: diary, phase: phase, presence: presence, conversation: conversation, compaction: compaction,
		about: about, claims: claims, hooks: userHooks, scratch: scratch, toolbox: toolbox, lead: lead,
		stopRest: func() {}}, nil
}

func newModels(c Config, p *presence) (m *models, err error) {
	m = &models{own: Subagent{nil, c.ModelName, c.NoImages, c.MaxTokens}, subagents: map[string]Subagent{}}
	if c.Model != nil {
		if m.own.Model, err = c.Model(p.now, p.onModelWait); err != nil {
			return nil, err
		}
	}
	m.of = func(kind string) (x Subagent, err error) {
		if c.Subagent != nil {
			x, err = c.Subagent(kind, p.now, p.onModelWait)
		}
		if err == nil && x.Model == nil {
			x = m.own
		}
		return x, err
	}
	for _, kind := range []string{agent.Explore, agent.Work} {
		if m.subagents[kind], err = m.of(kind); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Services are what the members of one team are made of. New gives each part of a member what it uses of them.
type Services struct {
	Overview
	Team          muster.Name
	Home          paths.Dir
	Directory     string // below Home: where commands start and relative paths begin; "" is Home
	Journal       *journal.Journal
	Lanes         Lanes
	Lander        Lander
	Launcher      proc.Launcher
	Environ       []string            // what commands see of the user's; nil is what proc.Environment lets through
	CommandLimits string              // tells models what commands cannot do; "" where they are not confined
	Secrets       *redact.Secrets     // hidden in what tools return; nil hides nothing
	Log           *slog.Logger        // gets the errors that stop no member
	Phases        Phases              // told when a member's model works; or nil
	Spawned       func()              // called after each spawn, so that a supervisor starts the teammate; or nil
	Collisions    *collision.Watcher  // finds out which lanes will conflict; nil finds nothing
	Instructions  *instructions.Files // of the project and the user; nil is those of Home
	Skills        []skills.Skill
	Permissions   permissions.Settings
	Granted       []string      // what the user has allowed here for good
	Hooks         *hooks.Runner // nil has none
	// Memory returns what is remembered of the repository, and of the user for all teams; nil: nothing is remembered.
	Memory      func() (repository, user memory.Dir)
	GitState    func(context.Context) string                               // of the user's checkout; or nil
	LandedFiles func(ctx context.Context, commit string) ([]string, error) // that a landed commit has changed; or nil
	ReadyLane   func(ctx context.Context, lane muster.Lane) string         // runs the set-up in a fresh lane; or nil
	CheckModel  func(name string) error                                    // refuses what no member can have; or nil
}

// LeadEnd returns how a run ended whose lead has shut down, from its transcript and the board: what its own process
// would have returned. A lead that was never asked in a run with a playbook has said nothing.
func (s *Services) LeadEnd(ctx context.Context) (End, error) {
	run, err := s.Run(ctx)
	if err != nil {
		return End{Code: 1}, err
	}
	var f LeadFacts
	wasAsked := run.Playbook == nil
	for e, err := range transcript.Read(ctx, s.Store.Log(), muster.Lead, 0) {
		switch {
		case errors.Is(err, muster.ErrCorrupt): // the conversation goes on without the entry
		case err != nil:
			return End{Code: 1}, err
		case slices.Contains(e.Mail, openingOf(run)):
			wasAsked = true
		case e.Kind == transcript.KindReply && wasAsked:
			f.Message = textOf(*e.Message)
			f.CutOff = cutOffReason(muster.Lead, e.Stop, f.Message)
		}
	}
	if f.Progress, err = s.Progress(ctx); err != nil {
		return End{Code: 1}, err
	}
	if end, over := runEnd(f); over {
		return end, nil
	}
	return End{Text: f.Message}, nil
}

// caller is the member as the team's tools see it: teamtools.Caller. Each part of the member answers for itself.
type caller struct {
	*presence     // Me, Asked
	*conversation // Inbox
	*claims       // CurrentTask, Claim, Complete, Completed, Release
	*plans        // Plan
	*phase
	*lead  // Wait
	*staff // Spawn

	decisions *requests.Requests
}

// Idle makes the member idle after this round of tools. With a task in hand it is refused once: a model may have
// forgotten the task, or wait for an answer.
func (c caller) Idle(string) error {
	isFirst := false
	c.held.change(func(h *claim) { isFirst, h.triedIdle = h.task.ID != 0 && !h.triedIdle, true })
	if t, _ := c.CurrentTask(); isFirst {
		return muster.Errorf(muster.Held, "Task #%d is still yours", t.ID).
			WithHint("call complete_task or release_task, or end your turn to wait for an answer.")
	}
	c.end()
	return nil
}

// Leave answers a shutdown request for a tool call. If granted, the member's life ends after the round of tools.
func (c caller) Leave(ctx context.Context, id muster.RequestID, approve bool, reason string) error {
	r, err := c.decisions.Get(ctx, id)
	if err != nil {
		return err
	}
	if r.Kind != muster.AskShutdown {
		return muster.Errorf(muster.Invalid, "request %s is no shutdown but a %s request", id, r.Kind)
	}
	// The first decision counts, not what the model has just said.
	r, _, err = c.decisions.Decide(ctx, id, c.Me().Name, approve, reason)
	if err == nil && r.Status == muster.RequestApproved {
		c.phase.leave()
	}
	return err
}
