package torture

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"muster/internal/testing/faultinject"
)

// A promise is a line that a worker printed after a service had promised something to it, for example "sent 3". A
// killed worker may have printed one line less than it was promised.
type promise struct {
	worker string
	words  []string
}

// A fate is how one life of a worker ends. A process that is not armed to kill itself is killed from outside, some time
// after its first step.
type fate struct {
	arm  string // what the process is armed with, as in faultinject.Variable; "" for nothing
	stop bool   // it is stopped before: at its "stop:" point, or some time after its first step
}

// dies reports whether the process is armed to kill itself.
func (f fate) dies() bool {
	return strings.Contains(f.arm, "kill:") || strings.Contains(f.arm, "random:")
}

// stopsItself reports whether the process is armed to stop itself at a point.
func (f fate) stopsItself() bool { return strings.Contains(f.arm, "stop:") }

// atRandom returns n fates: every other one is a kill at a random point, the others are kills from outside.
func (a *env) atRandom(n int) (fates []fate) {
	for i := range n {
		f := fate{}
		if i%2 == 0 {
			f.arm = fmt.Sprintf("random:%d:0.02", a.rng.Uint32())
		}
		fates = append(fates, f)
	}
	return fates
}

// workers are the worker processes of a scenario. Each job is done by one process after the other, each of which meets
// a fate. When all fates are met, the workers are told to finish.
type workers struct {
	*env
	// stopped is called while a worker's process is stopped. It reports whether the stop counts: a worker that owns
	// nothing loses nothing while it is stopped.
	stopped func(ctx context.Context, worker string) bool

	cancel context.CancelCauseFunc
	mu     sync.Mutex // guards the environment's row, promises and recoveries, and moved
	moved  time.Time  // when a worker last printed a line or ended
}

var errViolated = errors.New("a promise was broken")

// stuckAfter is how long no worker may do anything before the workers count as stuck.
const stuckAfter = time.Minute

// run starts the jobs, distributes the fates among them, and returns when all workers have finished. Violations are in
// the row. An error means that the scenario itself failed.
func (w *workers) run(ctx context.Context, jobs []Job, fates []fate) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w.moved, w.cancel = time.Now(), cancel
	var doomed, all sync.WaitGroup
	doomed.Add(len(jobs))
	for i, job := range jobs {
		var own []fate
		for k := i; k < len(fates); k += len(jobs) {
			own = append(own, fates[k])
		}
		job.Dir = w.root()
		all.Go(func() {
			if err := w.lives(ctx, job, own, sync.OnceFunc(doomed.Done)); err != nil {
				cancel(err)
			}
		})
	}
	doomed.Wait()
	if err := os.WriteFile(w.at(finish), nil, 0o600); err != nil {
		cancel(err)
	}
	all.Wait()
	if err := context.Cause(ctx); !errors.Is(err, errViolated) {
		return err
	}
	return nil
}

// lives starts processes for the job until one has finished it. It calls isOver when all fates are met.
func (w *workers) lives(ctx context.Context, job Job, fates []fate, isOver func()) error {
	defer isOver()
	rng := rand.New(rand.NewPCG(w.Seed, job.Seed))
	for job.Life = 1; ; job.Life++ {
		p := &process{workers: w, job: job, rng: rng}
		if job.Life <= len(fates) {
			p.fate = &fates[job.Life-1]
		} else {
			isOver()
		}
		killed, err := p.live(ctx)
		if err != nil || !killed {
			return err
		}
		job.Done = p.job.Done
	}
}

// process is one life of a worker.
type process struct {
	*workers
	job   Job
	fate  *fate // nil: it lives until its job is done
	rng   *rand.Rand
	cmd   *exec.Cmd
	ready chan struct{} // closed after the first step
}

// live runs the process to its end, and reports whether it was killed.
func (p *process) live(ctx context.Context) (killed bool, err error) {
	text, err := json.Marshal(p.job)
	if err != nil {
		return false, err
	}
	p.cmd = exec.CommandContext(ctx, p.Worker[0], append(slices.Clone(p.Worker[1:]), string(text))...)
	p.cmd.Dir, p.cmd.Env = p.root(), append(slices.Clone(p.Env), "TMPDIR="+p.at("tmp"))
	var said bytes.Buffer
	p.cmd.Stderr, p.cmd.WaitDelay = &said, 10*time.Second
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	arm := ""
	if p.fate != nil {
		arm = p.fate.arm
	}
	if p.List != "" {
		arm = strings.TrimPrefix(arm+";list:"+p.List, ";")
	}
	if arm != "" {
		p.cmd.Env = append(p.cmd.Env, faultinject.Variable+"="+arm, faultinject.NoteVariable+"="+p.note())
	}
	p.ready = make(chan struct{})
	began := time.Now()
	if err := p.cmd.Start(); err != nil {
		return false, err
	}
	ended, struck := make(chan struct{}), make(chan bool, 1)
	go func() { struck <- p.meet(ctx, ended) }()
	p.listen(out, began)
	err = p.cmd.Wait()
	close(ended)
	wasStruck := <-struck
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.moved = time.Now()
	switch {
	case err == nil && p.fate == nil:
		return false, nil
	case wasKilled(p.cmd.ProcessState):
		if p.row.Kills++; !wasStruck {
			p.row.AtPoints++
		}
		return true, nil
	}
	p.fail(nil, "the worker %s ended with %v: %s", p.job.Name, p.cmd.ProcessState, bytes.TrimSpace(said.Bytes()))
	return false, errViolated
}

// listen reads what the process prints until it ends.
func (p *process) listen(out io.Reader, began time.Time) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		words := strings.Fields(lines.Text())
		p.mu.Lock()
		p.moved = time.Now()
		if words[0] == isReady {
			close(p.ready)
			if p.job.Life > 1 {
				p.recoveries = append(p.recoveries, time.Since(began))
			}
		} else {
			p.job.Done++
			p.promises = append(p.promises, promise{p.job.Name, words})
		}
		p.mu.Unlock()
	}
}

// note returns the path of the file that gets the names of the points at which the process stops or dies.
func (p *process) note() string { return p.at(fmt.Sprintf("tmp/%s-%d.point", p.job.Name, p.job.Life)) }

// meet does to the process what its fate says, until it ends. It reports whether it killed the process.
func (p *process) meet(ctx context.Context, ended <-chan struct{}) (struck bool) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var ready <-chan struct{} = p.ready
	var due time.Time // when it is stopped or killed from outside
	stops := p.fate != nil && p.fate.stop
	for {
		select {
		case <-ended:
			return struck
		case <-ready:
			ready, due = nil, time.Now().Add(time.Duration(p.rng.Int64N(int64(200*time.Millisecond))))
			continue
		case <-tick.C:
		}
		p.checkMoving()
		isDue := !due.IsZero() && time.Now().After(due)
		switch {
		case p.fate == nil || struck:
		case stops && p.fate.stopsItself():
			if note, err := os.ReadFile(p.note()); err == nil && len(note) > 0 {
				p.stop(ctx)
				stops = false
			}
		case stops && isDue:
			stops = !p.stop(ctx) // again, until it counts
			due = time.Now().Add(time.Duration(p.rng.Int64N(int64(50 * time.Millisecond))))
		case isDue && !p.fate.dies():
			struck = p.cmd.Process.Kill() == nil
		}
	}
}

// stop stops the process, calls stopped, and continues the process. It reports whether the stop counts.
func (p *process) stop(ctx context.Context) (counts bool) {
	if halt(p.cmd.Process) != nil {
		return false // it has just ended
	}
	counts = p.stopped(ctx, p.job.Name)
	_ = wake(p.cmd.Process)
	time.Sleep(50 * time.Millisecond) // it notes a point before it stops there, and may have been woken too early
	_ = wake(p.cmd.Process)
	if counts {
		p.mu.Lock()
		p.row.Stops++
		p.mu.Unlock()
	}
	return counts
}

// checkMoving ends the scenario when no worker has done anything for stuckAfter.
func (w *workers) checkMoving() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.moved) > stuckAfter && w.row.Stuck == 0 {
		w.fail(&w.row.Stuck, "no worker has done anything for %s", stuckAfter)
		w.cancel(errViolated)
	}
}

// finish is the file beside the state that tells workers to finish.
const finish = "finish"

// isFinishing reports whether the workers were told to finish.
func (r *services) isFinishing() bool {
	_, err := os.Stat(filepath.Join(filepath.Dir(r.Dir), finish))
	return err == nil
}
