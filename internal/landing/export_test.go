package landing

import (
	"context"
	"runtime"

	"muster"
)

// Waiting returns how many owners wait for a decision about their landing.
func Waiting(l *Lander) int {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	return l.queue.present
}

var (
	Dependants     = dependants
	FileList       = fileList
	TreeChanges    = treeChanges
	HistoryChanges = historyChanges
)

type FileChange = fileChange

// EndDrainer leaves the queue as when its last owner has left and its drainer has not noticed that yet. It does when
// somebody waits.
func EndDrainer(ctx context.Context, l *Lander, why error) {
	ctx, giveUp := context.WithCancelCause(ctx)
	giveUp(why)
	l.queue.drains, l.queue.giveUp = true, giveUp
	go func() {
		for Waiting(l) == 0 {
			runtime.Gosched()
		}
		drain(ctx, l)
	}()
}

// AwaitDrainer waits until no landing or check of the Lander is under way.
func AwaitDrainer(ctx context.Context, l *Lander) error {
	unlock, err := lock(ctx, l.slot)
	if err == nil {
		unlock()
	}
	return err
}

// Announce adds a commit that is to land on tip to the tips.
func Announce(ctx context.Context, l *Lander, tip, commit string) error {
	return l.announce(ctx, tip, commit)
}

// Order returns the ids of tasks in the order in which they land. The last one came first, and those that ask for a
// review have been reviewed.
func Order(ctx context.Context, l *Lander, tasks []muster.Task) (ids []muster.TaskID, err error) {
	var jobs []*attempt
	for i, t := range tasks {
		a := &attempt{v: Verdict{Task: t}, turn: turn{place: -i}}
		if t.Review {
			a.approval = &approval{}
		}
		jobs = append(jobs, a)
	}
	err = inOrder(ctx, l, jobs)
	for _, a := range jobs {
		ids = append(ids, a.v.Task.ID)
	}
	return ids, err
}
