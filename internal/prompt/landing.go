package prompt

import (
	"fmt"

	"muster"
	"muster/internal/text"
)

// Reviewer returns the system prompt of the agent that reviews work before it lands. instructions are what the file of
// its role says, as roles.Role.Render returned it.
func Reviewer(role string, team muster.Name, instructions string) []string {
	return []string{read("review.md"), fmt.Sprintf("Your role is %s. The team is %s.", text.EscapeTags(role), team) +
		optional("\nThe instructions of your role, beside the rules above:\n%s", instructions)}
}

// Material returns text of others between marks that it cannot close.
func Material(of, words string) string {
	return fmt.Sprintf("<material of=%q>\n%s\n</material>", of, text.EscapeTags(words))
}
