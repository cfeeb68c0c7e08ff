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
		l.queue.drain(ctx)
	}()
}

// AwaitDrainer waits until no landing or check of the Lander is under way.
func AwaitDrainer(ctx context.Context, l *Lander) error {
	unlock, err := l.checks.lock(ctx)
	if err == nil {
		unlock()
	}
	return err
}

// Announce adds a commit that is to land on tip to the tips.
func Announce(ctx context.Context, l *Lander, tip, commit string) error {
	return l.guard.announce(ctx, tip, commit)
}

// Order returns the ids of tasks in the order in which they land. The last one came first, and those that ask for a
// review have been reviewed.
func Order(ctx context.Context, l *Lander, tasks []muster.Task) (ids []muster.TaskID, err error) {
	var jobs []*job
	for i, t := range tasks {
		j := &job{work: work{task: t}, position: -i}
		if t.Review {
			j.approval = (&approval{}).String()
		}
		jobs = append(jobs, j)
	}
	err = l.queue.inOrder(ctx, jobs)
	for _, j := range jobs {
		ids = append(ids, j.task.ID)
	}
	return ids, err
}
