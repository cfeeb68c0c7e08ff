package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"muster/internal/config"
	"muster/internal/text"
)

// modelCommand is /model: it shows which models are used and what they cost. Before a run has begun, or goes on, it
// also sets the team's. A run keeps its models while it lives, because prices, windows and budgets go by them.
func (c *conversation) modelCommand(ctx context.Context, name string, isStopped, hasBegun bool) string {
	switch {
	case name == "":
	case hasBegun:
		return "the models of a team that works stay as they are; with another one: /quit, then muster --model " +
			text.OneLine(name)
	default:
		before := c.flags
		// It counts as if it had been given on the command line, which is stronger than a stopped run's model.
		c.flags = map[string]string{"model": name}
		for flag, value := range before {
			if flag != "model" {
				c.flags[flag] = value
			}
		}
		j, err := c.prepare(ctx, isStopped, "-")
		if err != nil { // nobody could work with it
			c.flags = before
			return err.Error() + "\nthe model stays as it was"
		}
		c.settings = j.Settings
	}
	s, err := c.app.runSettings(ctx, c.opened, c.flags, isStopped || hasBegun)
	if err != nil {
		return err.Error()
	}
	rows := []string{c.modelRow("team", "", s)}
	members, _ := c.Members().List(ctx) // without them the team's model is what there is to say
	for _, m := range members {
		rows = append(rows, c.modelRow(string(m.Name), m.Model, s))
	}
	if !hasBegun {
		rows = append(rows, "another one: /model NAME; muster doctor --model NAME tries it")
	}
	return strings.Join(rows, "\n")
}

// modelRow says which model somebody has, and its price. Without a name it is the team's.
func (c *conversation) modelRow(who, name string, s config.Settings) string {
	name = cmp.Or(name, s.Model)
	shown, cost := config.Stored(name), "nothing is known of its price"
	if choice, _, err := s.Endpoints.Choose(name, c.app.Env); err == nil {
		shown = cmp.Or(shown, choice.Vendor()+"/"+choice.Name) // of the vendor whose key is set
		if choice.Provider == config.Script {
			cost = "costs nothing"
		}
	}
	if p, ok := knownModel(s, name, c.app.Env).PriceAt(0, c.app.Now()); ok {
		cost = fmt.Sprintf("$%.2f in, $%.2f out for a million tokens", p.Input, p.Output)
	}
	return fmt.Sprintf("%-8s  %s   %s", text.OneLine(who), text.OneLine(shown), cost)
}
