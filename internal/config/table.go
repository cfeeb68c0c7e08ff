package config

import (
	"cmp"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/lazyregexp"
	"muster/internal/spend"
)

// Settings are the values that hold, typed. Table says what each of them means and its default.
type Settings struct {
	Run
	// Model is provider/model, or "" when none is set and no key decides.
	Model string
	// UserModel is the model that the user's side names: a flag, the environment or the user's own file. A run that
	// goes on may have another Model.
	UserModel string
	// Fallback are the models that are asked while Model does not answer. Roles has what differs for roles, by
	// muster.RoleKey of their names; Role finds it.
	Fallback []string
	Roles    map[string]*Role
	// Endpoints are the model servers of the user's own file.
	Endpoints Endpoints
	Effort    string
	Team      string
	Notify    string
	// NoTitle says that the title of the terminal's window does not tell how the run stands.
	NoTitle bool
	// ClaudeHooks says that the hooks of the user's own ~/.claude/settings.json run too.
	ClaudeHooks bool
	// BrokenHooks says whether a hook that guards something and cannot start refuses it: deny, which "" is, or pass.
	BrokenHooks string
	Sandbox     Sandbox
	// Processes, Memory, FileSize and FreeDisk say how much of the machine a program of the team may use. The last
	// three are texts that ParseSize reads.
	Processes                  int
	Memory, FileSize, FreeDisk string
	// Sections are the settings whose values are structures: of each name those of the user's file, then those of the
	// repository's.
	Sections []Section
}

// Run has the settings that package team reads, which has them for embedders too. A zero field is right: it takes a
// default, or turns something off.
type Run struct {
	// Check is the command that proves the merged tree; "" verifies nothing, and every summary says so.
	Check string
	// Checks are several checks in the place of Check. They run side by side, and all that are not advisory have to
	// pass.
	Checks Checks
	// Setup runs before the check in a fresh checkout. SetupFiles are patterns of the files on which its result
	// depends, besides the manifests and lockfiles of known tools.
	Setup      string
	SetupFiles []string
	// Land is the branch that work lands on; by default muster/NAME.
	Land string
	Landing
	// Teammates is how many teammates may live at once. Zero: the lead does everything.
	Teammates int
	Limits    Limits
	Budgets   Budgets
	// Directory is the directory, relative to the root and with slashes, in which the commands of members start and
	// their relative paths begin; "" is the root. The check and the set-up run at the root: they may begin with a cd.
	Directory string
	// WorktreesDir puts lanes elsewhere than .worktrees.
	WorktreesDir string
	// CheckCI sets CI=true for the check and the set-up, which keeps many tools from waiting for changes.
	CheckCI bool
	// Ports is how many network ports of its own each lane and each check has, at most 20. They need a cache directory.
	Ports int
	// PassEnv names the variables of the environment that commands see beside the usual ones, as NAME or PREFIX_*. A
	// variable with the name of a credential is only passed by its whole name.
	PassEnv []string
}

// Landing has the settings of how work lands.
type Landing struct {
	// Review is the role that reviews all work before it lands; "" reviews that of tasks which ask for it.
	Review string
	// Jobs is how many checks of landings may run at once: over 1, both halves of a red stack are checked at the same
	// time. 0: by the machine's cores and memory.
	Jobs int
	// Sign says whether the commits that land are signed: "true", "false", or "auto" ("", too) if the user's git signs.
	Sign string
	// LandSecrets lets land what looks like a key. Without it such work is returned to its owner.
	LandSecrets bool
	// Message is what commits that land say, with {subject}, {body}, {task}, {owner} and {model}; "": subject and body.
	Message string
	// MergeCommits lands each task as a merge commit that keeps the lane's own commits.
	MergeCommits bool
}

// Limits are the settings of a member's life. A zero field takes the default that its comment has.
type Limits struct {
	Turns             int           // turns in a work phase; 0: 200, and 50 without a change in files, board or mail
	MaxTokens         int           // of a reply; 0: as many as the model allows
	SubagentTurns     int           // of a subagent: 30; of a reviewer too
	IdleTimeout       time.Duration // of an idle teammate: one minute; below zero: never
	BashTimeout       time.Duration // of a command: 2 minutes
	BackgroundTimeout time.Duration // of a command in the background: 5 minutes
	CheckTimeout      time.Duration // of the check of a landing: 10 minutes
	IdlePoll          time.Duration // between two looks without a hint: 5 seconds
	TodoLimit         int           // items of a member's own list: 20
	TodoReminder      int           // rounds without the list until a reminder: 10; below zero: none
	ModelPatience     time.Duration // with the troubles of a model server: an hour; below zero: none
	// KeepUnattended leaves a task to people if its owner has ended twice without completing it. Otherwise it is
	// completed with the owner's last words.
	KeepUnattended bool
}

// WithDefaults returns l with the defaults of the table in place of its zero fields.
func (l Limits) WithDefaults() Limits {
	all := Settings{Run: Run{Limits: l}}
	for _, s := range all.table() {
		if s.removed == "" && reflect.ValueOf(s.to).Elem().IsZero() {
			_ = s.set(s.Default) // a default is right
		}
	}
	return all.Limits
}

// Budgets limit what a team may spend. Each is an amount of dollars, such as "5", or a number of tokens, such as
// "200k tokens"; "" and "none" are no limit. A call of a model begins only while less was spent than each budget that
// it counts against, so at most the calls that are under way go over.
type Budgets struct {
	Team   string // the whole run, with what it has spent before it was resumed
	Member string // each member, in the run
	Task   string // each task, in the run
	Day    string // all runs of the user, in a day
}

// Sandbox says how the commands of members are confined, and the check and the set-up, which run what members have
// written. The zero value confines nothing.
type Sandbox struct {
	// On confines them: a command writes in its lane, reads the system, the toolchains and the repository, and has no
	// network.
	On bool
	// OpenChecks lets the check and the set-up run with the user's rights all the same.
	OpenChecks bool
	// OpenHooks lets the hooks that the repository brings run with the user's rights, too.
	OpenHooks bool
	// Read and Write are paths that a command may read and write besides.
	Read, Write []string
	// Network are the hosts that a command may reach: HOST or *.HOST, with :PORT or for 80 and 443, and =NETWORK where
	// they lead into a private one. Others are refused. SetupNetwork are those that the set-up may reach besides.
	Network, SetupNetwork []string
}

// CheckText returns what is checked, in a line: the command, or the names of the checks that must pass.
func (s Settings) CheckText() string { return cmp.Or(s.Check, muster.RequiredNames(s.Checks)) }

// Setting describes one setting: a row of the table.
type Setting struct {
	// Name is the name in the files. A dot separates levels.
	Name    string
	Default string
	// About describes the setting in one line.
	About string
	// to points to a field of Settings, whose type decides how text is read.
	to any
	// least is the smallest allowed number or duration.
	least int
	most  int // the largest allowed number; 0: any
	// isOffAtZero says that 0 turns it off. Its field is -1 then, because one that is zero takes the default.
	isOffAtZero bool
	// isInverted says that its field is true where the text is false, so that a zero field has the default.
	isInverted bool
	// words are the only allowed values; if empty, every text is allowed.
	words []string
	// separators stand between the entries of a list; by default a comma.
	separators string
	// check reports what is wrong with a text that is not empty, or with an entry of a list; nil takes every one.
	check func(string) error
	// isModel says that its text names models.
	isModel bool
	// flag is the name of its flag where Name does not make it.
	flag string
	// Usage is what the help says of its flag; without one, no command has the flag.
	Usage string
	// Implied is the value of a flag that is given without one.
	Implied string
	// IsFixed says that a run which goes on keeps its value: only the command that begins one has the flag.
	IsFixed bool
	// removed is the version that removed the setting: where one is still set, Load reports it as a Value that says so,
	// and it changes nothing. Of a level, such as roles.arbiter, all below it was removed.
	removed string
	// inRepository says when the setting counts that a repository's own file has.
	inRepository rule
}

// rule says when a setting counts that a repository's own file has: the file comes from whoever made the repository.
type rule int

const (
	// needsTrust: left out until the user trusts the value. It is the zero value, so that no new setting is forgotten.
	needsTrust rule = iota
	// stopsRuns: as needsTrust, and no run begins meanwhile. Without such a setting a run would be another one: not
	// checked, or landing elsewhere.
	stopsRuns
	// mayLower: counts if it is lower than what would hold without it.
	mayLower
	// counts: it does no harm.
	counts
	// isRefused: only the user's own file, the environment and a flag may have it.
	isRefused
)

// Table lists every setting, in the order in which muster config prints them. The files, the environment, the flags,
// the help and the documentation all follow it.
func Table() []Setting {
	return slices.DeleteFunc(new(Settings).table(), func(s Setting) bool { return s.removed != "" })
}

// table lists the settings of s. A setting is defined by its field above and by its row here, and nowhere else.
func (s *Settings) table() []Setting {
	return []Setting{
		{Name: "model", to: &s.Model, check: s.checkModel, isModel: true,
			About: "the model, as provider/model; by default by whichever key is set",
			Usage: "`MODEL` as provider/model, such as anthropic/claude-sonnet-5 or " +
				"openai/qwen3@http://localhost:11434/v1"},
		{Name: "fallback", to: &s.Fallback, separators: ", ", check: s.checkModel, isModel: true,
			About: "models that are asked, in this order, while the model does not answer"},
		{Name: "teammates", to: &s.Teammates, Default: "4", inRepository: mayLower,
			About: "how many teammates may live at once; 0: the lead does everything",
			Usage: "how many teammates at most; 0: the lead does everything"},
		{Name: "check", to: &s.Check, inRepository: stopsRuns,
			About: "the command that proves the merged tree; without one nothing is verified",
			Usage: "`COMMAND` that proves the merged tree before anything lands"},
		{Name: "checks", to: &s.Checks, inRepository: stopsRuns,
			About: "several named checks, in place of check; see docs/checks.md"},
		{Name: "setup", to: &s.Setup, inRepository: stopsRuns,
			About: "the command that runs before the check in a fresh checkout",
			Usage: "`COMMAND` that runs before the check in a fresh checkout, such as npm ci"},
		{Name: "review", to: &s.Review, inRepository: stopsRuns, check: checkReviewRole,
			About: "the role that reviews all work before it lands; by default only that of tasks which ask for it",
			Usage: "`ROLE` that reviews all work before it lands; without a name: reviewer", Implied: defaultReviewer},
		{Name: "land", to: &s.Land, inRepository: stopsRuns,
			About:   "the branch that work lands on; by default muster/TEAM",
			Usage:   "`BRANCH` to land on instead of muster/TEAM; the one that you are on is moved at the end",
			IsFixed: true},
		{Name: "team", to: &s.Team, check: func(text string) error { return muster.CheckName(muster.Name(text)) },
			About: "the team's name; by default made of the repository directory's",
			Usage: "`NAME` of the team (default: the directory's)", IsFixed: true},
		{Name: "max_turns", to: &s.Limits.Turns, Default: "0",
			About: "how many turns a member has in a work phase; 0: 200, and 50 without a change",
			Usage: "turns a member has in a work phase; 0: 200, and 50 without a change"},
		{Name: "max_tokens", to: &s.Limits.MaxTokens, Default: "0",
			About: "how many tokens a reply may have; 0: as many as the model allows"},
		{Name: "subagent_turns", to: &s.Limits.SubagentTurns, Default: "30", least: 1,
			About: "how many turns a subagent has"},
		{Name: "todo_limit", inRepository: counts, to: &s.Limits.TodoLimit, Default: "20", least: 1,
			About: "how many items a member's own todo list may have"},
		{Name: "todo_reminder", inRepository: counts, to: &s.Limits.TodoReminder, Default: "10", isOffAtZero: true,
			About: "after how many rounds without it a member is reminded of open items; 0: never"},
		{Name: "complete_unattended", to: &s.Limits.KeepUnattended, isInverted: true, Default: "true",
			inRepository: counts,
			About: "complete a task with its owner's last words if the owner ends twice without completing it; " +
				"false: it needs you"},
		{Name: "effort", to: &s.Effort, words: efforts,
			About: "how hard the model thinks, where it can be told"},
		{Name: "idle_timeout", inRepository: counts, to: &s.Limits.IdleTimeout, Default: "1m", isOffAtZero: true,
			About: "how long an idle teammate stays; 0: for ever"},
		{Name: "idle_poll", inRepository: counts, to: &s.Limits.IdlePoll, Default: "5s",
			least: int(100 * time.Millisecond), About: "how often a process looks at what the system has not reported"},
		{Name: "bash_timeout", inRepository: counts, to: &s.Limits.BashTimeout, Default: "2m", least: 1,
			About: "how long a command of a member may run"},
		{Name: "background_timeout", inRepository: counts, to: &s.Limits.BackgroundTimeout, Default: "5m", least: 1,
			About: "how long a background command may run"},
		{Name: "check_timeout", inRepository: counts, to: &s.Limits.CheckTimeout, Default: "10m", least: 1,
			About: "how long a check may run"},
		{Name: "model_patience", inRepository: counts, to: &s.Limits.ModelPatience, Default: "1h", isOffAtZero: true,
			About: "how long troubles of a model server are waited out; 0: not at all"},
		{Name: "budget.team", flag: "budget", to: &s.Budgets.Team, check: checkBudget, inRepository: mayLower,
			About: "what a run may cost in all, such as 5 (dollars) or 2M tokens; none: no limit",
			Usage: "what the run may cost in all: `AMOUNT` in dollars, such as 5, or \"2M tokens\""},
		{Name: "budget.member", to: &s.Budgets.Member, check: checkBudget, inRepository: mayLower,
			About: "what each member may cost in a run"},
		{Name: "budget.task", to: &s.Budgets.Task, check: checkBudget, inRepository: mayLower,
			About: "what each task may cost in a run"},
		{Name: "budget.day", to: &s.Budgets.Day, check: checkBudget, inRepository: isRefused,
			About: "what all your runs together may cost in a day"},
		{Name: "directory", to: &s.Directory, check: checkDirectory, inRepository: stopsRuns,
			About: "where in the repository commands, relative paths and the check start; by default where you start " +
				"muster, and . is the top"},
		{Name: "worktrees.dir", to: &s.WorktreesDir,
			About: "where lanes are made; by default .worktrees in the repository"},
		{Name: "setup_files", inRepository: counts, to: &s.SetupFiles, separators: " \t\r\n",
			About: "patterns of files that setup reads besides manifests and lockfiles, such as api/*.proto"},
		{Name: "check_ci", inRepository: counts, to: &s.CheckCI, Default: "false",
			About: "whether checks see CI=true, with which many tools do not wait for changes, and some are stricter"},
		{Name: "ports", to: &s.Ports, inRepository: counts, Default: "3", most: 20,
			About: "how many network ports of its own each lane and each check has; 0: none"},
		{Name: "landing.merge_commits", inRepository: counts, to: &s.MergeCommits, Default: "false",
			About: "land each task as a merge commit that keeps its lane's own commits"},
		{Name: "landing.message", inRepository: counts, to: &s.Message, check: checkMessage,
			About: "what landed commits say, such as chore: {subject}; fields: subject, body, task, owner, model"},
		{Name: "landing.jobs", flag: "jobs", to: &s.Jobs, Default: "0",
			About: "over 1, both halves of a red stack are checked at once; 0: by cores and memory"},
		{Name: "landing.secrets", to: &s.LandSecrets, isInverted: true, inRepository: isRefused, Default: "true",
			About: "hold back work that has what looks like a key; see muster allow"},
		{Name: "landing.sign", to: &s.Sign, words: []string{"", "auto", "true", "false"},
			About: "whether commits that land are signed; by default auto: if your own git config signs commits"},
		{Name: "notify", to: &s.Notify, words: []string{"", "auto", "bell", "osc", "off"}, inRepository: isRefused,
			About: "how a terminal tells that something needs you: auto, bell, osc (on the desktop) or off"},
		{Name: "title", to: &s.NoTitle, isInverted: true, Default: "true", inRepository: isRefused,
			About: "whether the title of the terminal's window tells how the run stands"},
		{Name: "claude_hooks", to: &s.ClaudeHooks, Default: "false", inRepository: isRefused,
			About: "whether the hooks of your own ~/.claude/settings.json run too"},
		{Name: "broken_hooks", to: &s.BrokenHooks, words: []string{"", "deny", "pass"}, inRepository: isRefused,
			About: "whether a hook that is to guard something and cannot start refuses it: deny (the default) or pass"},
		{Name: "sandbox.enabled", flag: "sandbox", to: &s.Sandbox.On, Default: "true", inRepository: isRefused,
			About: "whether commands of members, checks and set-ups are confined, without a network",
			Usage: "confine commands and checks, whatever the settings say"},
		{Name: "sandbox.checks", to: &s.Sandbox.OpenChecks, isInverted: true, Default: "true",
			inRepository: isRefused, About: "whether the check and the set-up are confined too, where commands are"},
		{Name: "sandbox.hooks", to: &s.Sandbox.OpenHooks, isInverted: true, Default: "true", inRepository: isRefused,
			About: "whether the repository's hooks are confined as commands are"},
		{Name: "sandbox.read", to: &s.Sandbox.Read, check: checkPath, inRepository: isRefused,
			About: "paths that confined commands may read besides, with commas between them"},
		{Name: "sandbox.write", to: &s.Sandbox.Write, check: checkPath, inRepository: isRefused,
			About: "paths that confined commands may write besides, such as a cache"},
		{Name: "sandbox.network", to: &s.Sandbox.Network, check: checkHost, inRepository: isRefused,
			About: "hosts that confined commands may reach, such as *.npmjs.org, registry.corp=10.0.0.0/8"},
		{Name: "sandbox.setup_network", to: &s.Sandbox.SetupNetwork, Default: registries, check: checkHost,
			inRepository: isRefused, About: "hosts that a confined set-up may reach besides; by default registries"},
		{Name: "resources.processes", to: &s.Processes, Default: "10000", inRepository: isRefused,
			About: "how many processes and threads a command, check or set-up may have at once; 0: no limit"},
		{Name: "resources.memory", to: &s.Memory, Default: "75%", check: checkSize, inRepository: isRefused,
			About: "how much memory each of them may use, such as 8GB or 75% of the machine's; 0: no limit"},
		{Name: "resources.file_size", to: &s.FileSize, Default: "20GB", check: checkSize, inRepository: isRefused,
			About: "how large a file that they write may be; 0: no limit"},
		{Name: "resources.free_disk", to: &s.FreeDisk, Default: "1GB", check: checkSize, inRepository: isRefused,
			About: "how much of the disk stays free: what fills it further is killed; 0: nothing"},
		{Name: "environment.pass", to: (*names)(&s.PassEnv), separators: ", ", inRepository: isRefused,
			About: "variables that commands see beside the usual ones, as NAME or PREFIX_*",
			Usage: "`NAMES` of variables that commands see too, such as MY_NAME,MY_*"},
		{Name: "arbiter_turns", removed: "v0.1.0"},
		{Name: "kept_results", removed: "v0.1.0"},
		{Name: "landing.check_covered", removed: "v0.1.0"},
		{Name: "roles.arbiter", removed: "v0.1.0"},
	}
}

// registries are where the common package managers download from. Nobody can leave something at them without a key.
const registries = "proxy.golang.org, sum.golang.org, registry.npmjs.org, registry.yarnpkg.com, pypi.org, " +
	"files.pythonhosted.org, crates.io, index.crates.io, static.crates.io, rubygems.org, index.rubygems.org, " +
	"repo.maven.apache.org, repo1.maven.org, plugins.gradle.org, services.gradle.org, api.nuget.org, " +
	"packagist.org, repo.packagist.org, hex.pm, repo.hex.pm"

// defaultReviewer is the built-in role that reviews.
const defaultReviewer = "reviewer"

// reviewer returns the role that the text of review names, "" for none. The word true stands for the built-in role, and
// false for none.
func reviewer(text string) string {
	switch text {
	case "true":
		return defaultReviewer
	case "false":
		return ""
	}
	return text
}

func checkReviewRole(role string) error {
	if muster.RoleKey(role) == "" {
		return muster.Errorf(muster.Invalid, "review is the name of a role, not %q", role)
	}
	return nil
}

func checkBudget(text string) error {
	_, err := spend.ParseBudget(text)
	return err
}

// messageField matches a field of landing.message.
var messageField = lazyregexp.New(`\{(\w*)\}`)

// checkMessage refuses a message with a field that does not exist, and one with trailers of muster's own.
func checkMessage(message string) error {
	for _, m := range messageField().FindAllStringSubmatch(message, -1) {
		if !slices.Contains([]string{"subject", "body", "task", "owner", "model"}, m[1]) {
			return muster.Errorf(muster.Invalid,
				"there is no field %s: use {subject}, {body}, {task}, {owner} or {model}", m[0])
		}
	}
	if strings.Contains(strings.ToLower(message), "muster-") {
		return muster.Errorf(muster.Invalid, "the trailers Muster-... are muster's own: leave them out")
	}
	return nil
}

func checkDirectory(dir string) error {
	if !filepath.IsLocal(filepath.FromSlash(dir)) {
		return muster.Errorf(muster.Invalid, "directory is a path inside the repository, relative to its top, not %q",
			dir)
	}
	return nil
}

// checkPath refuses a path that depends on where muster is started.
func checkPath(entry string) error {
	if !filepath.IsAbs(entry) && !strings.HasPrefix(entry, "~/") {
		return muster.Errorf(muster.Invalid, "the path %q is not absolute", entry)
	}
	return nil
}

// InHome returns paths with a home directory in the place of "~" at their beginning.
func InHome(home string, paths []string) (all []string) {
	for _, path := range paths {
		if rest, ok := strings.CutPrefix(path, "~/"); ok {
			path = filepath.Join(home, rest)
		}
		all = append(all, path)
	}
	return all
}

// efforts are the values of effort.
var efforts = []string{"", "minimal", "low", "medium", "high", "xhigh", "max"}

// IsEffort reports whether a word is a value of effort.
func IsEffort(word string) bool { return slices.Contains(efforts, word) }

// checkModel reports what is wrong with the name of a model. The endpoints are known before a model is set.
func (s *Settings) checkModel(model string) error { return s.Endpoints.CheckModel(model) }

// Env returns the name of the environment variable that sets it.
func (s Setting) Env() string {
	return "MUSTER_" + strings.ToUpper(strings.ReplaceAll(s.Name, ".", "_"))
}

// Kind returns the kind of its value.
func (s Setting) Kind() reflect.Kind { return reflect.TypeOf(s.to).Elem().Kind() }

// Flag returns the name of the flag that sets it, without dashes in front.
func (s Setting) Flag() string {
	return cmp.Or(s.flag, strings.NewReplacer(".", "-", "_", "-").Replace(s.Name))
}
