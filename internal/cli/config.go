package cli

import (
	"cmp"
	"errors"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/config"
	"muster/internal/view"
)

// configOptions say where settings are read from. Outside a repository the user's own hold. The environment is that
// of the App, so that a test is independent of the settings of its user.
func (a *App) configOptions(root string, flags map[string]string) config.Options {
	return config.Options{Root: root, Environ: a.Env, Flags: flags, UserDir: a.env("XDG_CONFIG_HOME")}
}

// newConfigCommand returns muster config. It works outside of a repository too, where only the settings of the user
// hold.
func newConfigCommand(a *App) *cobra.Command {
	return &cobra.Command{Use: "config", Short: "each setting, its value, and where it came from", Args: namedArgs(),
		Long: "Settings are flags over environment (MUSTER_...) over muster.yaml in the repository over your own\n" +
			"config.yaml. Names with a dot are levels in the files.",
		RunE: func(c *cobra.Command, _ []string) error {
			// No flags: the table shows what holds for a command without flags of its own.
			root := ""
			o, err := a.open(c.Context())
			switch {
			case err == nil:
				root = o.Root()
				o.close() // only the root is needed
			case !errors.Is(err, muster.ErrNotFound): // a repository that cannot be used; outside of any is fine
				return err
			}
			_, values, err := config.Load(a.configOptions(root, nil))
			if err != nil {
				return err
			}
			return a.print(values, settingsTable(values).Draw)
		}}
}

// settingsTable returns settings as a table. Defaults are faint, so that what somebody has set stands out. A value
// that is not set is shown as a dash, because an empty cell would look like an error of the table.
func settingsTable(values []config.Value) view.Table {
	t := view.Table{Titles: []string{"NAME", "VALUE", "SOURCE", "ABOUT"}, Wide: 3}
	for _, v := range values {
		// The source names the file, the variable or the flag, so that the user knows where to change the value.
		source := view.Cell{Text: view.OneLine(string(v.Source))}
		if v.Source == config.FromDefault {
			source.Tone = view.Faint
		}
		t.Row(v.Name, cmp.Or(view.OneLine(v.Value), "-"), source, v.Description)
	}
	return t
}
