package team

import (
	"context"
	"time"

	"muster"
	"muster/internal/mcp"
	"muster/internal/proc"
	"muster/llm"
)

// MCPServer is the definition of a server of the Model Context Protocol, whose tools the members have.
type MCPServer = mcp.Server

// MCPPrompt is a text that an MCP server has for the user to begin with.
type MCPPrompt = mcp.Prompt

// mcpPatience is how long the beginning of a run waits for servers of which nothing is remembered.
const mcpPatience = 10 * time.Second

func withMCP(ctx context.Context, p *runHost, launcher proc.Launcher, work func() error) error {
	servers := p.config.mcpServers()
	if len(servers) == 0 {
		return work()
	}
	// Not the launcher of members' commands: what goes through that is changed on its way, to hide secrets.
	p.mcp = mcp.New(ctx, mcp.Options{Launcher: launcher, Env: p.Environ, Dir: p.repository.Root(),
		Cache: p.config.MCPCache, Secrets: p.Secrets, Log: p.Log,
		Tell: func(line string) { p.note(ctx, "", line) }}, servers)
	defer p.mcp.Close()
	p.mcp.Prepare(ctx, mcpPatience, p.isNew)
	p.team.mcp.Store(p.mcp)
	defer p.team.mcp.Store(nil)
	return work()
}

func (c *Config) mcpServers() []MCPServer {
	if c.MCPServers == nil {
		return nil
	}
	return c.MCPServers()
}

// serverTools returns what offers the tools of MCP servers to a member; p may be nil.
func serverTools(p *mcp.Pool, noImages bool) func(allows func(tool string, writes bool) bool) []llm.Tool {
	if p == nil {
		return nil
	}
	return func(allows func(tool string, writes bool) bool) []llm.Tool {
		return foreignTools(p.Tools(noImages, allows))
	}
}

// rememberedMCP returns a pool that starts nothing, for the tools that are remembered; nil: there are no servers.
func (c *Config) rememberedMCP(ctx context.Context, root string) *mcp.Pool {
	servers := c.mcpServers()
	if len(servers) == 0 {
		return nil
	}
	p := mcp.New(ctx, mcp.Options{Dir: root, Cache: c.MCPCache}, servers)
	p.Prepare(ctx, 0, false)
	return p
}

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
