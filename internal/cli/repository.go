package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/config"
	"muster/internal/proc"
	"muster/internal/sandbox"
	"muster/internal/text"
	"muster/internal/trust"
	"muster/internal/view"
	"muster/internal/workspace"
)

// newDoctorCommand returns muster doctor. It exits with 1 when anything is broken, also after a repair. A script can
// therefore use it as a test of the state, and run it a second time to see whether a repair has helped.
func newDoctorCommand(a *App) *cobra.Command {
	var repair, isDrill, keep, runCheck bool
	var model string
	var maxCost float64
	c := &cobra.Command{Use: "doctor", Args: namedArgs(),
		Short: "what works on this machine and in this repository, and what does not",
		Long: "In a repository it makes a lane, starts a command there as a member's would be, and removes it.\n" +
			"--check also runs the check, in a clean checkout of HEAD as a landing has it.\n\n" +
			"With --drill the model does six tiny goals, each in a repository made for it, as a run of yours\n" +
			"would. Fixed checks judge the results. Exits 0 when all six are as they should be, 3 otherwise."}
	c.Flags().BoolVar(&repair, "repair", false,
		"restore what can be restored, and say what was done; what is replaced is kept")
	c.Flags().BoolVar(&runCheck, "check", false, "run the set-up and the check once, as a landing would")
	c.Flags().StringVar(&model, "model", "", "make one small call to this `MODEL`, and say what works with it")
	c.Flags().BoolVar(&isDrill, "drill", false,
		"let the model do six tiny goals in repositories of their own, and say how it went")
	c.Flags().Float64Var(&maxCost, "max-cost", 1, "stop the drill when it has cost so many `DOLLARS`")
	c.Flags().BoolVar(&keep, "keep", false, "keep the repositories of the drill")
	c.RunE = func(c *cobra.Command, _ []string) (err error) {
		var found workspace.Findings
		switch isModel := c.Flags().Changed("model"); {
		case isDrill && repair:
			return &usageError{c.CommandPath(), "--drill and --repair exclude each other"}
		case !isDrill && (keep || c.Flags().Changed("max-cost")):
			return &usageError{c.CommandPath(), "--max-cost and --keep go with --drill"}
		case isDrill && !(maxCost >= 0.01):
			return &usageError{c.CommandPath(), "--max-cost is in dollars: at least 0.01"}
		case runCheck && (isDrill || isModel):
			return &usageError{c.CommandPath(), "--check goes with neither --model nor --drill"}
		case isDrill:
			return printDrill(c.Context(), a, model, maxCost, keep)
		case isModel && repair:
			return &usageError{c.CommandPath(), "--model and --repair exclude each other"}
		case isModel:
			found, err = examineModel(c.Context(), a, model)
		default:
			found = examine(c.Context(), a, repair, runCheck)
			err = context.Cause(c.Context())
		}
		if err != nil {
			return err
		}
		err = a.print(found, func(s view.Screen) string { return findingsText(s.Paint, found) })
		// The report is printed before the exit code is chosen.
		if err == nil && found.IsBroken() {
			return exitStatus(exitError)
		}
		return err
	}
	return c
}

// examine checks everything, and repairs before it checks the state. What is broken hides nothing that can be
// checked without it. Settings and guard are checked outside of a repository too, so that a new user can check the
// machine first.
func examine(ctx context.Context, a *App, repair, runCheck bool) workspace.Findings {
	// Without a repository there is no state to check, and the rest of the report still helps.
	repo, found := workspace.CheckRepository(ctx, a.workDir())
	root := ""
	if repo != nil {
		root = repo.Root()
		found = append(found, workspace.CheckDirectories(repo)...)
		// The repair goes first, so that the check says how the state is now.
		if repair {
			found = append(found, inState(ctx, a, root, "repair", (*workspace.Workspace).Repair)...)
		}
		found = append(found, inState(ctx, a, root, "team", (*workspace.Workspace).Check)...)
	}
	// The check of the team may have said it already.
	if err := trust.Open(a.env).CheckWritable(); err != nil &&
		!slices.ContainsFunc(found, func(f workspace.Finding) bool { return f.Text == muster.PlainText(err) }) {
		found.AddError("memory", err)
	}
	checkSettings(ctx, a, root, &found)
	checkGuard(ctx, a, &found)
	checkSandbox(ctx, a, root, &found)
	checkHidden(a, root, &found)
	checkLimits(&found)
	if root != "" {
		tryTeam(ctx, a, root, runCheck, &found)
	}
	return found
}

// inState runs a check on a workspace of its own: what a repair has read before it must not hide what it has
// changed. A workspace that cannot be opened is itself a finding in the given area.
func inState(
	ctx context.Context, a *App, root, area string,
	check func(*workspace.Workspace, context.Context) workspace.Findings,
) (found workspace.Findings) {
	w, err := workspace.OpenRoot(root, a.workspaceOptions(ctx))
	if err != nil {
		found.AddError(area, err)
		return found
	}
	defer w.Close()
	return check(w, ctx)
}

// checkSettings says whether the settings can be read, and which check and model they name. Outside of a repository
// a missing check is no finding, because nothing can land there. A model without a key is a note and not a failure:
// commands that only look need no model.
func checkSettings(ctx context.Context, a *App, root string, found *workspace.Findings) {
	settings, values, err := config.Load(a.configOptions(root))
	var untrusted []proposal
	var last muster.Run
	if root != "" {
		// Where the state cannot be used, what the user has trusted cannot be known.
		if w, errOpen := workspace.OpenRoot(root, a.workspaceOptions(ctx)); errOpen == nil {
			if settings, values, err = w.Settings(nil); err == nil {
				untrusted, _, err = proposals(ctx, a, w, nil, func(w config.Withheld) bool { return !w.IsOverridden })
			}
			last, _ = w.Runs().Look(ctx) // what is wrong with it, the check of the state says
			_ = w.Close()                // nothing was written
		}
	}
	if err != nil {
		found.AddError("settings", err)
		return
	}
	for _, line := range append(removedLines(values), withheldLines(untrusted, values)...) {
		found.Add("settings", workspace.Note, line, "")
	}
	// Where muster.yaml has a check that does not count, its line has said so.
	isUntrusted := slices.ContainsFunc(values, func(v config.Value) bool {
		return (v.Name == "check" || v.Name == "checks") && v.Withheld != nil && !v.Withheld.IsOverridden
	})
	if root != "" && settings.CheckText() == "" && last.Check != "" {
		found.Add("check", workspace.Healthy, "the last run's, which muster resume keeps: "+text.OneLine(last.Check),
			`for all runs: check: in muster.yaml`)
	} else if root != "" && settings.CheckText() == "" && !isUntrusted {
		found.Add("check", workspace.Note, "no check is set: what lands is not verified",
			`muster init finds one; or --check COMMAND, or check: in muster.yaml`)
	} else if root != "" && settings.CheckText() != "" {
		found.Add("check", workspace.Healthy, text.OneLine(settings.CheckText()), "")
	}
	// Only the environment is looked at; no request is sent to the provider.
	choice, _, err := settings.Endpoints.Choose(settings.Model, a.Env)
	switch {
	case err != nil:
		found.Add("model", workspace.Note, muster.PlainText(err), "")
	// A server of one's own may need no key, so none is missed.
	case choice.URL != "":
		found.Add("model", workspace.Healthy, text.OneLine(settings.Model), "")
	default:
		found.Add("model", workspace.Healthy, text.OneLine(settings.Model)+", and its key is set", "")
	}
}

// checkGuard says whether what a tool starts ends with it. The launcher is the one that tools are started with, so the
// check finds what would stop them.
func checkGuard(ctx context.Context, a *App, found *workspace.Findings) {
	launcher, err := proc.New(ctx)
	if err != nil {
		found.AddError("guard", err)
		return
	}
	defer launcher.Close() // nothing is left running
	// Only whether the program starts and ends counts; what it prints is not read.
	p, err := launcher.Start(ctx, proc.Spec{Argv: []string{"git", "version"}, Dir: filepath.Clean(a.Dir), Env: a.Env})
	if err == nil {
		_, err = p.Wait()
	}
	// Only a launcher with a guard process has this method.
	g, ok := launcher.(interface{ PID() int })
	switch {
	case err != nil:
		found.AddError("guard", err)
	case ok && g.PID() != 0:
		found.Add("guard", workspace.Healthy, "whatever a tool starts ends with it", "")
	default:
		found.Add("guard", workspace.Note,
			"what a tool leaves running in the background may go on after muster has ended: "+
				"this system cannot prevent it", "")
	}
}

// checkSandbox says whether commands of members are confined, and whether they could be.
func checkSandbox(ctx context.Context, a *App, root string, found *workspace.Findings) {
	settings, _, err := config.Load(a.configOptions(root))
	if err != nil { // the settings' own line says so
		return
	}
	method, err := sandbox.Find(ctx, a.Env, root)
	switch {
	case err == nil && settings.Sandbox.On && method.Lacks != "":
		found.Add("sandbox", workspace.Note, fmt.Sprintf("commands of members are confined by %s: they have %s, "+
			"because %s", method.Name, method.Lacks, method.Why), method.Remedy)
	case err == nil && settings.Sandbox.On:
		found.Add("sandbox", workspace.Healthy, "commands of members are confined by "+method.Name, "")
	case err == nil:
		found.Add("sandbox", workspace.Note, "commands of members run with your rights, because your settings say so; "+
			method.Name+" works here and could confine them", "")
	case settings.Sandbox.On:
		found.AddError("sandbox", err)
	default:
		found.Add("sandbox", workspace.Note, muster.PlainText(err), muster.HintOf(err))
	}
}

func checkLimits(found *workspace.Findings) {
	switch {
	case proc.HasControlGroups():
		found.Add("limits", workspace.Healthy, "control groups limit the processes and memory of commands", "")
	case runtime.GOOS == "linux":
		found.Add("limits", workspace.Note, "muster counts the processes and the memory of commands, because it can "+
			"make no control group for them",
			"below systemd:  systemd-run --user --scope -p Delegate=yes muster run ...")
	default:
		found.Add("limits", workspace.Note,
			"nothing limits the processes and the memory of commands on this system", "")
	}
}

// findingsText returns findings in columns, and what to do below each. The columns are padded by hand and not with
// view.Table, because a text may have several lines that are not to be cut.
func findingsText(p view.Paint, all workspace.Findings) string {
	width := 0
	for _, f := range all {
		width = max(width, len(f.Area))
	}
	// A note has no tone: it is neither good nor bad.
	tones := map[workspace.Health]view.Tone{
		workspace.Healthy: view.Good, workspace.Mended: view.Good, workspace.Broken: view.Bad}
	// The width of the columns before the text, so that its further lines begin below the first.
	newline, out := "\n"+strings.Repeat(" ", 6+2+width+2), ""
	for _, f := range all {
		lines := strings.TrimSpace(text.Clean(f.Text))
		if f.Fix != "" {
			lines += "\n" + text.Clean(f.Fix)
		}
		out += p.In(tones[f.Health], text.PadColumns(string(f.Health), 6)) + "  " +
			text.PadColumns(f.Area, width) + "  " + strings.ReplaceAll(lines, "\n", newline) + "\n"
	}
	return out
}
