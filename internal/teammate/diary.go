package teammate

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"muster"
	"muster/internal/mailbox"
	"muster/journal"
	"muster/llm"
)

type holder interface {
	CurrentTask() (muster.Task, bool)
}

// diary tells others what the member does: the journal, the lead, and people who read the log.
type diary struct {
	name    muster.Name
	journal *journal.Journal
	post    *mailbox.Mail
	log     *slog.Logger
	tasks   holder
}

// event writes what happened to the journal. The journal drives nothing: a failure to write it does not fail the turn.
func (d *diary) event(ctx context.Context, kind string, fields map[string]any) {
	t, _ := d.tasks.CurrentTask()
	e := muster.Event{Kind: kind, Member: d.name, Task: t.ID, Fields: fields}
	_ = d.journal.Emit(context.WithoutCancel(ctx), e)
}

// note tells the user something about the run. task is 0 where it concerns none.
func (d *diary) note(ctx context.Context, task muster.TaskID, text string) error {
	return d.journal.Emit(ctx, muster.Event{Kind: journal.RunNote, Task: task, Fields: map[string]any{"text": text}})
}

// replied writes an event with what a reply has cost. more is what else is known of the turn.
func (d *diary) replied(ctx context.Context, r llm.Reply, more map[string]any) {
	fields := map[string]any{"stop": r.Stop, "model": r.Model, "input": r.Usage.Input, "output": r.Usage.Output,
		"cache_read": r.Usage.CacheRead, "cache_write": r.Usage.CacheWrite, "cache_write_long": r.Usage.CacheWriteLong}
	if r.Dollars == nil {
		fields["dollars"] = nil // the price is not known
	} else if *r.Dollars > 0 {
		fields["dollars"] = *r.Dollars
	}
	maps.Copy(fields, more)
	d.event(ctx, journal.TurnEnded, fields)
}

// tellLead mails the lead. Errors come from the runtime, all else from the member.
func (d *diary) tellLead(ctx context.Context, kind muster.MessageType, task muster.TaskID, text string) error {
	from := d.name
	if kind == muster.MailError {
		from = muster.System
	}
	_, err := d.post.Send(ctx, muster.Message{Type: kind, From: from, To: muster.Lead, TaskID: task, Content: text})
	return err
}

// dropped logs an error that does not stop the member, unless it only says that the member was cancelled.
func (d *diary) dropped(ctx context.Context, what string, err error) {
	if err == nil || context.Cause(ctx) != nil && errors.Is(err, context.Cause(ctx)) {
		return
	}
	d.log.WarnContext(ctx, "error dropped", "what", what, "err", err)
}

func seconds(d time.Duration) float64 { return float64(d.Milliseconds()) / 1000 }

// guarded is a value that several goroutines read and change: that of Live, and those of the tools.
type guarded[T any] struct {
	mu    sync.Mutex
	value T
}

// get returns a copy of the value, to decide on. What the copy points to is never changed, only replaced.
func (g *guarded[T]) get() T {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.value
}

func (g *guarded[T]) change(f func(*T)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f(&g.value)
}

func isOpen(t Talk) bool {
	if t == nil {
		return false
	}
	select {
	case <-t.Closed():
		return false
	default:
		return true
	}
}

func agentID(name, team muster.Name) string { return string(name) + "@" + string(team) }
