package team

import (
	"context"

	"muster"
	"muster/internal/mcp"
)

// MCPPrompt is a text that an MCP server has for the user to begin with.
type MCPPrompt = mcp.Prompt

// Prompts returns the prompts that the MCP servers of a team's run in this process have; without such a run there are
// none.
func Prompts(t *Team) []MCPPrompt {
	if p := t.mcp.Load(); p != nil {
		return p.Prompts()
	}
	return nil
}

// Prompt asks an MCP server of a team's run in this process for the text of a prompt. Errors: NotFound for a prompt
// that Prompts does not list, and Invalid, with the server's reason, where the server refuses.
func Prompt(
	ctx context.Context, t *Team, server, name string, arguments map[string]string,
) (string, error) {
	p := t.mcp.Load()
	if p == nil {
		return "", muster.Errorf(muster.NotFound, "no run with MCP servers is going on in this process")
	}
	return p.Prompt(ctx, server, name, arguments)
}
