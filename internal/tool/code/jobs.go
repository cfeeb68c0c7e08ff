package code

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"muster"
	"muster/internal/proc"
	"muster/llm"
	"muster/tool"
)

const (
	jobsMost = 8  // that run at a time
	jobsKept = 64 // that have ended and can still be asked about
	jobLines = 20 // of its output in an announcement
	askLines = 50 // and in check_background
)

// errStopped is the cause when a job was stopped on request.
var errStopped = errors.New("stopped")

// Job is a command that ran in the background, as it is announced.
type Job struct {
	ID      string // bg-1, bg-2, ...
	Command string
	Exit    int
	Why     string // what ended it, if it did not end by itself
	Took    time.Duration
	Last    string // the last lines of its output
	Path    string // the whole output, if it is long
}

// Jobs are the background commands of one member. They outlive the calls and the turns that started them.
type Jobs struct {
	launcher proc.Launcher
	wake     chan struct{}

	mu     sync.Mutex
	list   []*job
	last   int
	closed bool
	alive  sync.WaitGroup
}

type job struct {
	id, command string
	began       time.Time
	out         *Output
	stop        context.CancelCauseFunc
	ended       chan struct{} // closed after what follows is set, under Jobs.mu
	over        bool
	told        bool // announced, or asked about after its end
	result      Job
}

// NewJobs returns an empty set of jobs.
func NewJobs(l proc.Launcher) *Jobs { return &Jobs{launcher: l, wake: make(chan struct{}, 1)} }

// Start starts s in the background for at most limit and returns its id. Of ctx only the values matter, and that it
// is not over yet. Held when too many run already, Unavailable after Close; else what proc says.
func (j *Jobs) Start(ctx context.Context, command string, s proc.Spec, limit time.Duration, out *Output) (id string, err error) {
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return "", muster.Errorf(muster.Unavailable, "the member has ended: nothing can be started in the background")
	}
	if n := j.running(); n >= jobsMost {
		return "", muster.Errorf(muster.Held, "%d of your background jobs run already: wait for one, or stop one (check_background, stop_background)", n)
	}
	stoppable, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	timed, cancel := context.WithTimeoutCause(stoppable, limit, errTimeout)
	s.Out = out
	p, err := j.launcher.Start(timed, s)
	if err != nil {
		cancel()
		stop(nil)
		return "", err
	}
	j.last++
	b := &job{id: fmt.Sprintf("bg-%d", j.last), command: command, began: time.Now(), out: out, stop: stop, ended: make(chan struct{})}
	j.list = append(j.list, b)
	j.forget()
	j.alive.Go(func() {
		exit, err := p.Wait()
		cancel()
		stop(nil)
		j.end(b, exit, err, limit)
	})
	return b.id, nil
}

func (j *Jobs) end(b *job, exit int, err error, limit time.Duration) {
	b.out.Done()
	j.mu.Lock()
	b.result = Job{ID: b.id, Command: b.command, Exit: exit, Took: time.Since(b.began), Last: b.out.Last(jobLines), Path: b.out.Path()}
	switch {
	case errors.Is(err, errTimeout):
		b.result.Why = fmt.Sprintf("killed after %v: its time was up", limit)
	case err != nil:
		b.result.Why = err.Error()
	}
	b.over = true
	close(b.ended)
	j.mu.Unlock()
	select {
	case j.wake <- struct{}{}:
	default: // somebody is being woken already
	}
}

// forget drops the oldest jobs that are over and told. The caller holds mu.
func (j *Jobs) forget() {
	over := 0
	for _, b := range j.list {
		if b.over && b.told {
			over++
		}
	}
	kept := j.list[:0]
	for _, b := range j.list {
		if b.over && b.told && over > jobsKept {
			over--
			continue
		}
		kept = append(kept, b)
	}
	clear(j.list[len(kept):])
	j.list = kept
}

// Running is how many jobs run.
func (j *Jobs) Running() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.running()
}

func (j *Jobs) running() (n int) {
	for _, b := range j.list {
		if !b.over {
			n++
		}
	}
	return n
}

// Unannounced is how many jobs have ended that were not told of yet.
func (j *Jobs) Unannounced() (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, b := range j.list {
		if b.over && !b.told {
			n++
		}
	}
	return n
}

// Finished returns the jobs that ended and were not told of yet, each once.
func (j *Jobs) Finished() (done []Job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, b := range j.list {
		if b.over && !b.told {
			b.told = true
			done = append(done, b.result)
		}
	}
	return done
}

// Wake receives when a job has ended; several ends may be one wake.
func (j *Jobs) Wake() <-chan struct{} { return j.wake }

// Stop kills the jobs that run and returns when they are dead. Others may be started afterwards.
func (j *Jobs) Stop() {
	j.mu.Lock()
	var run []*job
	for _, b := range j.list {
		if !b.over {
			run = append(run, b)
		}
	}
	j.mu.Unlock()
	for _, b := range run {
		b.stop(errStopped)
	}
	for _, b := range run {
		<-b.ended
	}
}

// Close kills all jobs and returns when they are dead. Nothing can be started afterwards.
func (j *Jobs) Close() {
	j.mu.Lock()
	j.closed = true
	for _, b := range j.list {
		b.stop(errStopped)
	}
	j.mu.Unlock()
	j.alive.Wait()
}

func (j *Jobs) find(id string) (*job, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var ids []string
	for _, b := range j.list {
		if b.id == id {
			return b, nil
		}
		ids = append(ids, b.id)
	}
	if len(ids) == 0 {
		return nil, errors.New("there are no background jobs")
	}
	return nil, fmt.Errorf("there is no background job %q; there are: %s", id, strings.Join(ids, ", "))
}

// state says how b does, in a line. Who is told that it is over needs no announcement.
func (j *Jobs) state(b *job) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !b.over {
		return fmt.Sprintf("%s: %s\nruns for %.0f s", b.id, firstLine(b.command), time.Since(b.began).Seconds())
	}
	b.told = true
	return b.result.outcome()
}

// outcome is a job's end in two lines.
func (r Job) outcome() string {
	text := fmt.Sprintf("%s: %s\nexit %d after %.1f s", r.ID, firstLine(r.Command), r.Exit, r.Took.Seconds())
	if r.Why != "" {
		text += " (" + r.Why + ")"
	}
	if r.Path != "" {
		text += "; the whole output is in " + r.Path
	}
	return text
}

type checkInput struct {
	ID string `json:"id,omitempty"`
}

func (t toolset) checkBackground() llm.Tool {
	return tool.Func("check_background", "See how your background jobs do, or the last lines of one.",
		func(_ context.Context, in checkInput) (string, error) {
			if in.ID != "" {
				j, err := t.jobs.find(in.ID)
				if err != nil {
					return "", err
				}
				return join(t.jobs.state(j), j.out.Last(askLines)), nil
			}
			t.jobs.mu.Lock()
			list := append([]*job(nil), t.jobs.list...)
			t.jobs.mu.Unlock()
			if len(list) == 0 {
				return "There are no background jobs.", nil
			}
			var out []string
			for _, j := range list {
				out = append(out, t.jobs.state(j))
			}
			return strings.Join(out, "\n"), nil
		}, tool.ReadOnly(), tool.Polls())
}

type stopInput struct {
	ID string `json:"id"`
}

func (t toolset) stopBackground() llm.Tool {
	return tool.Func("stop_background", "Kill a background job and all it started.",
		func(ctx context.Context, in stopInput) (string, error) {
			j, err := t.jobs.find(in.ID)
			if err != nil {
				return "", err
			}
			j.stop(errStopped)
			select {
			case <-j.ended:
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
			return join(t.jobs.state(j), j.out.Last(jobLines)), nil
		})
}
