package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster"
	"muster/internal/config"
	"muster/internal/drill"
	"muster/internal/lazyregexp"
	"muster/internal/spend"
	"muster/internal/text"
	"muster/internal/view"
	"muster/journal"
	"muster/llm"
	"muster/team"
)

// drillTurns is how many turns a phase of a member may have in a drill whose model has no known price.
const drillTurns = 40

// drillReport is what a drill has found. It is what --json prints.
type drillReport struct {
	Model string      `json:"model"`
	Goals []drillGoal `json:"goals"`
	Done  int         `json:"done"`  // goals that ended as they should
	Of    int         `json:"of"`    // all goals
	Spent spend.Sum   `json:"spent"` // by all of them
	// Stopped says why the drill ended before its last goal did.
	Stopped string `json:"stopped,omitempty"`
	Kept    string `json:"kept,omitempty"` // the directory with the repositories
}

// drillGoal is what came of one goal.
type drillGoal struct {
	Goal       string    `json:"goal"`
	Turns      int       `json:"turns"`
	WrongMoves int       `json:"wrong_moves"` // calls whose result is an error, without commands that ran and failed
	Done       bool      `json:"done"`
	Why        string    `json:"why,omitempty"` // not
	Spent      spend.Sum `json:"spent"`
	Seconds    float64   `json:"seconds"`
}

// maxWhy is how many bytes of a run's last words stand behind what is wrong with its result.
const maxWhy = 200

// driller runs a drill.
type driller struct {
	*App
	dir    string // with a repository for each goal
	model  string
	priced bool
}

// runDrill lets a model do the goals of package drill, each in a repository of its own and as a whole run, until the
// money is spent. name "" is the model of the settings. With an error r has what was found until then.
func runDrill(ctx context.Context, a *App, name string, maxCost float64, keep bool) (r drillReport, err error) {
	flags := map[string]string{}
	if file, ok := strings.CutPrefix(name, config.Script+"/"); ok {
		name = config.Script + "/" + scriptFile(a, file) // the runs are elsewhere
	}
	options := a.configOptions("")
	if name != "" {
		flags["model"] = name
		options.Flags = flags
	}
	settings, _, err := config.Load(options)
	if err != nil {
		return r, err
	}
	if _, _, err := settings.Endpoints.Choose(settings.Model, a.Env); err != nil {
		return r, err
	}
	d := driller{App: a, model: settings.Model}
	_, d.priced = price(settings, d.model, a.Env)(llm.Reply{Usage: llm.Usage{Input: 1, Output: 1}}, a.Now())
	if d.dir, err = os.MkdirTemp(a.env("TMPDIR"), "muster-drill-"); err != nil {
		return r, err
	}
	if keep {
		r.Kept = d.dir
	} else {
		// The directory goes even after an interruption.
		defer func() { err = cmp.Or(err, os.RemoveAll(d.dir)) }()
	}
	r.Model = config.Stored(d.model)
	goals := drill.Goals()
	r.Of = len(goals)
	if !d.priced {
		explain(a.Stderr, fmt.Sprintf("the price of %s is not known, so --max-cost limits nothing: a member has %d "+
			"turns at most", r.Model, drillTurns), "say it:  models: in your own config.yaml")
	}
	for i, g := range goals {
		left := maxCost - r.Spent.Dollars.Float()
		if d.priced && left < 0.01 {
			r.Stopped = fmt.Sprintf("the limit of %s (--max-cost) is reached", spend.FromFloat(maxCost))
			break
		}
		fmt.Fprintf(a.Stderr, "%d of %d: %s\n", i+1, len(goals), g.Name)
		got, spentText, err := d.run(ctx, filepath.Join(d.dir, fmt.Sprintf("drill-%d", i+1)), g, left)
		if e, ok := errors.AsType[*muster.Error](err); ok { // its hint is for a run that goes on
			err = muster.Errorf(e.Code, "%s: %s", g.Name, muster.PlainText(err)).WithHint("muster doctor --model %s",
				r.Model)
		}
		r.Goals, r.Spent = append(r.Goals, got), r.Spent.Plus(got.Spent)
		if err != nil {
			return r, err
		}
		if got.Done {
			r.Done++
		}
		if spentText != "" && r.Spent.Dollars.Float() < maxCost { // another budget of the user's is spent
			r.Stopped = spentText
			break
		}
	}
	return r, nil
}

// run lets a team do one goal in a directory that it makes. spentText is what a run says that a budget has stopped.
func (d driller) run(
	ctx context.Context, dir string, g drill.Goal, left float64,
) (got drillGoal, spentText string, err error) {
	got.Goal, got.Why = g.Name, "the run did not finish"
	if err := os.Mkdir(dir, 0o755); err != nil {
		return got, "", err
	}
	if err := g.Make(ctx, dir); err != nil {
		return got, "", err
	}
	// The same program, started in the repository of the goal. What is cached and remembered of it goes with it, but
	// not what the user spends in a day.
	host := *d.App
	host.Env = append(slices.Clip(d.Env), "XDG_CACHE_HOME="+filepath.Join(d.dir, "cache"))
	there := host
	there.Dir, there.dir = dir, ""
	there.Env = append(slices.Clip(host.Env), "XDG_STATE_HOME="+filepath.Join(d.dir, "state"))
	o, err := there.change(ctx)
	if err != nil {
		return got, "", err
	}
	defer o.close()
	flags := map[string]string{"model": d.model, "check": drill.Check, "max-turns": strconv.Itoa(drillTurns)}
	if d.priced {
		delete(flags, "max-turns")
		flags["budget"] = strconv.FormatFloat(left, 'f', 2, 64)
	}
	settings, err := there.runSettings(ctx, o, flags, false)
	if err != nil {
		return got, "", err
	}
	settings.Fallback, settings.Roles = nil, nil // one model is tried
	began := time.Now()
	sum, failed := host.startTeam(ctx, Job{Workspace: o.workspace, Settings: settings, Goal: g.Words})
	got.Seconds = time.Since(began).Seconds()
	// What a run has cost counts also where it failed or was interrupted.
	spent, err := readSpending(context.WithoutCancel(ctx), o.Team)
	got.Spent, got.Turns = spent.Total, spent.Total.Calls
	if failed != nil {
		return got, "", failed
	}
	if err != nil {
		return got, "", err
	}
	if got.WrongMoves, err = wrongMoves(ctx, o.Team); err != nil {
		return got, "", err
	}
	try := func(command string) (bool, error) {
		settings.Check, settings.Checks = command, nil
		t, err := team.OpenIn(o.workspace, team.Config{ //nolint:contextcheck // OpenIn starts nothing.
			Settings: settings.Run, Secrets: secretValues(d.App), Environ: there.Env, Home: d.env("HOME"),
			CacheDir: cacheDir(&there), Log: d.logger(), Sandbox: team.Sandbox(settings.Sandbox)})
		if err != nil {
			return false, err
		}
		trial, err := team.SetupOf(t).Try(ctx)
		return trial.Green, err
	}
	wrong, err := g.Judge(ctx, dir, sum.Run.Target, sum.Text, try)
	if err != nil {
		return got, "", err
	}
	got.Why = wrong
	said, _, _ := strings.Cut(strings.TrimSpace(sum.Text), "\n")
	said = text.CutBytes(said, maxWhy)
	if got.Done = got.Why == ""; !got.Done && sum.Code != 0 {
		got.Why += "; the run says: " + said
	}
	for e, err := range o.Journal().Read(ctx, 0) {
		if err == nil && e.Kind == journal.BudgetSpent {
			spentText = said
		}
	}
	return got, spentText, nil
}

// ranAndFailed is what stands behind the output of a command that has run.
var ranAndFailed = lazyregexp.New(`\[(exit \d+|killed)[^\n]*\]`)

// wrongMoves counts the calls of a run whose result is an error. A command that ran and failed is an answer.
func wrongMoves(ctx context.Context, t *team.Team) (n int, err error) {
	members, err := t.Members().List(ctx)
	if err != nil {
		return 0, err
	}
	for _, m := range members {
		for said, err := range t.Members().Conversation(ctx, m.Name, 0) {
			if err != nil {
				return 0, err
			}
			if said.Kind == team.SaidResult && said.IsError && !ranAndFailed().MatchString(said.Text) {
				n++
			}
		}
	}
	return n, nil
}

// draw returns the report for people.
func (r drillReport) draw(s view.Screen) string {
	t := view.Table{Titles: []string{"GOAL", ">TURNS", ">WRONG MOVES", "AS IT SHOULD BE", ">TOKENS", ">COST", ">TIME"},
		Wide: -1}
	row := func(name string, turns, wrong int, as view.Cell, spent spend.Sum, seconds float64) {
		took := fmt.Sprintf("%.1f s", seconds)
		t.Row(name, turns, wrong, as, thousands(spent.Tokens()), cmp.Or(spent.Cost(), "-"), took)
	}
	turns, wrong, seconds := 0, 0, 0.0
	for _, g := range r.Goals {
		as := view.Cell{Text: "yes", Tone: view.Good}
		if !g.Done {
			as = view.Cell{Text: "no", Tone: view.Bad}
		}
		row(g.Goal, g.Turns, g.WrongMoves, as, g.Spent, g.Seconds)
		turns, wrong, seconds = turns+g.Turns, wrong+g.WrongMoves, seconds+g.Seconds
	}
	row("all", turns, wrong, view.Text(fmt.Sprintf("%d of %d", r.Done, r.Of)), r.Spent, seconds)
	var b strings.Builder
	b.WriteString(t.Draw(s) + "\n")
	for _, g := range r.Goals {
		if !g.Done {
			fmt.Fprintf(&b, "%s: %s\n", g.Goal, text.OneLine(g.Why))
		}
	}
	if r.Stopped != "" {
		fmt.Fprintf(&b, "%s: %d of %d goals were tried\n", text.OneLine(r.Stopped), len(r.Goals), r.Of)
	}
	if r.Kept != "" {
		fmt.Fprintf(&b, "kept: %s\n", text.OneLine(r.Kept))
	}
	fmt.Fprintf(&b, "to report it: open an issue with this table, the model (%s) and muster version\n",
		text.OneLine(r.Model))
	return b.String()
}

// err returns the exit status of a drill.
func (r drillReport) err() error {
	if r.Done < r.Of {
		return exitStatus(exitLeft)
	}
	return nil
}

// printDrill runs a drill and prints its report, also after an error if a model has answered.
func printDrill(ctx context.Context, a *App, model string, maxCost float64, keep bool) error {
	r, err := runDrill(ctx, a, model, maxCost, keep)
	switch {
	case err == nil:
	case r.Spent.Tokens() > 0:
		r.Stopped = muster.PlainText(err)
	default:
		if r.Kept != "" {
			explain(a.Stderr, "the repositories are in "+r.Kept, "")
		}
		return err
	}
	if err := a.print(r, r.draw); err != nil {
		return err
	}
	if err == nil {
		return r.err()
	}
	code := a.exit(ctx, err) // which says why
	if code == exitError && !a.json {
		code = exitLeft
	}
	return exitStatus(code)
}
