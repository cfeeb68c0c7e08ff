package cli

import (
	"context"
	"strings"
	"time"

	"muster"
	"muster/internal/commands"
	"muster/team"
)

// promptPatience is how long the user waits for the text of a prompt.
const promptPatience = 30 * time.Second

// promptCommands returns the prompts of the MCP servers of a team's run as commands of the conversation. There are none
// before a run has begun: then t is nil.
func promptCommands(t *team.Team) (all []commands.Command) {
	if t == nil {
		return nil
	}
	for _, p := range team.Prompts(t) {
		var hints []string
		for _, a := range p.Arguments {
			if a.Required {
				hints = append(hints, a.Name)
			} else {
				hints = append(hints, "["+a.Name+"]")
			}
		}
		all = append(all, commands.New("mcp__"+p.Server+"__"+p.Name, strings.Join(hints, " "), p.Description,
			"a prompt of the MCP server "+p.Server, func(ctx context.Context, args string) (string, error) {
				given, err := promptArguments(p, args)
				if err != nil {
					return "", err
				}
				ctx, cancel := context.WithTimeout(ctx, promptPatience)
				defer cancel()
				return team.Prompt(ctx, t, p.Server, p.Name, given)
			}))
	}
	return all
}

// promptArguments returns what the user has typed by the names of a prompt's arguments. The last one has all that is
// left.
func promptArguments(p team.MCPPrompt, args string) (map[string]string, error) {
	words, given := commands.Split(args), map[string]string{}
	for i, a := range p.Arguments {
		switch {
		case i == len(p.Arguments)-1 && i < len(words):
			given[a.Name] = strings.Join(words[i:], " ")
		case i < len(words):
			given[a.Name] = words[i]
		case a.Required:
			return nil, muster.Errorf(muster.Invalid, "it needs the argument %s", a.Name)
		}
	}
	return given, nil
}
