package torture

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"muster"
)

// arm is how a process of a worker ends. With the zero value it lives until its job is done.
type arm struct {
	fault  string        // kills the process at a point, as in faultinject.Variable
	toLive time.Duration // if not 0, the process is killed from outside that long after its first line
}

// stuckAfter is how long no worker may print or end before the workers count as stuck.
const stuckAfter = time.Minute

// jobs returns n jobs of a kind, for workers called prefix1, prefix2, and so on.
func (a *env) jobs(kind, prefix string, n int) (all []job) {
	for i := range n {
		name := muster.Name(fmt.Sprintf("%s%d", prefix, i+1))
		all = append(all, job{Kind: kind, Dir: a.Root(), Worker: name, Seed: a.rng.Uint64()})
	}
	return all
}

// randomArms returns n arms: half kill at a random point, the others from outside.
func (a *env) randomArms(n int) (arms []arm) {
	for range n / 2 {
		arms = append(arms, arm{fault: fmt.Sprintf("random:%d:0.02", a.rng.Uint32())},
			arm{toLive: time.Duration(1+a.rng.IntN(200)) * time.Millisecond})
	}
	return arms
}

// workers are the worker processes of a scenario. Each job is done by one process after the other, each with an arm.
// When all arms are used up, the workers are told to finish.
type workers struct {
	*env
	armed  atomic.Int64 // the number of arms that are not used up
	isIdle *time.Timer
	mu     sync.Mutex // guards the environment's row and promises
}

// run distributes the arms among the jobs, and returns when all workers have finished or one has failed.
func (w *workers) run(ctx context.Context, jobs []job, arms []arm) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w.armed.Store(int64(len(arms)))
	w.isIdle = time.AfterFunc(stuckAfter, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.row.stuck++
		cancel(fmt.Errorf("no worker has done anything for %s", stuckAfter))
	})
	defer w.isIdle.Stop()
	var all sync.WaitGroup
	for i, j := range jobs {
		var own []arm
		for k := i; k < len(arms); k += len(jobs) {
			own = append(own, arms[k])
		}
		all.Go(func() {
			if err := w.lives(ctx, j, own); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// lives starts a process for each arm, and a last one that does the job to its end.
func (w *workers) lives(ctx context.Context, j job, arms []arm) error {
	for _, how := range arms {
		if err := w.live(ctx, &j, how); err != nil {
			return err
		}
		if w.armed.Add(-1) == 0 {
			if err := os.WriteFile(w.at(finish), nil, 0o600); err != nil {
				return err
			}
		}
	}
	return w.live(ctx, &j, arm{})
}

// live runs one process until it ends as it should.
func (w *workers) live(ctx context.Context, j *job, how arm) error {
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	cmd := w.command(ctx, how.fault, roleWorker, string(text))
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		w.isIdle.Reset(stuckAfter)
		if lines.Text() != isReady {
			j.Done++
			w.mu.Lock()
			w.promises = append(w.promises, lines.Text())
			w.mu.Unlock()
		} else if how.toLive > 0 {
			time.AfterFunc(how.toLive, func() { _ = cmd.Process.Kill() })
		}
	}
	err = cmd.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case how != (arm{}) && wasKilled(cmd.ProcessState):
		w.row.kills++
	case how != (arm{}) || err != nil:
		return fmt.Errorf("the worker %s ended with %v: %s", j.Worker, cmd.ProcessState, bytes.TrimSpace(said.Bytes()))
	}
	return nil
}

// wasKilled reports whether a signal ended a process.
func wasKilled(s *os.ProcessState) bool { return s.ExitCode() == -1 }
