package team

import (
	"context"

	"muster"
	"muster/internal/check"
	"muster/internal/mcp"
	"muster/internal/spend"
	"muster/internal/workspace"
	"muster/journal"
)

// operations returns the operations of people on the services that the team uses now.
func (t *Team) operations() operations {
	return operations{t.services(), &t.site.config, t.site.secrets, t.site.log, t.site.launch, t.openSite}
}

// TargetOf returns the target of a team's last run.
func TargetOf(t *Team) Target { return Target{t.operations} }

// SetupOf returns the set-up of a team's repository.
func SetupOf(t *Team) Setup { return Setup{t.operations} }

// ReceiptsOf compares what the board says of the landed tasks with the target's commits and with what checks have said
// of their trees. They are in the order in which they landed, and those that are not on the target come last. It
// changes nothing.
//
// The record of a task says which commit it landed with, and what the check has said. Both may have been written by
// somebody else, so nothing is believed that the other two do not bear out:
//
//   - The commit is one of the target's first parents, and its trailer names the task and says the same.
//   - A check of the very tree of that commit is on record, by the same command, and says the same. Where there are
//     several, that holds of each that is required; one that depends on some files only may have run on another tree
//     with the same ones.
//   - For a commit that a later check covers, that holds of the next landing above it.
func ReceiptsOf(ctx context.Context, t *Team) ([]Receipt, error) { return t.operations().receipts(ctx) }

// Clean lists what nobody needs any more, and removes it if c says so. While a process of the team lives, its branches
// and lanes stay. Work that is nowhere else stays unless c.Unmerged.
func Clean(ctx context.Context, t *Team, c Cleaning) ([]Cleanable, error) {
	return t.operations().clean(ctx, c)
}

// ForgetChecks removes what checks have kept of the team's repository in the user's cache. It is for a repository that
// is not kept itself.
func ForgetChecks(t *Team) error {
	dir := t.site.config.checksDir()
	if dir == "" {
		return nil
	}
	return check.EntryOf(dir, t.Root()).Remove()
}

// Undo takes landed tasks back: it reverts their commits in a lane of a new task, which lands as any other, after the
// check. The check runs in this process, which needs no model, beside a living team or without one. isDryRun only says
// what would be done.
//
// Nothing has changed after an error: Invalid for a task that has not landed, for a conflict with what landed later and
// for a red check, each with what to do. A process that is killed on the way leaves a task that Undo, called again,
// goes on with; a team at work, or one that is resumed, gives it to a teammate.
func (s Tasks) Undo(ctx context.Context, ids []muster.TaskID, isDryRun bool) (Undone, error) {
	return s.t.operations().undo(ctx, ids, isDryRun)
}

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
