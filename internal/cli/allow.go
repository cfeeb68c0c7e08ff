package cli

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/text"
	"muster/internal/trust"
	"muster/internal/view"
)

// grantKinds are the kinds of what can be allowed. Each is a subcommand.
var grantKinds = []struct {
	kind, names, about string
	// pattern is what a name has to look like, and hint says where the user finds one.
	pattern, hint string
}{
	{trust.Secret, "FINGERPRINT...", "what looks like a key and is none",
		`^[0-9a-f]{16}$`, "the landing that was held back says it: muster log"},
}

// newAllowCommand returns muster allow, with which the user lets through what muster holds back in this repository.
// What is allowed lies in the user's state, where no clone and no commit brings anything.
func newAllowCommand(a *App) *cobra.Command {
	var forget bool
	c := &cobra.Command{Use: "allow", Short: "let through what muster holds back in this repository, or list it",
		Args: namedArgs(),
		Long: "Without a kind it lists what you have allowed here. Only you can allow anything: no file of the\n" +
			"repository counts, and the command is refused to agents."}
	c.RunE = func(c *cobra.Command, _ []string) error {
		if forget {
			return &usageError{c.CommandPath(), "--forget wants a kind, and what to take back"}
		}
		return listGrants(c, a)
	}
	// Each command has the flag, so that it may stand before the kind and behind it, and is in the help of both.
	addForget := func(c *cobra.Command) { c.Flags().BoolVar(&forget, "forget", false, "take it back") }
	addForget(c)
	for _, k := range grantKinds {
		name := regexp.MustCompile(k.pattern)
		sub := &cobra.Command{Use: k.kind + " " + k.names, Short: k.about, Args: namedArgs(k.names),
			RunE: func(c *cobra.Command, names []string) error {
				// All names are looked at before one is allowed: a typing error changes nothing.
				for _, n := range names {
					if !name.MatchString(n) {
						return muster.Errorf(muster.Invalid, "%q does not name a %s", text.OneLine(n), k.kind).
							WithHint("%s", k.hint)
					}
				}
				return changeGrants(c, a, k.kind, names, forget)
			}}
		addForget(sub)
		c.AddCommand(sub)
	}
	return c
}

func listGrants(c *cobra.Command, a *App) error {
	o, err := a.open(c.Context())
	if err != nil {
		return err
	}
	defer o.close()
	said, err := o.workspace.Trust().Get()
	if err != nil {
		return err
	}
	if len(said.Allowed) == 0 {
		return a.printLine([]trust.Grant{}, nil, "nothing is allowed in this repository")
	}
	t := view.Table{Titles: []string{"KIND", "NAME", "SINCE"}, Wide: 1}
	for _, g := range said.Allowed {
		t.Row(text.OneLine(g.Kind), text.OneLine(g.Name), view.Duration(a.Now().Sub(muster.Time(g.At))))
	}
	return a.print(said.Allowed, t.Draw)
}

func changeGrants(c *cobra.Command, a *App, kind string, names []string, forget bool) error {
	o, err := a.open(c.Context())
	if err != nil {
		return err
	}
	defer o.close()
	var missing []string
	// All of them are changed in one step, or none.
	err = o.workspace.Trust().Change(c.Context(), func(s *trust.Settings) {
		for _, n := range names {
			if !forget {
				s.Allow(trust.Grant{Kind: kind, Name: n, At: muster.UnixTime(a.Now())})
			} else if !s.Forget(kind, n) {
				missing = append(missing, n)
			}
		}
	})
	if err == nil && len(missing) > 0 {
		err = muster.Errorf(muster.NotFound, "%s was not allowed here", strings.Join(missing, ", ")).
			WithHint("muster allow lists what is")
	}
	if forget {
		return a.printLine(names, err, "%s %s is held back again", kind, strings.Join(names, ", "))
	}
	return a.printLine(names, err, "%s %s is allowed in this repository; a task that was given up for it: "+
		"muster task retry ID", kind, strings.Join(names, ", "))
}
