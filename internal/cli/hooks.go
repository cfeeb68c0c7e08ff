package cli

import (
	"cmp"
	"strings"

	"github.com/spf13/cobra"

	"muster/internal/text"
	"muster/internal/view"
)

// hookFields are a hook as --json prints it.
type hookFields struct {
	Event   string            `json:"event"`
	Matcher string            `json:"matcher"`
	Command string            `json:"command"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	Cwd     string            `json:"cwd,omitempty"`
	Async   bool              `json:"async,omitempty"`
	If      string            `json:"if,omitempty"`
	Timeout float64           `json:"timeout_seconds"`
	File    string            `json:"file"`
	Problem string            `json:"problem,omitempty"`
	Notes   []string          `json:"notes,omitempty"`
}

// newHooksCommand returns muster hooks. It runs none of them.
func newHooksCommand(a *App) *cobra.Command {
	return &cobra.Command{Use: "hooks", Short: "the commands that run at moments of the team's work", Args: namedArgs(),
		Long: "Hooks stand in muster.yaml and in your own config.yaml, below hooks, and in .claude/settings.json.\n" +
			"Those of the repository run only when you trust them: muster trust.",
		RunE: func(c *cobra.Command, _ []string) error {
			o, err := a.open(c.Context())
			if err != nil {
				return err
			}
			defer o.close()
			all, err := o.workspace.Trust().Hooks(a.env("HOME"))
			if err != nil {
				return err
			}
			list := []hookFields{}
			t := view.Table{Wide: 3, Titles: []string{"EVENT", "FOR", "FILE", "COMMAND", "RUNS"}}
			for _, h := range all {
				list = append(list, hookFields{Event: string(h.Event), Matcher: h.Matcher, Command: h.Command,
					Args: h.Args, Env: h.Env, Cwd: h.Cwd, Async: h.Async, If: h.If, Timeout: h.Timeout.Seconds(),
					File: h.File, Problem: h.Problem, Notes: h.Notes()})
				runs := "yes"
				if h.Async {
					runs = "yes, async"
				}
				if h.Problem != "" {
					runs = "no: " + text.OneLine(h.Problem)
				} else if notes := h.Notes(); len(notes) > 0 {
					runs = "yes, but " + text.OneLine(strings.Join(notes, ", and "))
				}
				t.Row(cmp.Or(text.OneLine(string(h.Event)), "-"), cmp.Or(text.OneLine(h.Matcher), "*"),
					text.OneLine(h.File), cmp.Or(h.Gist(), "-"), runs)
			}
			return a.print(list, func(s view.Screen) string {
				if len(all) == 0 {
					return "No hooks here. They stand in muster.yaml, below hooks, or in .claude/settings.json.\n"
				}
				return t.Draw(s)
			})
		}}
}
