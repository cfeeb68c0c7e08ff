package team

import (
	"context"

	"muster"
	"muster/internal/mcp"
	"muster/internal/spend"
	"muster/internal/workspace"
	"muster/journal"
)

// IsRunning reports whether a process runs the team: its lead is alive, or the process has not yet written how the run
// ended, which it does after its lead has shut down.
func (t *Team) IsRunning(ctx context.Context) (bool, error) {
	alive, err := t.Members().IsLeadAlive(ctx)
	if alive || err != nil {
		return alive, err
	}
	return t.site.config.Store.Leases().Held(ctx, workspace.LeadLease)
}

// LastRun returns the record of the run under way, or of the last one. It is the zero Run when there was none.
func (t *Team) LastRun(ctx context.Context) (muster.Run, error) {
	return t.services().Runs().Look(ctx)
}

// LastSummary returns the summary of the last run, from its records. It writes nothing and looks at no commit. The last
// words are those of the event with which the run ended.
func LastSummary(ctx context.Context, t *Team) (sum Summary, err error) {
	if sum.Run, err = t.LastRun(ctx); err != nil {
		return sum, err
	}
	tasks, unreadable, err := t.Tasks().List(ctx)
	if err != nil {
		return sum, err
	}
	sum.Tasks, sum.Verified, sum.Red = tasks, sum.Run.Check != "", sum.Run.BaseCheck == workspace.BaseRed
	sum.Unread = map[muster.TaskID]string{}
	for _, u := range unreadable {
		sum.Unread[u.ID] = u.Why
	}
	for e, err := range t.Journal().Read(ctx, 0) {
		if err == nil && e.Kind == journal.RunEnded {
			sum.Text, sum.Code = e.Text("text"), int(e.Number("code"))
		}
	}
	return sum, nil
}

// ReadSpending returns what the calls of models in a team's last run have cost.
func ReadSpending(ctx context.Context, t *Team) (book *spend.Book, err error) {
	w := t.services()
	run, err := w.Runs().Look(ctx)
	if err != nil {
		return nil, err
	}
	roster := w.Roster(ctx)
	err = spend.OfRun(t.site.config.Store.Log(), run.StartedAt).Look(ctx, func(b *spend.Book) {
		book = b
		// A call of a process that has died counts as its request. Where that cannot be told, it may be under way.
		b.CutOff(func(c spend.Call) bool {
			alive, err := roster.Alive(ctx, c.Host)
			return err == nil && !alive
		})
	})
	return book, err
}

// MCPPrompt is a text that an MCP server has for the user to begin with.
type MCPPrompt = mcp.Prompt

// Prompts returns the prompts that the MCP servers of a team's run in this process have; without such a run there are
// none.
func Prompts(t *Team) []MCPPrompt {
	if p := t.hosting.mcp.Load(); p != nil {
		return p.Prompts()
	}
	return nil
}

// Prompt asks an MCP server of a team's run in this process for the text of a prompt. Errors: NotFound for a prompt
// that Prompts does not list, and Invalid, with the server's reason, where the server refuses.
func Prompt(
	ctx context.Context, t *Team, server, name string, arguments map[string]string,
) (string, error) {
	p := t.hosting.mcp.Load()
	if p == nil {
		return "", muster.Errorf(muster.NotFound, "no run with MCP servers is going on in this process")
	}
	return p.Prompt(ctx, server, name, arguments)
}
