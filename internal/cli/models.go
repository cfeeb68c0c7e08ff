package cli

import (
	"cmp"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"muster"
	"muster/internal/config"
	"muster/internal/demo"
	"muster/internal/editdist"
	"muster/internal/paths"
	"muster/internal/proc"
	"muster/internal/redact"
	"muster/internal/spend"
	"muster/internal/workspace"
	"muster/llm"
	"muster/llm/anthropic"
	"muster/llm/catalogue"
	"muster/llm/openai"
	"muster/llm/script"
	"muster/store/file"
	"muster/team"
)

// heapBallast is memory that is never touched, so that the system never gives it. The collector counts it, and lets
// a small team's heap grow by as much before it runs again; it would run after every second turn otherwise. The
// value is a trade of memory for time: it adds at most that much to the heap of a process.
const heapBallast = 2 << 20

// startTeam brings a team to life. It is the Start of the installed program. It returns when the run is over, or
// when ctx ends.
func (a *App) startTeam(ctx context.Context, j Job) (team.Summary, error) {
	ballast := make([]byte, heapBallast)
	defer runtime.KeepAlive(ballast)
	dirs := a.unusableDirs()
	// The team is not closed here, because the workspace in which it works is closed by the command.
	t, err := a.openTeam(j) //nolint:contextcheck // Opening starts nothing.
	switch {
	case err != nil:
		return team.Summary{Code: exitError}, err
	case j.Opened != nil:
		j.Opened(t)
	}
	isScreenOurs := j.Conversation == nil // or a conversation has it
	for _, line := range dirs {
		if isScreenOurs {
			explain(a.Stderr, line, "")
		}
	}
	if j.Resume {
		return t.Resume(ctx)
	}
	if line := unknownModel(j.Settings, a.Env); line != "" && isScreenOurs {
		explain(a.Stderr, line, "say more of it:  models: in your own config.yaml")
	}
	return t.Run(ctx, j.Goal, j.How)
}

// unknownModel returns what is assumed of the team's model if nothing is known of it, and "" otherwise.
func unknownModel(s config.Settings, environ []string) string {
	c, _, err := s.Endpoints.Choose(s.Model, environ)
	if err != nil || c.Provider == config.Script || s.Endpoints.Known(s.Model, c).Name != "" {
		return ""
	}
	limit := "replies are as long as its server allows"
	if c.API() == config.Anthropic {
		limit = "a reply has at most 32,000 tokens"
	}
	if s.Limits.MaxTokens > 0 {
		limit = "a reply has at most max_tokens"
	}
	think := "no thinking is asked for"
	if s.Effort != "" {
		think = "it is asked for the effort that you name"
	}
	near := ""
	if c.URL == "" { // a server of the user's own has models of its own
		near = editdist.DidYouMean(config.NearModels(s.Model, s.Endpoints.Models(catalogue.All())))
	}
	return "nothing is known of the model " + config.Stored(s.Model) + near + ": " + limit + ", and " + think
}

// openTeam returns the team that a job is about. It is the only place that makes the configuration of package team from
// settings.
func (a *App) openTeam(j Job) (*team.Team, error) {
	s := j.Settings
	// A model that cannot be had is reported before anything is written.
	open := a.model
	first, err := open(j.Workspace, s.Model, s)
	for _, name := range s.OwnModels() {
		if _, e := open(j.Workspace, name, s); e != nil {
			err = cmp.Or(err, e)
		}
	}
	if err != nil && !j.OnlyLands {
		return nil, err
	}
	files, err := readRoleFiles(a, j.Workspace, s)
	if err != nil {
		return nil, err
	}
	servers, secrets, err := countingMCP(a, j.Workspace, s)
	if err != nil {
		return nil, err
	}
	day, err := dayLog(a, s)
	if err != nil {
		return nil, err
	}
	return team.OpenIn(j.Workspace, team.Config{
		Settings: s.Run, Name: muster.Name(s.Team), ModelName: config.Stored(s.Model),
		Conversation: j.Conversation, Emit: j.Emit,
		// A teammate may have a model of its own. The team's model is opened once and shared.
		Model: func(name string) (llm.Model, error) {
			if name == "" {
				return first, nil
			}
			return open(j.Workspace, name, s)
		},
		Price: func(name string) func(llm.Reply, time.Time) (float64, bool) {
			return price(s, cmp.Or(name, s.Model), a.Env)
		},
		DayLog:   day,
		Roles:    func(name string) team.Role { return role(open, j.Workspace, s, files, name) },
		NoImages: func(name string) bool { return takesNoImages(s, cmp.Or(name, s.Model), a.Env) },
		Window: func(name string) (tokens, reply int) {
			known := knownModel(s, cmp.Or(name, s.Model), a.Env)
			return known.Window, known.ReplyLimit()
		},
		OnBegin: func(ctx context.Context) { rememberServer(ctx, a, j.Workspace, j.Settings) },
		Log:     a.logger(),
		Secrets: slices.Concat(secretValues(a), redact.InURLs(s.Model), s.Endpoints.Secrets(), endpointKeys.values(),
			secrets),
		MCPServers: func() []team.MCPServer { return servers }, MCPCache: mcpCache(a),
		Sandbox: team.Sandbox(s.Sandbox), Resources: resources(s),
		Environ: a.Env, Home: a.env("HOME"), UserDir: userDir(a), CacheDir: cacheDir(a),
	})
}

// resources returns how much of the machine the programs of a team may use. The settings have checked the sizes.
func resources(s config.Settings) team.Resources {
	size := func(text string) int64 {
		n, _ := config.ParseSize(text, proc.MachineMemory())
		return n
	}
	return team.Resources{Processes: int64(s.Processes), Memory: size(s.Memory), FileSize: size(s.FileSize),
		FreeDisk: size(s.FreeDisk)}
}

// cacheDir returns where what can be made again is kept, or "" where the user has no directory for it.
func cacheDir(a *App) string {
	dir, err := paths.UserCache(a.env)
	if err != nil || a.hasNoCache {
		return ""
	}
	return dir
}

// price returns what tells the cost of a model's replies. A script costs nothing. The figures of a model that the
// catalogue has under the name by which it answers are taken where it has none under the name that was asked.
func price(s config.Settings, name string, environ []string) func(llm.Reply, time.Time) (float64, bool) {
	c, _, err := s.Endpoints.Choose(name, environ)
	known := s.Endpoints.Known(name, c)
	return func(r llm.Reply, at time.Time) (float64, bool) {
		if err != nil || c.Provider == config.Script {
			return 0, err == nil
		}
		m := known
		if len(m.Prices) == 0 {
			m, _ = catalogue.Lookup(c.Vendor(), r.Model)
		}
		return m.Cost(r.Usage, at)
	}
}

// dayLog opens the log of what the user spends in all repositories, which is only needed for a budget of a day.
func dayLog(a *App, s config.Settings) (muster.Log, error) {
	if b, err := spend.ParseBudget(s.Budgets.Day); err != nil || b == (spend.Budget{}) {
		return nil, err
	}
	dir, err := paths.UserState(a.env)
	if dir = filepath.Join(dir, "spend"); err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return nil, muster.Errorf(muster.Unavailable, "the budget for a day (budget.day) cannot be kept: %w", err).
			WithHint("export XDG_STATE_HOME=DIR")
	}
	store, err := file.Open(dir)
	if err != nil {
		return nil, err
	}
	return store.Log(), nil
}

// takesNoImages reports whether a model is known to take no images. Of an unknown one, its server may take some.
func takesNoImages(s config.Settings, name string, environ []string) bool {
	known := knownModel(s, name, environ)
	return known.Name != "" && !known.Images
}

// knownModel returns what is known of the model with a name: nothing where it cannot be had.
func knownModel(s config.Settings, name string, environ []string) catalogue.Model {
	c, _, err := s.Endpoints.Choose(name, environ)
	if err != nil {
		return catalogue.Model{}
	}
	return s.Endpoints.Known(name, c)
}

// windowOf returns a function that says how many tokens a model takes, 0 where that is not known. It is asked again and
// again for the same model, by one caller at a time.
func windowOf(a *App, s config.Settings) func(model string) int {
	last, window := "", 0
	return func(model string) int {
		if model != last {
			last, window = model, knownModel(s, model, a.Env).Window
		}
		return window
	}
}

// demoJob makes the demo's job. It is the Demo of the installed program. The job sets the model, the check and the
// size of the team itself, and does not read settings from the environment.
func demoJob(ctx context.Context, dir, cache string, isPlayed bool) (Job, error) {
	d, err := demo.Make(ctx, dir, cache, isPlayed)
	if err != nil {
		return Job{}, err
	}
	s, _, err := config.Load(config.Options{})
	s.Model, s.Check, s.Team, s.Teammates = config.Script+"/"+d.Script, d.Check, d.Team, d.Teammates
	s.UserModel = s.Model
	s.Jobs = 1           // what a check covers is the same on each machine
	s.Sandbox.On = false // what the members do is known, and the demo works where nothing can confine them
	return Job{Goal: d.Goal, Settings: s}, err
}

// model returns the model with a name. The environment and the user's endpoints have the keys. A script is a file,
// whose path is relative to the directory of -C. The name may come from a record in the workspace, which may not choose
// a server.
func (a *App) model(w *workspace.Workspace, name string, s config.Settings) (llm.Model, error) {
	if err := checkServer(a, w, name, s); err != nil {
		return nil, err
	}
	return newModel(a, name, s, nil)
}

// newModel makes the model that model returns. observe sees the answers of its server; nil: nobody looks.
func newModel(a *App, name string, s config.Settings, observe func(*http.Response)) (llm.Model, error) {
	c, access, err := s.Endpoints.Choose(name, a.Env)
	if err != nil {
		return nil, err
	}
	known, allowed := s.Endpoints.Known(name, c), llm.Account{Requests: access.Requests, Tokens: access.Tokens}
	key, renew, err := endpointKeys.of(a, access)
	if err != nil {
		return nil, muster.Errorf(muster.Invalid, "the model %s cannot be used: %w", config.Stored(name), err)
	}
	switch c.API() {
	case config.Anthropic:
		return anthropic.New(anthropic.Options{Model: c.Name, BaseURL: c.URL, Key: key, IsBearer: access.IsBearer,
			Renew: renew, MaxTokens: s.Limits.MaxTokens, Effort: s.Effort, Known: known, Header: access.Header,
			Extra: access.Extra, Observe: observe, Allowed: allowed}), nil
	case config.OpenAIChat, config.OpenAIResponses:
		// The two interfaces of the provider differ in the form of requests only.
		api := openai.Chat
		if c.API() == config.OpenAIResponses {
			api = openai.Responses
		}
		return openai.New(openai.Options{Model: c.Name, BaseURL: c.URL, Key: key, Renew: renew, API: api,
			MaxTokens: s.Limits.MaxTokens, Effort: s.Effort, Known: known, Header: access.Header, Extra: access.Extra,
			Observe: observe, Allowed: allowed}), nil
	case config.Script:
		// The file is read whole now, so a script that is changed later does not disturb the run.
		words, err := script.Load(scriptFile(a, c.Name))
		if err != nil {
			return nil, err
		}
		return words.Model(), nil
	}
	return nil, muster.Errorf(muster.Invalid, "there is no provider %q", c.Provider)
}
