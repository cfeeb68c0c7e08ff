package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"muster/internal/editdist"
	"muster/internal/text"
)

func flagError(c *cobra.Command, err error) error {
	return &usageError{c.CommandPath(), flagProblem(c, err)}
}

// flagProblem says what is wrong with a flag, in words for people: the library's own texts quote errors of Go. A flag
// that does not exist is compared with those of the command.
func flagProblem(c *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	switch {
	case errors.As(err, &unknown):
		// Letters behind a single dash are one flag each, but -model is a slip for --model.
		typed := unknown.GetSpecifiedName()
		if letters := unknown.GetSpecifiedShortnames(); len(letters) > 1 {
			typed = letters
		}
		var all []string
		note := func(f *pflag.Flag) { all = append(all, "--"+f.Name) }
		c.Flags().VisitAll(note)
		c.InheritedFlags().VisitAll(note)
		return err.Error() + editdist.Suggest("--"+strings.ToLower(typed), all)
	// The library adds what strconv says of the value. Which kind of value is meant helps more.
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		kinds := map[string]string{"int": "a whole number", "bool": "true or false",
			"duration": "a duration with its unit, such as 90s or 2m", "float64": "a number"}
		if kind := kinds[f.Value.Type()]; kind != "" {
			return fmt.Sprintf("--%s is %s, not %q", f.Name, kind, invalid.GetValue())
		}
	// The help names the value of each flag, and so does this, as it does for arguments that are missing.
	case errors.As(err, &missing):
		name, _ := pflag.UnquoteUsage(missing.GetFlag())
		return "--" + missing.GetFlag().Name + " wants " + strings.ToUpper(name)
	}
	return err.Error()
}

// firstWords returns the check of the arguments of the bare muster. On a terminal several words, none of them a
// command, are the first message of the conversation.
func firstWords(a *App) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		err := knownCommand(c, args)
		if err == nil || a.terminalIn() == nil || goalHint(c, args) == "" || len(c.SuggestionsFor(args[0])) > 0 {
			return err
		}
		return nil
	}
}

// goalHint is a line that says how the arguments become the goal of a run, where they are more likely one than a
// mistyped command: several words, behind none of which a command is. It is "" otherwise.
func goalHint(c *cobra.Command, args []string) string {
	// One word alone is more often a command that does not exist than something to do.
	goal := strings.Join(args, " ")
	if c.HasParent() || !strings.Contains(strings.TrimSpace(goal), " ") {
		return ""
	}
	return "\nas a goal: muster run " + text.ShellQuote(text.OneLine(goal))
}
