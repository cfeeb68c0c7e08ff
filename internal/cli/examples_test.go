package cli

import (
	"maps"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"muster/internal/commands"
)

// Each command has two examples, and each of them is a command line that its command takes.
func TestExamples(t *testing.T) {
	unused := maps.Clone(examples)
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() && sub.Name() != "help" {
				check(sub)
			}
		}
		path := strings.TrimSpace(strings.TrimPrefix(c.CommandPath(), "muster"))
		delete(unused, path)
		for _, line := range examples[path] {
			words := commands.Split(line)
			for len(words) > 0 && strings.Contains(words[0], "=") {
				words = words[1:]
			}
			if len(words) == 0 || words[0] != "muster" {
				t.Errorf("%q: an example of %q is %q", path, path, line)
				continue
			}
			for i, word := range words {
				if word == ">" || word == "<" {
					words = words[:i]
					break
				}
			}
			found, rest, err := (&App{}).root().Find(words[1:])
			if err == nil {
				err = found.ParseFlags(rest)
			}
			if err == nil {
				err = found.ValidateArgs(found.Flags().Args())
			}
			if err != nil {
				t.Errorf("%q: %q: %v", path, line, err)
			}
		}
	}
	check((&App{}).root())
	for path := range unused {
		t.Errorf("there are examples of %q, which is no command", path)
	}
}
