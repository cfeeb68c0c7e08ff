package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/config"
	"muster/internal/shellcommands"
	"muster/internal/text"
	"muster/internal/workspace"
	"muster/team"
)

// commandPatience is how long doctor may take to make a lane and to start a command there. A checkout of a very large
// repository takes longer, and doctor is no command for which people wait.
const commandPatience = 30 * time.Second

// errImpatient is the cause of a trial that took longer than commandPatience.
var errImpatient = errors.New("it took too long")

// tryTeam starts a command as a member would, in a lane, and runs the check as a landing would if the user wants that.
// Where the settings or the sandbox are broken, their findings have said so.
func tryTeam(ctx context.Context, a *App, root string, runCheck bool, found *workspace.Findings) {
	isBroken := func(areas ...string) bool {
		return slices.ContainsFunc(*found, func(f workspace.Finding) bool {
			return f.Health == workspace.Broken && slices.Contains(areas, f.Area)
		})
	}
	if isBroken("settings", "sandbox", "guard") {
		return
	}
	w, err := workspace.OpenRoot(root, a.workspaceOptions(ctx))
	if err != nil { // said already
		return
	}
	defer w.Close()
	workspace.RemoveTrials(ctx, w)
	settings, _, err := w.Settings(nil)
	if err != nil {
		return
	}
	if last, _ := w.Runs().Look(ctx); settings.CheckText() == "" { // what is wrong with it, its own finding says
		settings.Check, settings.Checks, settings.Setup = last.Check, last.Checks, cmp.Or(settings.Setup, last.Setup)
	}
	for _, line := range a.unusableDirs() {
		found.Add("directories", workspace.Note, line, "")
	}
	t, err := team.OpenIn(w, team.Config{ //nolint:contextcheck // OpenIn starts nothing.
		Settings: settings.Run, Secrets: secretValues(a), Environ: a.Env, Home: a.env("HOME"), UserDir: userDir(a),
		CacheDir: cacheDir(a), Log: a.logger(), Sandbox: team.Sandbox(settings.Sandbox),
		Resources: resources(settings)})
	if err != nil {
		found.AddError("commands", err)
		return
	}
	defer t.Close()
	setup := team.SetupOf(t)
	if isBroken("locks", "writing") {
		found.Add("commands", workspace.Note, "none was tried: nothing can be written where a lane would be made", "")
	} else {
		tryCommand(ctx, setup, settings, runCheck, found)
	}
	if runCheck && settings.CheckText() != "" && ctx.Err() == nil {
		tryCheck(ctx, setup, found)
	}
}

// tryCommand says how a command starts in a lane, and which programs of the check are found.
func tryCommand(
	ctx context.Context, setup team.Setup, s config.Settings, runCheck bool, found *workspace.Findings,
) {
	limited, cancel := context.WithTimeoutCause(ctx, commandPatience, errImpatient)
	defer cancel()
	programs, areAll := checkPrograms(s.Run)
	trial, err := setup.TryCommand(limited, programs)
	rights := "with your rights"
	if trial.By != "" {
		rights = "confined by " + trial.By
	}
	as := ""
	if trial.User != "" {
		as = "as " + trial.User + ", "
	}
	said := fmt.Sprintf("one was started in a lane, %s%s", as, rights)
	switch {
	case errors.Is(context.Cause(limited), errImpatient):
		found.Add("commands", workspace.Note, fmt.Sprintf("none was tried: a lane was not ready within %v",
			commandPatience), "")
		return
	case errors.Is(err, muster.ErrUnavailable) && trial.Seconds > 0:
		found.Add("commands", workspace.Broken, muster.PlainText(err), "")
		return
	case err != nil:
		found.AddError("commands", err)
		return
	case trial.Tree != "":
		found.Add("commands", workspace.Broken, said+", and cannot write there: "+trial.Tree, "")
	case trial.Git != "":
		found.Add("commands", workspace.Broken, said+", and git does not work there: "+trial.Git, "")
	default:
		found.Add("commands", workspace.Healthy, fmt.Sprintf("%s, in %.2f s; git works there", said, trial.Seconds), "")
	}
	const fix = "muster doctor --check runs it once, as a landing would"
	switch {
	case runCheck || s.CheckText() == "":
	case len(trial.Missing) == 0:
		found.Add("check", workspace.Note, "it was not run", fix)
	case areAll && s.Setup == "":
		found.Add("check", workspace.Broken, "a command in a lane does not find "+text.List(trial.Missing, 5),
			cmp.Or(trial.Hint, fix))
	default: // a set-up may install it, and a script may go on without it
		found.Add("check", workspace.Note, "it was not run, and a command in a lane does not find "+
			text.List(trial.Missing, 5), cmp.Or(trial.Hint, fix))
	}
}

// checkPrograms returns the names of the programs that the checks start. areAll says that each of them must be there:
// the check is one command, or several that are started one after the other.
func checkPrograms(s team.Settings) (names []string, areAll bool) {
	scripts := []string{s.Check}
	if len(s.Checks) > 0 {
		scripts = nil
		for _, c := range s.Checks {
			scripts = append(scripts, c.Command)
		}
	}
	areAll = true
	for _, script := range scripts {
		parsed := shellcommands.Parse(script)
		areAll = areAll && parsed.Unknown == "" && !strings.ContainsAny(script, "|;(")
		for _, c := range parsed.Commands {
			if c.Possible || len(c.Words) == 0 || !c.Words[0].IsKnown() {
				continue
			}
			name := c.Words[0].Text
			// A path means what it means where the script has gone to.
			if name != "" && !strings.ContainsAny(name, "/ \n") && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names, areAll
}

// tryCheck runs the set-up and the check, and says how they end.
func tryCheck(ctx context.Context, setup team.Setup, found *workspace.Findings) {
	trial, err := setup.Try(ctx)
	said := fmt.Sprintf("at %.7s after %.1f s", trial.Commit, trial.Seconds)
	switch {
	case err != nil:
		found.AddError("check", err)
	case trial.Green && len(trial.RanNone) > 0:
		found.Add("check", workspace.Note, "green "+said+", and no test was run: "+
			text.OneLine(strings.Join(trial.RanNone, "; ")), "name one that does")
	case trial.Green:
		found.Add("check", workspace.Healthy, "green "+said, "")
	case trial.CannotRun:
		found.Add("check", workspace.Broken,
			fmt.Sprintf("cannot run %s: %s: %s", said, trial.How, text.OneLine(trial.Failed)), "")
	default:
		found.Add("check", workspace.Note, fmt.Sprintf("red %s: %s: %s", said, trial.How, text.OneLine(trial.Failed)),
			"landings with a red check are accepted until one turns it green")
	}
	for _, line := range trial.Advisory {
		found.Add("check", workspace.Note, "advisory, and red: "+text.OneLine(line), "")
	}
}
