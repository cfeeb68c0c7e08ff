package cli

import (
	"cmp"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/config"
	"muster/internal/view"
)

// newContextCommand returns muster context. It reads records only, so it shows a team that has stopped as well.
func newContextCommand(a *App) *cobra.Command {
	return &cobra.Command{Use: "context [NAME]", Short: "what fills the context window of a member's model",
		Args: namedArgs("[NAME]"),
		Long: "The parts of the next request with their tokens, from how many on the conversation is made shorter,\n" +
			"and what was left out when that happened last. Without NAME it shows the lead.",
		RunE: a.looking(nil, func(c *cobra.Command, o opened, args []string) error {
			name := muster.Lead
			if len(args) > 0 {
				name = muster.Name(args[0])
			}
			settings, _, err := o.workspace.Settings(nil)
			if err != nil {
				return err
			}
			w, err := o.Members().Window(c.Context(), name, func(model string) (window, reply int) {
				return knownWindow(settings, model, a.Env)
			})
			if errors.Is(err, muster.ErrNotFound) {
				return withNames(c, o, err)
			}
			if err != nil {
				return err
			}
			return a.print(w, func(s view.Screen) string { return w.Draw(s, a.Now()) })
		})}
}

// knownWindow says how many tokens a model takes, and how long its replies may be; 0 is unknown.
func knownWindow(s config.Settings, model string, environ []string) (window, reply int) {
	known := knownModel(s, model, environ)
	return known.Window, cmp.Or(s.Limits.MaxTokens, known.ReplyLimit())
}

func withNames(c *cobra.Command, o opened, err error) error {
	e, isOurs := errors.AsType[*muster.Error](err)
	members, errList := o.Members().List(c.Context())
	if !isOurs || errList != nil || len(members) == 0 {
		return err
	}
	var names []string
	for _, m := range members {
		names = append(names, string(m.Name))
	}
	return e.WithHint("the members: %s", strings.Join(names, ", "))
}
