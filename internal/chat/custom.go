package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"muster"
	"muster/internal/commands"
	"muster/internal/editdist"
	"muster/internal/text"
)

// custom returns the commands of the repository and of the user. They are looked for each time, because people change
// them while they talk.
func (s *Session) custom() []commands.Command {
	if s.Custom == nil {
		return nil
	}
	return s.Custom()
}

// sayCustom says to the lead what a command of the repository or of the user stands for.
func (s *Session) sayCustom(ctx context.Context, name, args string) {
	all := s.custom()
	c, ok := commands.Named(all, name)
	if !ok {
		// A message that begins with a slash is more often a mistyped command than words for the lead.
		var names []string
		for _, c := range slices.Concat(builtin, s.Commands()) {
			names = append(names, "/"+c.Name)
		}
		for _, c := range all {
			names = append(names, "/"+c.Name)
		}
		s.Face.Print("there is no command /" + name + editdist.Suggest("/"+name, names) +
			" (/help lists them; a message may begin with a space before the slash)")
		return
	}
	said, notes, err := c.Expand(ctx, args)
	if err != nil {
		s.Face.Print("/" + c.Name + " cannot be used: " + text.Clean(muster.PlainText(err)))
		return
	}
	s.Face.Print(strings.Join(append([]string{"/" + c.Name + " is " + c.Place}, notes...), "\n"))
	s.say(ctx, s.withMentions(ctx, said, args))
}

// maxCustom is how many commands of the repository and of the user the help has.
const maxCustom = 50

// customText lists the commands of the repository and of the user.
func customText(all []commands.Command) string {
	var b strings.Builder
	for i, c := range all {
		if i == maxCustom {
			fmt.Fprintf(&b, "  and %d more: Tab completes them\n", len(all)-i)
			break
		}
		b.WriteString(helpLine(strings.TrimSpace(c.Name+" "+c.Hint), customDoes(c)))
	}
	return b.String()
}

// customDoes says what a command does, or why it cannot be called.
func customDoes(c commands.Command) string {
	if c.Problem != "" {
		return c.Place + " is not used: " + c.Problem
	}
	return c.Description
}
