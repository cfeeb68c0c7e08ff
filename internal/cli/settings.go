package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"muster"
	"muster/internal/config"
	"muster/internal/paths"
	"muster/internal/redact"
	"muster/internal/text"
	"muster/internal/view"
)

// configOptions say where settings are read from. Outside a repository the user's own hold. The environment is that
// of the App, so that a test is independent of the settings of its user.
func (a *App) configOptions(root string) config.Options {
	return config.Options{Root: root, Environ: a.Env, UserDir: a.configHome(), Start: a.start()}
}

// start returns the directory in which the user is, relative to the worktree that has it; "" is the top. One of the
// team's own, such as that of the lanes, counts as the top.
func (a *App) start() string {
	dir, err := filepath.EvalSymlinks(a.workDir())
	if err != nil {
		return ""
	}
	for top := dir; ; top = filepath.Dir(top) {
		if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil {
			rel, err := filepath.Rel(top, dir)
			if rel = filepath.ToSlash(rel); err != nil || rel == "." || paths.IsBelow(rel, paths.Excluded) {
				return ""
			}
			return rel
		}
		if top == filepath.Dir(top) {
			return ""
		}
	}
}

// configHome returns the directory below which the user's settings are, "" for the usual one.
func (a *App) configHome() string { return cmp.Or(a.otherConfigHome, a.env("XDG_CONFIG_HOME")) }

// userDir returns the directory of the user's own settings, "" if there can be none.
func userDir(a *App) string {
	file := config.UserFile(a.configHome())
	if file == "" {
		return ""
	}
	return filepath.Dir(file)
}

// newConfigCommand returns muster config. It works outside of a repository too, where only the settings of the user
// hold.
func newConfigCommand(a *App) *cobra.Command {
	return a.paged(&cobra.Command{Use: "config", Args: namedArgs(),
		Short: "each setting, its value, and where it came from",
		Long: "Settings are flags over environment (MUSTER_...) over muster.yaml in the repository over your own\n" +
			"config.yaml. Names with a dot are levels in the files.",
		RunE: func(c *cobra.Command, _ []string) error {
			values, err := settingsHere(c.Context(), a)
			if err != nil {
				return err
			}
			return a.print(values, func(s view.Screen) string { return settingsTable(values, s.Width).Draw(s) })
		}}, "")
}

// settingsHere returns what holds for a command without flags of its own.
func settingsHere(ctx context.Context, a *App) (values []config.Value, err error) {
	o, err := a.open(ctx)
	switch {
	case err == nil:
		defer o.close()
		_, values, err = o.workspace.Settings(nil)
	case errors.Is(err, muster.ErrNotFound): // in no repository
		_, values, err = config.Load(a.configOptions(""))
	}
	return values, err // a repository that cannot be used is an error
}

// settingsTable returns settings as a table. Defaults are faint, so that what somebody has set stands out. A value
// that is not set is shown as a dash, because an empty cell would look like an error of the table. On a narrow terminal
// there is no room for what they are about.
func settingsTable(values []config.Value, width int) view.Table {
	t := view.Table{Titles: []string{"NAME", "VALUE", "SOURCE", "ABOUT"}, Wraps: []int{1, 2, 3}}
	for _, v := range values {
		// The source names the file, the variable or the flag, so that the user knows where to change the value.
		source := view.Cell{Text: text.OneLine(string(v.Source))}
		if v.Source == config.FromDefault {
			source.Tone = view.Faint
		}
		if v.Removed != "" {
			source.Tone = view.Bad
		}
		t.Row(v.Name, cmp.Or(text.OneLine(v.Value), "-"), source, v.Description)
		// What does not count has a row of its own below what does.
		if v.Withheld != nil {
			why := " (may only lower it)"
			if v.Withheld.NeedsTrust {
				why = " (not trusted)"
			}
			t.Row(v.Name, cmp.Or(text.OneLine(v.Withheld.Value), "-"),
				view.Cell{Text: config.File + why, Tone: view.Bad}, "does not count")
		}
	}
	if width > 0 && width < 100 {
		t.Titles, t.Wraps = t.Titles[:3], t.Wraps[:2]
		for i := range t.Rows {
			t.Rows[i] = t.Rows[i][:3]
		}
	}
	return t
}

// teamFlags are the flags that set settings, by the settings' own flag names. They are common to run, resume and
// the conversation, but those that only a new run has. Their defaults are shown in the help only: the value of a flag
// that is not given comes from the settings.
func teamFlags(f *pflag.FlagSet, isNew bool) {
	for _, s := range config.Table() {
		switch {
		case s.Usage == "" || s.IsFixed && !isNew:
		case s.Kind() == reflect.Int:
			n, _ := strconv.Atoi(s.Default) // a default is right
			f.Int(s.Flag(), n, s.Usage)
		case s.Kind() == reflect.Bool:
			f.Bool(s.Flag(), false, s.Usage)
		default:
			f.String(s.Flag(), "", s.Usage)
			f.Lookup(s.Flag()).NoOptDefVal = s.Implied
		}
	}
	f.Bool("no-sandbox", false, "let commands and checks run with your rights")
}

// setFlags returns the settings among the flags that were given. A flag that was not given must not hide the same
// setting in the environment or in a file.
func setFlags(f *pflag.FlagSet) map[string]string {
	// The values are strings here. config.Load reads them as it reads those of the environment, with the same errors.
	set := map[string]string{}
	// Flags that are no settings, such as --add, are left out: config.Load refuses them.
	for _, s := range config.Table() {
		if f.Changed(s.Flag()) {
			set[s.Flag()] = f.Lookup(s.Flag()).Value.String()
		}
	}
	// The flag that people look for where a run does not begin has a name of its own.
	if f.Changed("no-sandbox") {
		set["sandbox"] = "false"
	}
	return set
}

// runSettings returns the settings of a run: of a new one, or of the last one when the job goes on with it.
func (a *App) runSettings(
	ctx context.Context, o opened, flags map[string]string, goesOn bool,
) (config.Settings, error) {
	s, values, err := o.workspace.Settings(flags)
	if err == nil && !goesOn {
		err = checkTrusted(values)
	}
	// A name ends in branches and commits, where nothing is hidden.
	if err == nil && a.secrets.Contains(s.Land+" "+s.Team) {
		err = muster.Errorf(muster.Invalid, "the name of the branch or of the team has a secret in it").
			WithHint("choose another: --land BRANCH, --team NAME")
	}
	if err != nil || !goesOn {
		return s, err
	}
	run, err := o.LastRun(ctx)
	if err != nil || run.StartedAt == 0 { // where there was no run, package team says so
		return s, err
	}
	return s, applyRunSettings(run, flags, &s, a.secrets)
}

// applyRunSettings makes the settings those of the run that goes on, except for what the command line gives: a run
// keeps the model that it was started with, not whichever key is set today. The name and the branch cannot be
// changed at all, because the work that has landed is on that branch.
func applyRunSettings(
	run muster.Run, flags map[string]string, s *config.Settings, secrets *redact.Secrets,
) error {
	const keeps = "the team that stopped keeps its %s, %s: leave --%s out, " +
		"or put the team aside first with muster archive --yes"
	// A name or a branch that is the same as before is accepted, so that a command can be repeated as it was typed.
	for _, x := range []struct{ flag, what, kept string }{
		{"team", "name", string(run.Team)}, {"land", "branch", run.Target},
	} {
		value, isSet := flags[x.flag]
		if isSet && value != x.kept && !(x.flag == "land" && value == run.Into) {
			return &usageError{"muster run", fmt.Sprintf(keeps, x.what, x.kept, x.flag)}
		}
	}
	// A flag that was given is stronger than the run, which is stronger than the settings of today. What the run's
	// record has without its secrets is taken from the settings of today, if they say the same.
	keep := func(flag string, setting *string, kept, today string) error {
		if _, isSet := flags[flag]; isSet || today == kept {
			return nil
		}
		*setting = kept
		if strings.Contains(kept, redact.Mark) {
			return muster.Errorf(muster.Invalid,
				"the %s of the team that stopped has a secret in it, which is not stored", flag).
				WithHint("name it again: --%s", flag)
		}
		return nil
	}
	s.Team, s.Directory = cmp.Or(string(run.Team), s.Team), run.Directory
	if err := cmp.Or(
		keep("model", &s.Model, cmp.Or(run.Model, s.Model), config.Stored(s.Model)),
		keepChecks(run, flags, s, secrets, keep),
		keep("setup", &s.Setup, run.Setup, secrets.String(s.Setup)),
		keep("review", &s.Review, run.Review, s.Review),
	); err != nil {
		return err
	}
	if _, isSet := flags["budget"]; !isSet {
		s.Budgets.Team = cmp.Or(run.Budget, s.Budgets.Team)
	}
	if _, isSet := flags["teammates"]; !isSet {
		s.Teammates = run.Cap
	}
	return nil
}

// A run has one check or several, and so have the settings of today: whichever of the two the run has not, the settings
// lose, or they would say something else than the run's record.

// keepChecks makes the check, or the checks, those of the run that goes on.
func keepChecks(
	run muster.Run, flags map[string]string, s *config.Settings, secrets *redact.Secrets,
	keep func(flag string, setting *string, kept, today string) error,
) error {
	if _, isSet := flags["check"]; isSet {
		return nil // the settings of today have that, and no checks
	}
	if len(run.Checks) == 0 {
		s.Checks = nil
		return keep("check", &s.Check, run.Check, secrets.String(s.Check))
	}
	text := s.Checks.String()
	if err := keep("check", &text, config.Checks(run.Checks).String(), secrets.String(text)); err != nil {
		return err
	}
	checks, err := config.ParseChecks(text)
	s.Check, s.Checks = "", checks
	return err
}
