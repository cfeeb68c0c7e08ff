package torture

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"muster"
	"muster/internal/board"
)

// claims lets eight processes with three workers each claim the tasks of one board. The tasks depend on each other.
// Some processes are killed. Others are stopped, their claims are revoked and given to others, and then they are
// continued. The effect of a task is its completion, which the fence of the claim guards.
func claims(ctx context.Context, a *env) error {
	tasks := a.amount(1000, 60)
	if err := a.plan(tasks); err != nil {
		return err
	}
	r, err := a.openServices()
	if err != nil {
		return err
	}
	defer r.store.Close()
	var jobs []Job
	for i := range 8 {
		extra := tasks + i + 1 // that the process deletes
		if err := a.write(muster.Task{ID: muster.TaskID(extra), Subject: "not needed", Status: muster.Pending,
			ClaimRole: "nobody"}); err != nil {
			return err
		}
		jobs = append(jobs, Job{Kind: "claims", Name: fmt.Sprintf("p%d", i+1), Seed: a.rng.Uint64(), Threads: 3,
			Count: extra})
	}
	taken := &revoked{claims: map[string]bool{}}
	err = a.run(ctx, jobs, chaos{kills: a.amount(100, 8), stops: a.amount(50, 5), together: 3, passes: tasks * 30,
		total:   tasks,
		step:    func(e entry) bool { return e.words[0] == "done" },
		stopped: func(ctx context.Context, h *worker, _ int) bool { return a.takeAway(ctx, r, h.job.Name, taken) }})
	if err != nil {
		return err
	}
	a.row.Operations = tasks
	return a.checkClaims(ctx, r, tasks, taken.claims)
}

// plan writes the board as another program would: each task waits for up to two of the thirty before it.
func (a *env) plan(tasks int) error {
	for id := 1; id <= tasks; id++ {
		t := muster.Task{ID: muster.TaskID(id), Subject: fmt.Sprintf("task %d", id), Status: muster.Pending,
			CreatedBy: muster.Lead}
		for range a.rng.IntN(3) {
			on := muster.TaskID(id - 1 - a.rng.IntN(30))
			if on > 0 && (len(t.DependsOn) == 0 || t.DependsOn[0] != on) {
				t.DependsOn, t.BlockedBy = append(t.DependsOn, on), append(t.BlockedBy, on)
			}
		}
		if err := a.write(t); err != nil {
			return err
		}
	}
	return nil
}

// write writes tasks as another program would.
func (a *env) write(tasks ...muster.Task) error {
	dir := filepath.Join(a.root(), ".tasks")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, t := range tasks {
		data, err := muster.Encode(t)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, fmt.Sprintf("task_%d.json", t.ID)), data, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// claimer is a process of workers: each claims the next task, works on it for some milliseconds and completes it.
func claimer(ctx context.Context, r *services) error {
	r.board.OnEffect(muster.EffectTell, func(ctx context.Context, t muster.Task) error {
		_, err := r.post.Send(ctx, muster.Message{ID: muster.MessageID(fmt.Sprintf("task-%d-%d", t.ID, t.Fence)),
			From: muster.System, To: muster.Lead, Type: muster.MailLanded, TaskID: t.ID, Content: t.Subject})
		return err
	})
	if err := r.board.Delete(ctx, muster.TaskID(r.Count), false); err != nil && !errors.Is(err, muster.ErrNotFound) {
		return err
	}
	var g sync.WaitGroup
	errs := make([]error, r.Threads)
	for i := range r.Threads {
		g.Go(func() { errs[i] = r.claim(ctx, muster.Name(fmt.Sprintf("%s-%d", r.Name, i+1)), i) })
	}
	g.Wait()
	return errors.Join(errs...)
}

func (r *services) claim(ctx context.Context, owner muster.Name, thread int) error {
	rng := rand.New(rand.NewPCG(r.Seed+uint64(r.Life), uint64(thread)))
	all, err := r.board.List(ctx)
	if err != nil {
		return err
	}
	for _, t := range all { // what an earlier life of this worker has claimed
		if t.Owner == owner && t.Status == muster.InProgress {
			if err := r.finish(ctx, t, owner, rng); err != nil {
				return err
			}
		}
	}
	if thread == 0 {
		r.ready()
	}
	watch, stop := context.WithCancel(ctx)
	defer stop()
	changed := r.board.Watch(watch)
	for {
		t, ok, err := r.board.ClaimNext(ctx, board.Claim{Owner: owner})
		if err != nil {
			return err
		}
		if ok {
			if err := r.finish(ctx, t, owner, rng); err != nil {
				return err
			}
			continue
		}
		if over, err := r.allDone(ctx); err != nil || over {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		case <-time.After(200 * time.Millisecond): // what a dead process has left undone
			if err := r.board.Settle(ctx); err != nil && !board.OnlyUnsettled(err) {
				return err
			}
		}
	}
}

func (r *services) finish(ctx context.Context, t muster.Task, owner muster.Name, rng *rand.Rand) error {
	work := 2*time.Millisecond + time.Duration(rng.Int64N(int64(8*time.Millisecond)))
	if t.Fence > 1 { // its earlier owner should be continued during the work
		work = 50*time.Millisecond + time.Duration(rng.Int64N(int64(50*time.Millisecond)))
	}
	time.Sleep(work)
	r.hold(time.Second)
	claim := []string{strconv.Itoa(int(t.ID)), strconv.Itoa(t.Fence), string(owner)}
	_, err := r.board.Complete(ctx, t.ID, t.Fence, board.Outcome{Result: "by " + string(owner), By: owner})
	switch {
	case err == nil:
		r.note(append([]string{"done"}, claim...)...)
	case errors.Is(err, muster.ErrFenced):
		r.note(append([]string{"late"}, claim...)...) // kept aside
	default:
		return err
	}
	return nil
}

func (r *services) allDone(ctx context.Context) (bool, error) {
	all, err := r.board.List(ctx)
	for _, t := range all {
		if t.Status != muster.Completed {
			return false, err
		}
	}
	return err == nil, err
}

// revoked are the claims that were taken back. Several processes are stopped at the same time.
type revoked struct {
	mu     sync.Mutex
	claims map[string]bool // "task fence owner"
}

func (x *revoked) add(t muster.Task) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.claims[fmt.Sprintf("%d %d %s", t.ID, t.Fence, t.Owner)] = true
}

// takeAway revokes what a stopped process has claimed, and waits until others have taken it. A process that was stopped
// while it held a lock is continued: who waits for the lock waits for it.
func (a *env) takeAway(ctx context.Context, r *services, process string, back *revoked) bool {
	ctx, cancel := context.WithTimeout(ctx, 700*time.Millisecond)
	defer cancel()
	var taken []muster.Task
	all, err := r.board.List(ctx)
	if err != nil {
		return false
	}
	for _, t := range all {
		if !strings.HasPrefix(string(t.Owner), process+"-") || t.Status != muster.InProgress {
			continue
		}
		now, err := r.board.Revoke(ctx, t.ID, t.Fence, muster.Lead, "its owner is stopped")
		if err == nil {
			back.add(t)
			taken = append(taken, now)
		}
	}
	for _, t := range taken {
		for ctx.Err() == nil {
			if now, err := r.board.Get(ctx, t.ID); err != nil || now.Fence != t.Fence {
				break
			}
			time.Sleep(2 * time.Millisecond)
		}
	}
	return len(taken) > 0
}

// checkClaims compares what the workers were promised with the board.
func (a *env) checkClaims(ctx context.Context, r *services, tasks int, revoked map[string]bool) error {
	if a.row.Bad() {
		return nil
	}
	if err := r.board.Settle(ctx); err != nil && !board.OnlyUnsettled(err) {
		return err
	}
	all, err := r.board.List(ctx)
	if err != nil {
		return err
	}
	by := map[string]map[string]bool{} // task -> the claims that completed it
	for _, e := range a.ledgers.all {
		switch e.words[0] {
		case "late":
			a.row.Refused++
		case "done":
			id, claim := e.words[1], strings.Join(e.words[1:], " ")
			if by[id] == nil {
				by[id] = map[string]bool{}
			}
			by[id][claim] = true
			if revoked[claim] {
				a.fail(&a.row.Doubled, "task %s was completed by a claim that had been taken back: %s", id, claim)
			}
		}
	}
	if len(all) != tasks {
		a.fail(&a.row.Lost, "there are %d tasks of %d", len(all), tasks)
	}
	for _, t := range all {
		done := by[strconv.Itoa(int(t.ID))]
		switch {
		case t.Status != muster.Completed:
			a.fail(&a.row.Stuck, "task %d is %s", t.ID, t.Status)
		case len(done) > 1:
			a.fail(&a.row.Doubled, "task %d was completed by %d claims: %v", t.ID, len(done), done)
		case len(done) == 1 && !done[fmt.Sprintf("%d %d %s", t.ID, t.Fence, t.CompletedBy)]:
			a.fail(&a.row.Lost, "task %d: the completion %v was acknowledged, and the board says fence %d by %s",
				t.ID, done, t.Fence, t.CompletedBy)
		case len(t.BlockedBy) > 0:
			a.fail(&a.row.Stuck, "task %d is completed and still waits for %v", t.ID, t.BlockedBy)
		}
	}
	return a.checkNews(ctx, r, tasks)
}

// checkNews wants one mail for each task that was completed: the effect that is settled after the step.
func (a *env) checkNews(ctx context.Context, r *services, tasks int) error {
	r.board.OnEffect(muster.EffectTell, func(ctx context.Context, t muster.Task) error {
		_, err := r.post.Send(ctx, muster.Message{ID: muster.MessageID(fmt.Sprintf("task-%d-%d", t.ID, t.Fence)),
			From: muster.System, To: muster.Lead, Type: muster.MailLanded, TaskID: t.ID, Content: t.Subject})
		return err
	})
	if err := r.board.Settle(ctx); err != nil {
		return err
	}
	mails, _, _, err := r.post.Peek(ctx, muster.Lead, 0, 1<<30)
	if err != nil {
		return err
	}
	told := map[muster.TaskID]int{}
	for _, m := range mails { // Peek returns a mail that lies there twice once
		told[m.TaskID]++
	}
	for id := range muster.TaskID(tasks) {
		switch n := told[id+1]; {
		case n == 0:
			a.fail(&a.row.Lost, "nobody was told that task %d is completed", id+1)
		case n > 1:
			a.fail(&a.row.Doubled, "the completion of task %d was told %d times", id+1, n)
		}
	}
	return nil
}
