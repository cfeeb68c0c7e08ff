package team

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"muster"
	"muster/internal/config"
	"muster/internal/landing"
	"muster/internal/mcp"
	"muster/internal/paths"
	"muster/internal/ports"
	"muster/internal/proc"
	"muster/internal/redact"
	"muster/internal/roles"
	"muster/internal/skills"
	"muster/internal/spend"
	"muster/llm"
)

// Config says what a team is made of. Dir and a store must be set, and for a run Model. The rest has defaults.
type Config struct {
	// Settings say how the team works: its check, its limits, and what else people set too.
	Settings
	// Dir is anywhere inside the repository: in a subdirectory or in a linked worktree too. The team works on the root
	// of the main worktree.
	Dir string
	// Store holds the team's state: store/file opened on the root that FindRoot returns for Dir, or store/mem. Open
	// refuses a file store in any other directory: the state would lie in one place and the lanes in another.
	Store muster.Store
	// OpenStore, in place of Store, opens the store at the repository's root. If the store has a method Close,
	// Team.Close calls it.
	OpenStore func(root string) (muster.Store, error)
	// Model returns the model with the given name; "" is the default one. It is asked once for each member's life, and
	// when a teammate is spawned with a model of its own. The name comes from the record of a member, which the lead's
	// model or another program wrote. So it may choose among models, and must never choose where a key is sent.
	Model func(name string) (llm.Model, error)
	// NoImages reports whether a model is known to take no images, by its name as Model gets it. The tools then say so
	// in place of showing one. nil: every model may take some.
	NoImages func(name string) bool
	// Window returns how many tokens a request to a model and its reply may have together, and how many of them the
	// reply may take, by the model's name as Model gets it. 0 is not known: a window of 128,000 is assumed, until the
	// server says that it has less. nil: of no model it is known.
	Window func(name string) (tokens, reply int)
	// Price returns, for a model by its name as Model gets it, what tells the cost of its replies in dollars; ok is
	// false where no price is known. nil: none is known. A model that nobody pays for costs 0.
	Price func(name string) func(r llm.Reply, at time.Time) (dollars float64, ok bool)
	// DayLog has what the user spends in all repositories. It is only written where Budgets.Day is set.
	DayLog muster.Log
	// Roles returns what the members of a role have in place of what all have, and the subagents of the kinds explore
	// and work. Nil: nothing.
	Roles func(role string) Role
	// ModelName is shown, and kept in the run's record without what may be secret in the URL of its endpoint.
	ModelName string
	// Secrets are values that are hidden, as "[secret]", in all that the team stores and shows, and in what its tools
	// return. The keys of this process's environment are hidden too.
	Secrets []string
	// Environ is the environment of what the team starts for its members: commands, checks, set-ups, hooks and MCP
	// servers. If nil, it is that of this process, which is always that of git.
	Environ []string
	// Sandbox confines the commands of members.
	Sandbox Sandbox
	// IsConfined says, in place of Sandbox.On, whether git is confined where members write; it is asked when that is
	// needed first. Nil asks nothing.
	IsConfined func() bool
	// Resources is how much of the machine each command, hook, check and set-up may use; the zero value limits nothing.
	Resources Resources

	// Home is the user's home directory, and UserDir that of the user's own settings of muster: skills and
	// roles are looked for below them too, beside those of the repository, and memories of the user below UserDir. ""
	// looks in the repository only.
	Home, UserDir string

	// CacheDir is where muster keeps for all repositories of the user what it can make again: the directories and
	// caches of checks, what set-ups make, and which ports belong to which lane. "" keeps nothing: each check begins
	// with empty caches then, and lanes have no ports.
	CacheDir string

	// Name of the team; by default the repository directory's name made to fit.
	Name muster.Name
	// Tools are given to every member besides its own. One value serves all: it must be safe for concurrent use.
	Tools []llm.Tool
	// MCPServers returns the servers whose tools every member has; nil: there are none. Each is started when it is
	// first needed, with the rights of this process. MCPCache is the directory in which their tools are remembered; ""
	// asks them in every process.
	MCPServers func() []MCPServer
	MCPCache   string
	// OnBegin, when it is set, is called when a run begins or goes on: nothing can refuse it any more, and no record of
	// it is written yet.
	OnBegin func(context.Context)
	// Emit gets what can be shown while it happens; it must not block and is called from many goroutines. v is a
	// loop.Event of a member's turn, or a muster.Event that could not be written to the journal: the disk is full,
	// perhaps.
	Emit func(member muster.Name, v any)

	// Log is told what people need to find out why a team did what it did: members that start and stop, landings,
	// retries, errors that stopped nobody. It gets no key, no header and no body of a model's request. nil: nothing is
	// logged.
	Log *slog.Logger

	// Conversation keeps the run open for a user who talks with the lead; nil: the run ends by itself.
	Conversation *Conversation
}

// Role is what the members of a role have, or the subagents of a kind. Zero fields say nothing.
type Role struct {
	Model string // its name. A member whose record names one has that.
	// Open makes a model for the role, with the name that Config.Model would get; nil: Config.Model makes it.
	Open      func(name string) (llm.Model, error)
	MaxTokens int      // of a reply
	Fallback  []string // models that are asked, in this order, while the one before does not answer
	Note      string   // is said when the first member of the role starts in this process
}

// The settings are defined once, in internal/config, for the files of people and for embedders.
type (
	// Settings are those that a team reads. docs/settings.md describes them; a zero field takes the library's default.
	Settings = config.Run
	// Landing has the settings of how work lands.
	Landing = config.Landing
	// Limits are the settings of a member's life.
	Limits = config.Limits
	// Budgets limit what a team may spend.
	Budgets = config.Budgets
)

func (c Config) secretValues() []string {
	return slices.Concat(c.Secrets, redact.FromEnviron(c.wholeEnviron()))
}

// checksDir returns where the directories and caches of checks are kept; "" is nowhere.
func (c *Config) checksDir() string {
	if c.CacheDir == "" {
		return ""
	}
	return filepath.Join(c.CacheDir, "checks")
}

func (c *Config) skills(root paths.Dir) []skills.Skill {
	return skills.Find(string(root), c.Home, c.UserDir)
}

// roleFiles returns the roles that the teammates of a team in the repository can have. A process reads them once.
func (c *Config) roleFiles(root paths.Dir) []roles.Role {
	return roles.Find(string(root), c.Home, c.UserDir)
}

func (c *Config) role(name string) Role {
	if c.Roles == nil {
		return Role{}
	}
	return c.Roles(name)
}

// modelOf returns the name of the model that a member has: the one in its record, that of its role, or the team's. The
// lead's record has what it had when the run began.
func (c *Config) modelOf(m muster.Member) string {
	if m.Name == muster.Lead {
		m.Model = ""
	}
	return cmp.Or(m.Model, c.role(m.Role).Model, c.ModelName)
}

// nameOf returns the name of a model in a member's record as Model gets it: the team's own has none.
func (c *Config) nameOf(model string) string {
	if model == c.ModelName {
		return ""
	}
	return model
}

// wholeEnviron returns the team's environment, with what no command may see.
func (c Config) wholeEnviron() []string {
	if c.Environ != nil {
		return c.Environ
	}
	return os.Environ()
}

func (c Config) environ() []string { return proc.Environment(c.wholeEnviron(), c.PassEnv) }

// checkEnviron returns what checks see of the environment.
func (c Config) checkEnviron() []string {
	if !c.CheckCI {
		return c.environ()
	}
	return proc.WithVariables(c.environ(), "CI=true")
}

// MCPServer is the definition of a server of the Model Context Protocol, whose tools the members have.
type MCPServer = mcp.Server

func (c *Config) mcpServers() []MCPServer {
	if c.MCPServers == nil {
		return nil
	}
	return c.MCPServers()
}

// budgets returns the budgets of the settings.
func (c *Config) budgets() (p spend.Budgets, err error) {
	for _, x := range []struct {
		to   *spend.Budget
		text string
	}{{&p.Team, c.Budgets.Team}, {&p.Member, c.Budgets.Member}, {&p.Task, c.Budgets.Task}, {&p.Day, c.Budgets.Day}} {
		var e error
		*x.to, e = spend.ParseBudget(x.text)
		err = cmp.Or(err, e)
	}
	if err == nil && p.Day != (spend.Budget{}) && c.DayLog == nil {
		err = muster.Errorf(muster.Invalid, "a budget of a day needs a log of what the user spends")
	}
	return p, err
}

// checkReviewer refuses a run whose work is to be reviewed by a role that there is not. An agent without a role would
// review as it likes.
func (c *Config) checkReviewer(root paths.Dir) error {
	if c.Review == "" {
		return nil
	}
	if _, ok := roles.Named(c.roleFiles(root), c.Review); !ok {
		return muster.Errorf(muster.Invalid, "there is no role %s to review work before it lands", c.Review).
			WithHint("see those that there are: muster roles")
	}
	return nil
}

// Resources say how much of the machine a program and all that it starts may use; 0 is no limit. A program that reaches
// a limit is told so at the end of its output, and whoever reads that knows which setting it was.
//
// They hold on Linux, in a program that calls Guard. Control groups keep the first two where this user may make some;
// elsewhere the processes are counted, and the program is killed.
type Resources struct {
	Processes int64 // at once, with their threads
	Memory    int64 // bytes
	FileSize  int64 // bytes of each file that is written
	// FreeDisk is how many bytes stay free on the disk of a lane: the program that has written most is killed before.
	FreeDisk int64
}

// The library limits nothing by itself: a program that embeds a team knows what else its machine has to do. The
// defaults of the command are in internal/config.

func (r Resources) limit(l proc.Launcher) proc.Launcher { return proc.Limit(l, proc.Limits(r)) }

// checkOptions are what the check of a landing and one that is tried have in common.
func (c *Config) checkOptions() landing.Options {
	return landing.Options{Cache: c.checksDir(), SetupFiles: c.SetupFiles, Ports: ports.Open(c.CacheDir),
		PortCount: c.Ports, Check: landing.Check{Command: c.Check, Named: c.Checks, Setup: c.Setup,
			Timeout: c.Limits.CheckTimeout}}
}

// checkBudgets refuses budgets that cannot be held: those that make no sense, and those in dollars where nobody knows
// the price of the team's models.
func (c *Config) checkBudgets() error {
	b, err := c.budgets()
	if err != nil || !b.InDollars() {
		return err
	}
	for _, role := range []string{"lead", "explore", "work"} {
		r := c.role(role)
		for _, model := range append(r.Fallback, cmp.Or(r.Model, c.ModelName)) {
			err = cmp.Or(err, c.checkPrice(model))
		}
	}
	return err
}

// checkPrice refuses a model whose price is not known, where a budget is in dollars.
func (c *Config) checkPrice(model string) error {
	if b, err := c.budgets(); err != nil || !b.InDollars() {
		return err
	}
	if price := c.priceOf(model); price != nil {
		if _, ok := price(llm.Reply{}, time.Now()); ok {
			return nil
		}
	}
	return spend.ErrNoPrice(model)
}

// priceOf returns what tells the price of a model, by its name in a member's record. It is nil where nobody can.
func (c *Config) priceOf(model string) spend.Price {
	if c.Price == nil {
		return nil
	}
	return c.Price(c.nameOf(model))
}

// rememberedMCP returns a pool that starts nothing, for the tools that are remembered; nil: there are no servers.
func (c *Config) rememberedMCP(ctx context.Context, root string) *mcp.Pool {
	servers := c.mcpServers()
	if len(servers) == 0 {
		return nil
	}
	p := mcp.New(ctx, mcp.Options{Dir: root, Cache: c.MCPCache}, servers)
	p.Prepare(ctx, 0, false)
	return p
}
