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

// withMCP calls work while the MCP servers of the team can be asked.
func (h *host) withMCP(ctx context.Context, launcher proc.Launcher, work func() error) error {
	at := h.site
	servers := at.config.mcpServers()
	if len(servers) == 0 {
		return work()
	}
	// Not the launcher of members' commands: what goes through that is changed on its way, to hide secrets.
	pool := mcp.New(ctx, mcp.Options{Launcher: launcher, Env: at.environ, Dir: at.repository.Root(),
		Cache: at.config.MCPCache, Secrets: at.secrets, Log: at.log,
		Tell: func(line string) { at.note(ctx, "", line) }}, servers)
	defer pool.Close()
	pool.Prepare(ctx, mcpPatience, h.isNew)
	h.members.mcp = pool
	h.shared.mcp.Store(pool)
	defer h.shared.mcp.Store(nil)
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
