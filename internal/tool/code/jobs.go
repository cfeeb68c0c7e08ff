package code

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"muster"
	"muster/internal/proc"
	"muster/internal/text"
)

// The limits of a member's background jobs.
const (
	maxRunningJobs  = 8        // at a time
	maxFinishedJobs = 64       // that can still be asked about after they were reported
	announcedLines  = 20       // of a job's output in an announcement, and in the result of stop_background
	checkedLines    = 50       // of a job's output in the result of check_background
	maxAnnounced    = 64 << 10 // bytes of one announcement; the outputs of further jobs are left out of it
)

// errStopped is the cause when a job was stopped on request.
var errStopped = errors.New("stopped")

// Job is a background command that has ended, as the member is told of it. It is a copy: the job that it
// was made of may be forgotten.
type Job struct {
	ID      string // bg-1, bg-2, ...
	Command string
	Exit    int
	Why     string // why it was ended; "" if it ended by itself
	Took    time.Duration
	Last    string // the last lines of its output
	Path    string // the file with the whole output; "" if the output is short
}

// outcome says in two lines how a job has ended. The output follows it.
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

// Jobs are the background commands of one member. They outlive the calls and the turns that started them,
// and end with the member. Each end is reported once: by Finished, or by a tool that asks about the job. It
// is safe for concurrent use.
type Jobs struct {
	launcher proc.Launcher
	wake     chan struct{}

	mu     sync.Mutex
	list   []*job
	last   int // the number of the last job
	closed bool
}

// job is one background command. The fields below ended are guarded by Jobs.mu.
type job struct {
	began time.Time
	out   *Output
	stop  context.CancelCauseFunc
	ended chan struct{} // closed when isOver is set and Job is complete

	Job        // without how it has ended until isOver
	isOver     bool
	isReported bool // the member knows that it is over
}

// isRunning reports whether the command has not ended yet. The caller holds mu.
func (b *job) isRunning() bool { return !b.isOver }

// isUnreported reports whether the member does not know yet that the job is over.
func (b *job) isUnreported() bool { return b.isOver && !b.isReported }

// NewJobs returns an empty set of jobs.
func NewJobs(l proc.Launcher) *Jobs { return &Jobs{launcher: l, wake: make(chan struct{}, 1)} }

// Start starts a command in the background for at most limit, and returns its id. The command does not end
// with ctx, of which only the values are used; but it does not start if ctx is over. The error is Held if
// too many jobs run already, Unavailable after Close, and else the launcher's.
func (j *Jobs) Start(
	ctx context.Context, command string, s proc.Spec, limit time.Duration, out *Output,
) (id string, err error) {
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	// The limit and Close both depend on what runs. The mutex is held until the job is in the list:
	// otherwise Close could run between the check and the start, and the job would outlive its member.
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return "", muster.Errorf(muster.Unavailable, "the member has ended: nothing can be started in the background")
	}
	if n := len(j.matching((*job).isRunning)); n >= maxRunningJobs {
		return "", muster.Errorf(muster.Held, "%d of your background jobs run already: "+
			"wait for one, or stop one (check_background)", n)
	}
	// Of the two causes with which the command can be killed, the first one wins: it is what Wait returns.
	running, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	s.Out = out
	p, err := j.launcher.Start(running, s)
	if err != nil {
		stop(nil)
		return "", err
	}
	// From here on the command runs, and the goroutine below records its end whatever happens.
	timer := time.AfterFunc(limit, func() { stop(errTimeout) })
	j.last++
	b := &job{Job: Job{ID: fmt.Sprintf("bg-%d", j.last), Command: command}, began: time.Now(), out: out, stop: stop,
		ended: make(chan struct{})}
	j.list = append(j.list, b)
	j.dropOldest()
	go func() {
		exit, err := p.Wait()
		timer.Stop()
		stop(nil)
		j.end(b, exit, err, limit)
	}()
	return b.ID, nil
}

// end records how a job has ended and wakes the member.
func (j *Jobs) end(b *job, exit int, err error, limit time.Duration) {
	b.out.Done()
	j.mu.Lock()
	defer j.mu.Unlock()
	b.Exit, b.Took, b.Last, b.Path, b.isOver = exit, time.Since(b.began), b.out.Last(announcedLines), b.out.Path(), true
	switch {
	case errors.Is(err, errTimeout):
		b.Why = fmt.Sprintf("killed after %v: its time was up", limit)
	case errors.Is(err, ErrTooMuchOutput):
		b.Why = fmt.Sprintf("killed: %v", ErrTooMuchOutput)
	case err != nil:
		b.Why = err.Error()
	}
	// The wake goes first: who waits for ended may count on nothing being left to do for the job.
	select {
	case j.wake <- struct{}{}:
	default: // a wake is pending already
	}
	close(b.ended)
}

// dropOldest forgets the oldest reported jobs when there are too many. The caller holds mu.
func (j *Jobs) dropOldest() {
	isReported := func(b *job) bool { return b.isReported }
	for len(j.matching(isReported)) > maxFinishedJobs {
		i := slices.IndexFunc(j.list, isReported)
		j.list = slices.Delete(j.list, i, i+1)
	}
}

// matching returns the jobs that is reports true for. The caller holds mu.
func (j *Jobs) matching(is func(*job) bool) (found []*job) {
	for _, b := range j.list {
		if is(b) {
			found = append(found, b)
		}
	}
	return found
}

// Running returns how many jobs run.
func (j *Jobs) Running() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.matching((*job).isRunning))
}

// Unannounced returns how many jobs have ended without a report yet.
func (j *Jobs) Unannounced() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.matching((*job).isUnreported))
}

// Finished returns the jobs that have ended without a report yet. Each job is returned once.
func (j *Jobs) Finished() (done []Job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, b := range j.matching((*job).isUnreported) {
		b.isReported = true
		done = append(done, b.Job)
	}
	return done
}

// Wake returns a channel that receives when a job has ended. One wake may stand for several jobs.
func (j *Jobs) Wake() <-chan struct{} { return j.wake }

// Stop kills the jobs that run now and returns when they are dead. Others may be started afterwards.
func (j *Jobs) Stop() {
	j.mu.Lock()
	running := j.matching((*job).isRunning)
	j.mu.Unlock()
	// All are killed before the first is waited for, so that Stop takes only as long as the slowest of
	// them. The mutex is free meanwhile, because the end of each job needs it.
	for _, b := range running {
		b.stop(errStopped)
	}
	for _, b := range running {
		<-b.ended
	}
}

// Close kills all jobs and returns when they are dead. Nothing can be started afterwards.
func (j *Jobs) Close() {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	j.Stop()
}

// find returns the job with the id. The error is for the model.
func (j *Jobs) find(id string) (*job, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var ids []string
	for _, b := range j.list {
		if b.ID == id {
			return b, nil
		}
		ids = append(ids, b.ID)
	}
	if len(ids) == 0 {
		return nil, errors.New("there are no background jobs")
	}
	return nil, fmt.Errorf("there is no background job %q; there are: %s", id, strings.Join(ids, ", "))
}

// all returns every job that can be asked about, the oldest first.
func (j *Jobs) all() []*job {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.list)
}

// report says how a job does. If it is over, its end counts as reported: no announcement follows.
func (j *Jobs) report(b *job) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !b.isOver {
		return fmt.Sprintf("%s: %s\nruns for %.0f s", b.ID, firstLine(b.Command), time.Since(b.began).Seconds())
	}
	b.isReported = true
	return b.outcome()
}

// checkInput is the input of check_background. An empty ID means all jobs. A call with Stop is one of stop_background:
// the caller of the tools sees to that, so that rules for either hold.
type checkInput struct {
	ID   string `json:"id,omitempty"`
	Stop bool   `json:"stop,omitempty"`
}

// checkBackground reports on one job, with the end of its output, or on all of them.
func (t toolset) checkBackground(_ context.Context, in checkInput) (string, error) {
	if in.ID != "" {
		b, err := t.jobs.find(in.ID)
		if err != nil {
			return "", err
		}
		// A running job is asked for its output, too: it may have printed what the model waits for.
		return joinLines(t.jobs.report(b), b.out.Last(checkedLines)), nil
	}
	text := ""
	for _, b := range t.jobs.all() {
		text = joinLines(text, t.jobs.report(b))
	}
	return cmp.Or(text, "There are no background jobs."), nil
}

// stopInput is the input of stop_background.
type stopInput struct {
	ID string `json:"id"`
}

// stopBackground kills a job and returns when it is dead, or when the call is cancelled.
func (t toolset) stopBackground(ctx context.Context, in stopInput) (string, error) {
	b, err := t.jobs.find(in.ID)
	if err != nil {
		return "", err
	}
	// A job that is over already is not changed by this, and its ended is closed.
	b.stop(errStopped)
	select {
	case <-b.ended:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	return joinLines(t.jobs.report(b), b.out.Last(announcedLines)), nil
}

// Render returns the announcement of jobs that have ended, which the member reads at the next boundary.
// What the jobs have printed is escaped, so that it cannot close the announcement and pass for something
// else.
func Render(done []Job) string {
	announcement := "<background-results>\n"
	for _, job := range done {
		news := job.outcome()
		if job.Last != "" {
			news += "\n  " + strings.ReplaceAll(job.Last, "\n", "\n  ")
		}
		news = text.EscapeTags(news) + "\n"
		if len(announcement)+len(news) > maxAnnounced {
			news = text.EscapeTags(job.outcome()) + "\n" // check_background has the rest
		}
		announcement += news
	}
	return announcement + "</background-results>"
}
