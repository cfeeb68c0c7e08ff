// Package teammate runs one member of a team, the lead or a teammate, from its start to its
// end.
//
// A member is a state machine. Facts are what the records and the member's own process say
// now; Next is a pure function that decides from them what the member does; the Action that it
// returns does it, and the Member gathers facts again. The lead and a teammate are the same machine
// with other facts. The loop is in runner.go, with most of the actions; the facts and
// all decisions about the course of a life are in next.go.
//
// One action, RunPhase, runs the model: package loop works on the member's session until the
// model calls no more tools. Between two rounds of tools lies the boundary, where mail,
// finished background jobs and reminders enter and where limits act; see session.go and limits.go.
//
// The invariants:
//   - A record is written before its effect is visible: a mail is in the transcript before it leaves the inbox, a claim
//     is on the board before its lane exists. Another process can go on at any point.
//   - A member says that it works before it takes anything from its inbox, so that the team never looks finished while
//     something is under way.
//   - Only the host in the roster's record writes a member's status and its transcript.
//   - A member has at most one claim. The board says whether it still holds; what the member keeps is the claim's key.
//
// The parts of a member have a type each: presence (its record in the roster), conversation
// (transcript and mail), claims (the claimed task), laneKeeper (the task's lane), plans,
// phase (counters of a work phase and of a standstill), lead (the lead's sleep and the end of
// its turn), toolbox (the tools, with their audit), compaction (the conversation's size),
// nestedInstructions (AGENTS.md of a directory), workdir (where tools run), scratchView
// (changes where nothing lands). They know one another by self.
// TeamProgress, which says whether the team can go on, belongs to the team as a whole.
//
// How tasks change, how work lands and how mail is stored is not decided here: see packages
// board, landing and mailbox.
package teammate

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/collision"
	"muster/internal/hooks"
	"muster/internal/landing"
	"muster/internal/mailbox"
	"muster/internal/memory"
	"muster/internal/paths"
	"muster/internal/permissions"
	"muster/internal/proc"
	"muster/internal/redact"
	"muster/internal/requests"
	"muster/internal/roles"
	"muster/internal/roster"
	"muster/internal/skills"
	"muster/internal/tool/agent"
	"muster/internal/tool/code"
	"muster/internal/tool/teamtools"
	"muster/internal/worktree"
	"muster/journal"
	"muster/llm"
	"muster/loop"
)

// Limits are the settings of a member's life.
type Limits struct {
	Turns             int           // in a phase; 0: 200, and fewer in a standstill
	IdleTimeout       time.Duration // 60 s; 0: never
	MaxTokens         int           // in a reply; 0 is the adapter's default
	BashTimeout       time.Duration // 120 s
	BackgroundTimeout time.Duration // 300 s
	SubagentTurns     int           // 30; of a reviewer too
	TodoLimit         int           // items of the member's own list; 0: 20
	TodoReminder      int           // rounds without a call of todo until a reminder; 0: 10, below zero: none
	KeptResults       int           // 3: results that stay whole when older ones are cleared
}

// Config is what New makes a Member of.
type Config struct {
	Services
	Limits
	// Record is the member as it was in the roster when this life began.
	Record muster.Member
	// OwnModel says that the member's model is not the team's.
	OwnModel bool
	// Model returns the member's model, which reports its waits to onWait. now returns the task that the member has
	// claimed, or 0, and the number of its turn.
	Model func(now func() (muster.TaskID, int), onWait func(until time.Time, why error)) (llm.Model, error)
	// Subagent returns the model of a kind of subagents; its Model is nil where that is the member's. Nil: always.
	Subagent func(kind string, now func() (muster.TaskID, int), onWait func(until time.Time, why error)) (
		Subagent, error)
	// ModelName is the name of this model, or "" where it is not known.
	ModelName string
	// NoImages says that this model takes no images.
	NoImages bool
	// Window is how many tokens a request to this model and its reply may have together, and ReplyTokens how many of
	// them the reply may take; 0 where they are not known.
	Window, ReplyTokens int
	// Extra are the tools of an embedder.
	Extra []llm.Tool
	// ServerTools returns the tools of MCP servers that a member has who may have those which allows lets through; nil:
	// there are none.
	ServerTools func(allows func(tool string, writes bool) bool) []llm.Tool
	// Emit shows what happens in a turn; it must not block.
	Emit func(loop.Event)
}

// Subagent is the model of a kind of subagents, and what is known of it, as Config has it of the member's.
type Subagent struct {
	Model     llm.Model
	Name      string
	NoImages  bool
	MaxTokens int
}

// Member is a running member. The actions that Next decides work on it, and on its parts.
type Member struct {
	*self
	idle *idling // of a teammate

	// The course of the machine, which is of the goroutine of Live alone. All else that
	// decides what follows is read from records and parts.
	stage  Stage
	start  StartFacts // what was found when the transcript was opened
	err    error      // of the last phase
	byUser bool       // the user stopped the last phase
	// stopRest ends the watches of a rest.
	stopRest context.CancelFunc
	end      *End // nil: the life goes on
}

// self is what the parts of a member share: what it was made of, and one another. It does not change while the
// member lives.
type self struct {
	Config
	role   roles.Role // the zero Role without a file, and for the lead
	models *models
	jobs   *code.Jobs
	todo   *agent.Todo
	about  *surroundings

	diary        *diary
	presence     *presence
	conversation *conversation
	claims       *claims
	hooks        *userHooks
	phase        *phase
	plans        *plans
	lead         *lead
	toolbox      *toolbox
	scratch      *scratchView
	compaction   *compaction
}

func (s *self) name() muster.Name { return s.Record.Name }

// isLead reports whether the member is the lead. There is one in a team.
func (s *self) isLead() bool { return s.Record.Name == muster.Lead }

func agentID(name, team muster.Name) string { return string(name) + "@" + string(team) }

// request returns a request with messages. All of a member's requests are made here, and those of a role begin alike.
func (s *self) request(ctx context.Context, p *profile, messages []llm.Message) llm.Request {
	return llm.Request{System: p.system, Tools: p.specs, Messages: messages, MaxTokens: s.Limits.MaxTokens,
		CacheKey: agentID(s.name(), s.Team), CacheGroup: string(s.Team) + "/" + s.Record.Role, CacheLong: s.mayWaitLong(ctx)}
}

// mayWaitLong reports whether the next request may come after more than the few minutes for which providers usually
// keep what they have cached. The lead waits for the team or for the user, unless it works on a task of its own.
func (s *self) mayWaitLong(ctx context.Context) bool {
	if _, works := s.claims.CurrentTask(); works || !s.isLead() {
		return false
	}
	run, err := s.Run(ctx)
	return err == nil && run.Cap > 0 || s.inTalk()
}

// End is how a member's life ended.
type End struct {
	// Code is the lead's verdict on the run: 0 all done, 1 an error, 3 work is left.
	Code int
	// Text is the last message, or why it ended.
	Text string
}

// New makes a member of its record. Live starts it.
func New(c Config) (_ *Member, err error) {
	c.Log = c.Log.With("member", c.Record.Name)
	s := newSelf(c)
	if s.models.own.Model, err = c.Model(s.presence.now, s.presence.onModelWait); err != nil {
		return nil, err
	}
	for _, kind := range []string{agent.Explore, agent.Work} {
		if s.models.subagents[kind], err = s.models.of(kind); err != nil {
			return nil, err
		}
	}
	return &Member{self: s, idle: &idling{self: s}, stopRest: func() {}}, nil
}

func newSelf(c Config) *self {
	s := &self{Config: c, jobs: code.NewJobs(c.Launcher), todo: agent.NewTodo(c.TodoLimit, c.TodoReminder),
		phase: &phase{}}
	if !s.isLead() {
		s.role, _ = roles.Named(c.Roles, c.Record.Role)
		s.phase.change(func(c *counters) { c.still.onlyReads = !s.role.Writes() })
	}
	name := c.Record.Name
	s.conversation = &conversation{self: s}
	s.claims = &claims{name: name, role: c.Record.Role, mayWrite: s.role.Writes(), requirePlan: c.Record.RequirePlan,
		board: c.Board, run: c.Run, worktrees: c.Lanes, lander: c.Lander, jobs: s.jobs, collisions: c.Collisions,
		readyLane: c.ReadyLane, phase: s.phase, read: s.conversation}
	s.diary = &diary{name, c.Journal, c.Post, c.Log, s.claims}
	s.presence = newPresence(c.Record, c.Roster, s.diary)
	s.plans = &plans{name: name, board: c.Board, requests: c.Requests, claims: s.claims, presence: s.presence}
	s.hooks = &userHooks{c.Hooks, c.Team, name, c.Record.Role, c.ModelName, c.Home, c.Environ, s.claims}
	s.claims.lanes = laneKeeper{worktree.Occupant{Member: name, Host: c.Record.Host}, c.Lanes, c.Board, c.Lander, c.Roster,
		s.diary}
	s.claims.plans, s.claims.hooks, s.claims.diary, s.claims.presence = s.plans, s.hooks, s.diary, s.presence
	s.lead = &lead{self: s, told: map[string]time.Time{}}
	s.scratch = &scratchView{name: name, isConfined: c.CommandLimits != "", run: c.Run, worktrees: c.Lanes,
		tasks: s.claims, diary: s.diary}
	s.compaction = &compaction{self: s}
	s.about = &surroundings{name, c.Home, c.Run, nil, c.GitState, c.CommandLimits, c.Permissions.Line(), c.Skills, c.Roles,
		c.Memory, c.Secrets, s.diary}
	if c.Lander != nil {
		s.about.target = c.Lander.Target
	}
	s.newToolbox()
	return s
}

// newToolbox makes the member's tools, which use the other parts.
func (s *self) newToolbox() {
	c, name := s.Config, s.Record.Name
	s.models = &models{own: Subagent{nil, c.ModelName, c.NoImages, c.MaxTokens}, subagents: map[string]Subagent{}}
	if c.Subagent != nil {
		s.models.choose = func(kind string) (Subagent, error) {
			return c.Subagent(kind, s.presence.now, s.presence.onModelWait)
		}
	}
	files := &fileTools{c.Launcher, s.jobs, code.Options{BashTimeout: c.BashTimeout, Environ: c.Environ,
		BackgroundTimeout: c.BackgroundTimeout, Outputs: filepath.Join(c.Home.Outputs(), string(name)),
		Root: string(c.Home), MayRun: s.role.MayRun}}
	nested := &nestedInstructions{scratch: filepath.Join(c.Home.Scratch(), string(name)), worktrees: c.Lanes,
		tasks: s.claims, secrets: c.Secrets}
	permits := &permits{name: name, settings: c.Permissions, always: c.Granted, extra: c.Extra, requests: c.Requests,
		run: c.Run, secrets: c.Secrets, plans: s.plans, presence: s.presence, diary: s.diary,
		since: muster.UnixTime(time.Now())}
	wraps := &wrappers{c.Secrets, permits, s.plans, s.hooks, files, s.scratch, s.claims, s.todo, s.diary, s.phase}
	newWorkdir := func() *workdir {
		return &workdir{name: name, noImages: c.NoImages, worktrees: c.Lanes, lander: c.Lander, claims: s.claims,
			readable: func() []string { return readable(c.Home, c.Skills, c.Memory) }}
	}
	helpers := &helpers{name, c.Team, s.role, c.Roles, s.models, c.SubagentTurns, files, wraps, nested, s.plans, s.about,
		s.presence, s.diary, newWorkdir}
	s.claims.review = helpers.review
	s.toolbox = &toolbox{record: c.Record, team: c.Team, role: s.role, secrets: c.Secrets, files: files, todo: s.todo,
		compact: s.compaction.tool, helpers: helpers, caller: s.caller(), skills: c.Skills,
		records: teamtools.Services{Board: c.Board, Post: c.Post, Roster: c.Roster, Requests: c.Requests,
			Lanes: c.Lanes, Run: c.Run, Log: c.Store.Log(), Exec: files.execInLane, Revoke: s.claims.revoke},
		memory: &memories{name, c.Run, c.Memory, c.Store.Log(), c.Secrets, s.diary},
		extra:  c.Extra, serverTools: c.ServerTools, wraps: wraps, nested: nested, newWorkdir: newWorkdir}
}

// Prefix returns what each request of a member begins with: its system prompt and tools, made from the record, the
// model's name, the services that exist in every process, and the tools of an embedder. Nothing is started.
func Prefix(c Config) (system []string, tools []llm.Spec) {
	p := newSelf(c).toolbox.get()
	return p.system, p.specs
}

// TurnCount returns how many turns the member has had in its life.
func (m *Member) TurnCount() int { return int(m.presence.turns.Load()) }

// Live runs the member until it shuts down, its context ends, or (the lead) the run is over.
// When the context ends with muster.CauseShutdown the member leaves in order; with any other
// cause its records stay as they are, for the process that takes it over.
func (m *Member) Live(ctx context.Context) (End, error) {
	defer m.jobs.Close()
	end, err := m.run(ctx)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if m.stage != Left && (errors.Is(err, muster.CauseShutdown) || err == nil && !m.isLead()) {
		m.jobs.Close() // no command of it may run when its record says that it has shut down
		return end, Leave{}.do(ctx, m)
	}
	return end, err
}

// guarded is a value that several goroutines read and change: that of Live, and those of the tools.
type guarded[T any] struct {
	mu    sync.Mutex
	value T
}

// get returns a copy of the value, to decide on. What the copy points to is never changed, only replaced.
func (g *guarded[T]) get() T {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.value
}

func (g *guarded[T]) change(f func(*T)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f(&g.value)
}

// Services are what the members of one team share.
type Services struct {
	Team     muster.Name
	Home     paths.Dir
	Store    muster.Store
	Journal  *journal.Journal
	Board    *board.Board
	Post     *mailbox.Mail
	Roster   *roster.Roster
	Requests *requests.Requests
	Lanes    Lanes
	Lander   Lander
	Launcher proc.Launcher
	// Environ is what commands see of the user's environment. Nil is what proc.Environment lets through.
	Environ []string
	// CommandLimits tells the models what commands cannot do; "" where they are not confined.
	CommandLimits string
	// Secrets are hidden in what tools return. Nil hides nothing.
	Secrets *redact.Secrets
	// Log gets what went wrong and stopped nobody.
	Log *slog.Logger
	// Run returns the record of the team's current run.
	Run func(context.Context) (muster.Run, error)
	// Patient says that idle members are never timed out.
	Patient bool
	// Talk is the user's conversation with the lead; without one it is nil, and the run ends by itself.
	Talk Talk
	// Phases is told when a member's model works; nil: nobody looks at what changes meanwhile.
	Phases Phases
	// Spawned is called after each spawn, so that a supervisor starts the new teammate at once.
	Spawned func()
	// Collisions finds out which lanes will conflict; nil finds nothing.
	Collisions *collision.Watcher
	// Skills are those of the repository and of the user, and Roles those, too, with what is built in.
	Skills []skills.Skill
	Roles  []roles.Role
	// Memory returns what is remembered of the repository, and what the user has all teams know; nil: nothing is
	// remembered.
	Memory func() (repository, user memory.Dir)
	// Permissions decide which calls of tools may run, and Granted are what the user has allowed here for good.
	Permissions permissions.Settings
	Granted     []string
	// Hooks are the commands that people have set for moments of the team's work; nil has none.
	Hooks *hooks.Runner
	// GitState says how the user's checkout stands, for the models; nil says nothing.
	GitState func(context.Context) string
	// LandedFiles returns the files that a landed commit has changed; nil knows none.
	LandedFiles func(ctx context.Context, commit string) ([]string, error)
	// ReadyLane puts what the set-up makes into a fresh lane, and says how that stands; nil: there is no set-up.
	ReadyLane func(ctx context.Context, lane muster.Lane) string
	// CheckModel refuses the name of a model that no member can have; nil refuses none.
	CheckModel func(name string) error
}

// Lanes are the worktrees in which members work: worktree.Lanes, whose methods say what each
// does. Tests have some without git.
type Lanes interface {
	teamtools.Lanes
	Workdir(ctx context.Context, name muster.Name) (dir string, err error)
	Scratch(ctx context.Context, member muster.Name, commit string) (dir string, err error)
	ScratchChanges(ctx context.Context, member muster.Name, tips []string) (files []string, err error)
	Unlanded(ctx context.Context, tips []string, archived []worktree.Archived) ([]worktree.Leftover, error)
	Changed(ctx context.Context, name muster.Name) (bool, error)
	Fingerprint(ctx context.Context, name muster.Name) (string, error)
	Ignored(ctx context.Context, name muster.Name) ([]string, error)
	Occupy(ctx context.Context, name muster.Name, was, who worktree.Occupant) error
	Release(ctx context.Context, name muster.Name) error
	Archive(ctx context.Context, name muster.Name) (ref string, err error)
	ArchiveCompleted(ctx context.Context, t muster.Task) (ref string, err error)
	Recover(ctx context.Context) error
}

// Lander brings a lane's work to the target: landing.Lander.
type Lander interface {
	Target(ctx context.Context) (commit string, err error)
	LandWith(
		ctx context.Context, id muster.TaskID, fence int, summary string, by muster.Name, owner landing.Owner,
	) (landing.Verdict, error)
	Revoke(ctx context.Context, id muster.TaskID, fence int) error
	CheckBase(ctx context.Context) (landing.CheckResult, error)
}

// Talk is a conversation of the user with the lead, as the lead sees it. While it is open the
// run does not end by itself: where it would, the lead listens.
type Talk interface {
	// Closed returns a channel that is closed when the user says no more; the run then ends
	// like any other.
	Closed() <-chan struct{}
	// Turn is called when the lead's turn begins. Its context ends with muster.CauseTurn when
	// the user stops the turn.
	Turn(context.Context) (context.Context, context.CancelFunc)
	// Heard is called for each mail of the user that enters the lead's conversation.
	Heard(muster.MessageID)
	// Rest is called when the lead's turn is over and the prompt is the user's. done says
	// that nothing is open and nobody is at work.
	Rest(done bool)
}

// TalkLease is held by a process that shows the user a conversation with a lead that lives in
// another one.
const TalkLease = "talk"

// hasConversation reports whether the user is in a conversation with the lead, here or in
// another process.
func (s *Services) hasConversation(ctx context.Context) bool {
	if s.inTalk() {
		return true
	}
	held, err := s.Store.Leases().Held(ctx, TalkLease)
	return err == nil && held
}

// inTalk reports whether a conversation is open in this process.
func (s *Services) inTalk() bool {
	if s.Talk == nil {
		return false
	}
	select {
	case <-s.Talk.Closed():
		return false
	default:
		return true
	}
}
