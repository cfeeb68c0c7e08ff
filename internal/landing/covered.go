package landing

import (
	"context"
	"fmt"
	"sync"

	"muster"
	"muster/journal"
)

// coveredCommits are commits in the middle of a stack: a later check covers them, and none of their own has run. With
// Options.CheckCovered they are checked while no landing waits, one at a time. What such a check says changes nothing
// on the target: a green one leaves a receipt, and of a red one people are told.
//
// Invariant: a landing never waits for such a check longer than it takes to end it.
type coveredCommits struct {
	mu      sync.Mutex
	waiting []coveredCommit
	end     context.CancelFunc // ends the check that is under way; nil: there is none
}

// coveredCommit is a commit that has landed covered.
type coveredCommit struct {
	commit string
	task   muster.Task
}

// add notes commits to check later.
func (c *coveredCommits) add(commit string, t muster.Task) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, coveredCommit{commit, t})
}

// stop ends the check that is under way. Its commit is checked later.
func (c *coveredCommits) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil {
		c.end()
	}
}

// begin returns a context that ends when somebody queues; ok is false where a check is under way already, or there is
// nothing to check. The caller calls done.
func (c *coveredCommits) begin(ctx context.Context) (idle context.Context, done func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil || len(c.waiting) == 0 {
		return nil, nil, false
	}
	idle, end := context.WithCancel(ctx)
	c.end = end
	return idle, func() {
		end()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.end = nil
	}, true
}

// take takes the next commit.
func (c *coveredCommits) take() (next coveredCommit, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		return next, false
	}
	next, c.waiting = c.waiting[0], c.waiting[1:]
	return next, true
}

// checkCovered checks the covered commits until somebody queues. It is called when nobody waits, and returns at once.
func checkCovered(ctx context.Context, l *Lander) {
	ctx, done, ok := l.covered.begin(ctx)
	if !ok {
		return
	}
	// Whoever has come after the queue was found empty has ended nothing yet, if it came before begin.
	if l.queue.hasDrainer() {
		done()
		return
	}
	go func() {
		defer done()
		for ctx.Err() == nil {
			next, ok := l.covered.take()
			if !ok {
				return
			}
			if err := checkOneCovered(ctx, l, next); err != nil {
				if ctx.Err() != nil {
					l.covered.add(next.commit, next.task) // somebody has queued
				} else {
					l.options.Log.WarnContext(ctx, "a covered commit is not checked", "commit", next.commit, "err", err)
				}
				return
			}
		}
	}()
}

// checkOneCovered checks one commit. Whoever lands meanwhile waits for the slot, and has ended ctx before.
func checkOneCovered(ctx context.Context, l *Lander, next coveredCommit) error {
	unlock, err := takeSlot(ctx, l)
	if err != nil {
		return err
	}
	defer unlock()
	t := next.task
	res, err := l.check(ctx, next.commit, fmt.Sprintf("task-%d-%d-covered", t.ID, t.Fence), nil)
	if err != nil || res.Green {
		return err
	}
	failed := res.Failed
	if failed == "" {
		failed = res.How
	}
	text := fmt.Sprintf("%.7s of task #%d, which landed covered by a later check, is red by itself: %s",
		next.commit, t.ID, failed)
	return l.journal.Emit(ctx, muster.Event{Kind: journal.RunNote, Task: t.ID,
		Fields: map[string]any{"text": text, "red_commit": next.commit, "failed": failed}})
}
