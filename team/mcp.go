package team

import (
	"context"
	"time"

	"muster/internal/mcp"
	"muster/internal/proc"
	"muster/llm"
)

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
