package team

import (
	"cmp"
	"context"
	"iter"
	"sync"

	"muster"
	"muster/internal/hooks"
	"muster/journal"
)

// notifyUser runs the Notification hooks, beside everything else, for what happens from now on and needs the user. The
// function that it returns runs those for what has happened by then, and ends it. The end of ctx kills the hooks.
func notifyUser(ctx context.Context, p *runHost) (end func()) {
	if !p.Hooks.Has(hooks.Notification) {
		return func() {}
	}
	at, err := p.Journal.Tail(ctx, 0)
	if err != nil {
		logDropped(ctx, p.Log, "reading the journal for hooks", err)
		return func() {}
	}
	each := func(entries iter.Seq2[journal.Entry, error]) {
		for e, err := range entries {
			if at = max(at, e.Pos); err == nil {
				notify(ctx, p, e.Event)
			}
		}
	}
	following, stop := context.WithCancel(ctx)
	var working sync.WaitGroup
	working.Go(func() { each(p.Journal.Follow(following, at)) })
	return func() {
		stop()
		working.Wait()
		each(p.Journal.Read(ctx, at))
	}
}

func notify(ctx context.Context, p *runHost, e muster.Event) {
	kind := map[string]string{journal.TaskAttention: "needs_attention", journal.BudgetWarned: "budget",
		journal.BudgetSpent: "budget", journal.RequestCreated: "permission_prompt"}[e.Kind]
	if kind == "" {
		return
	}
	t, _ := p.Board.Get(ctx, e.Task) // one that cannot be read is only numbered
	_, err := p.Hooks.Run(ctx, hooks.Moment{Event: hooks.Notification, Names: []string{kind}, Env: p.Environ,
		Member: e.Member, Team: p.Team, Task: e.Task, Fields: map[string]any{"notification_type": kind,
			"message": cmp.Or(e.Text("text"), e.Text("reason")), "task_subject": t.Subject}})
	logDropped(ctx, p.Log, "running a hook", err)
}
