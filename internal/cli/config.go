package cli

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/config"
	"muster/internal/git"
	"muster/internal/view"
)

// settings are the settings as they hold at a repository's root ("" is none), under the given flags.
func (a *App) settings(root string, flags map[string]string) (config.Settings, error) {
	s, _, err := config.Load(a.configOptions(root, flags))
	return s, err
}

func (a *App) configOptions(root string, flags map[string]string) config.Options {
	return config.Options{Root: root, Environ: a.Env, Flags: flags, UserDir: a.env("XDG_CONFIG_HOME")}
}

func (a *App) configCommand() *cobra.Command {
	return &cobra.Command{Use: "config", Short: "each setting, its value, and where it came from", Args: exactly(),
		Long: "Settings are flags over environment (MUSTER_...) over muster.yaml in the repository over your own\n" +
			"config.yaml. Names with a dot are levels in the files.",
		RunE: func(c *cobra.Command, _ []string) error {
			root := ""
			switch p, err := a.open(c.Context()); {
			case err == nil:
				root = string(p.home)
				p.close()
			case !errors.Is(err, muster.ErrNotFound): // outside a repository the user's own hold
				return err
			}
			_, values, err := config.Load(a.configOptions(root, nil))
			if err != nil {
				return err
			}
			return a.print(values, func(w io.Writer, p view.Paint, width int) error {
				t := view.Table{Titles: []string{"NAME", "VALUE", "SOURCE", "ABOUT"}, Wide: 3}
				for _, v := range values {
					value := view.OneLine(v.Value)
					if value == "" {
						value = "-"
					}
					from := view.Cell{Text: view.OneLine(string(v.Source))}
					if v.Source == config.FromDefault {
						from.Tone = view.Faint
					}
					t.Row(view.Text(v.Name), view.Text(value), from, view.Text(v.Description))
				}
				return t.Write(w, p, width)
			})
		}}
}

// settings says whether the settings can be read, and which model they name.
func (d *doctor) settings(repo *git.Repo) {
	root := ""
	if repo != nil {
		root = repo.Root()
	}
	set, err := d.app.settings(root, nil)
	if err != nil {
		d.err("settings", err)
		return
	}
	if repo != nil && set.Check == "" {
		d.say("check", "note", "no check is set: what lands is not verified", `muster run --check "go test ./...", or check: in muster.yaml`)
	} else if repo != nil {
		d.say("check", "ok", view.OneLine(set.Check), "")
	}
	choice, err := config.Choose(set.Model, d.app.Env)
	switch {
	case err != nil:
		d.say("model", "note", err.Error(), "")
	case choice.URL != "":
		d.say("model", "ok", view.OneLine(set.Model), "")
	default:
		d.say("model", "ok", view.OneLine(set.Model)+", and its key is set", "")
	}
}
