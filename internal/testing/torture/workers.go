package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster"
	"muster/internal/testing/faultinject"
)

// workers are the worker processes of a scenario. Each is started again after it was killed, until it has done its job.
type workers struct {
	a             *env
	list          []*worker
	ended         chan *worker
	chaos         chaos
	stopsUnderWay int
	woken         chan wakeup
	held          string // the content of the file that makes the workers wait, "" if there is no file
	// counted while it runs
	points, outside, stops int
	killsUnderWay          int // kills from outside whose process has not been seen to end
}

// chaos is what is done to the workers of a scenario.
type chaos struct {
	kills int // half of them from outside at any moment, half at named points
	stops int
	// together is how many may be stopped at the same time; 0 is one.
	together int
	// passes is about how many points all workers pass together. The kills at points are spread over so many.
	passes int
	// total is how many operations there are, and step reports whether a line of a ledger is one.
	total int
	step  func(entry) bool
	// arm returns what the next process of a worker is armed with; "" means kills at random points.
	arm func(h *worker) string
	// stopped is called while the process of a worker is stopped, before it is continued. It reports whether the stop
	// counts: a worker that owns nothing loses nothing while it is stopped. The worker may have another process soon.
	stopped func(ctx context.Context, h *worker, pid int) bool
	// tick is called repeatedly with the progress, from 0 to 1.
	tick func(ctx context.Context, progress float64)
}

// worker is one worker, which may be several processes one after the other.
type worker struct {
	job       Job
	cmd       *exec.Cmd
	lives     int
	started   time.Time
	restarted bool // after a kill, and not ready yet
	armed     string
	alive     bool
	struck    bool // killed from outside; the process has not been seen to end
	isStopped bool
	done      bool
}

// wakeup says that a worker was continued, and whether its stop counts.
type wakeup struct {
	h      *worker
	counts bool
}

// stuckAfter is how long nothing may happen before the workers count as stuck.
const stuckAfter = 60 * time.Second

// leadFactor makes kills and stops come earlier than the progress asks for, so that the last of them happen during
// work.
const leadFactor = 1.25

// due returns how many of all kills or stops there should be at this progress, from 0 to 1.
func due(all int, progress float64) int { return min(int(float64(all)*progress*leadFactor)+1, all) }

// run starts a worker for each job, and kills and stops them until all jobs are done. Violations are in the row. An
// error means that the scenario itself failed; it is Unavailable if fewer workers were killed or stopped than
// should be.
func (a *env) run(ctx context.Context, jobs []Job, x chaos) error {
	c := &workers{a: a, ended: make(chan *worker, len(jobs)), woken: make(chan wakeup, len(jobs)), chaos: x}
	for _, j := range jobs {
		j.Dir, j.Mutant = a.root(), a.Mutant
		c.list = append(c.list, &worker{job: j})
	}
	err := c.hold(x.kills+x.stops > 0, 0)
	for i := 0; i < len(c.list) && err == nil; i++ {
		err = c.start(c.list[i])
	}
	if err == nil {
		err = c.supervise(ctx)
	}
	c.killAll()
	a.row.Kills += c.points + c.outside
	a.row.AtPoints += c.points
	a.row.Stops += c.stops
	if err == nil && !a.row.Bad() {
		err = c.checkAmounts()
	}
	return err
}

// checkAmounts returns an error if the work was done with fewer kills or stops than the scenario wants. Such a session
// proves nothing.
func (c *workers) checkAmounts() error {
	kills := c.points + c.outside
	if kills >= c.chaos.kills && c.stops >= c.chaos.stops {
		return nil
	}
	return muster.Errorf(muster.Unavailable,
		"only %d of %d kills and %d of %d stops came about before the work was done, so nothing is proven",
		kills, c.chaos.kills, c.stops, c.chaos.stops).WithHint("try again when the machine has less to do")
}

// supervise runs until every worker has ended well, one has failed, or nothing has happened for stuckAfter.
func (c *workers) supervise(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	left, steps, moved := len(c.list), 0, time.Now()
	for left > 0 {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case w := <-c.woken:
			w.h.isStopped = false
			c.stopsUnderWay--
			if w.counts {
				c.stops++
			}
		case h := <-c.ended:
			again := c.over(h)
			if len(c.a.row.Violations) > 0 {
				return nil
			}
			if again {
				if err := c.start(h); err != nil {
					return err
				}
			} else {
				left--
			}
			moved = time.Now()
		case <-tick.C:
		}
		err := c.a.ledgers.read(func(e entry) {
			moved = time.Now()
			c.ready(e)
			if c.chaos.step(e) {
				steps++
			}
		})
		if err != nil {
			return err
		}
		progress := min(float64(steps)/float64(max(c.chaos.total, 1)), 1)
		if c.chaos.tick != nil {
			c.chaos.tick(ctx, progress)
		}
		if err := c.hold(c.killAndStop(ctx, progress), progress); err != nil {
			return err
		}
		c.atPoints(ctx)
		if time.Since(moved) > stuckAfter {
			c.a.fail(&c.a.row.Stuck, "nothing has moved for %s; %d of %d workers have not ended", stuckAfter, left,
				len(c.list))
			return nil
		}
	}
	return c.a.ledgers.read(func(e entry) { c.ready(e) })
}

// start starts the next process of a worker.
func (c *workers) start(h *worker) error {
	h.lives++
	h.job.Life = h.lives
	text, err := json.Marshal(h.job)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(c.a.at(filepath.Join("out", h.job.Name)), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	h.armed = ""
	if c.chaos.arm != nil {
		h.armed = c.chaos.arm(h)
	}
	switch x := c.chaos; {
	case h.armed == "" && x.kills > 0 && x.passes > 0 && c.points < (x.kills+1)/2:
		h.armed = fmt.Sprintf("random:%d:%g", c.a.rng.Uint32(), float64(x.kills)/2/float64(x.passes))
	}
	h.cmd = exec.Command(c.a.Worker[0], append(slices.Clone(c.a.Worker[1:]), string(text))...)
	h.cmd.Dir, h.cmd.Stdout, h.cmd.Stderr = c.a.root(), out, out
	h.cmd.Env = append(c.a.Env[:len(c.a.Env):len(c.a.Env)], "TMPDIR="+c.a.at("tmp"))
	if list := c.a.List; list != "" && h.armed == "" {
		h.armed = "list:" + list
	} else if list != "" {
		h.armed += ";list:" + list
	}
	if h.armed != "" {
		h.cmd.Env = append(h.cmd.Env, faultinject.Variable+"="+h.armed, faultinject.NoteVariable+"="+c.noteOf(h))
	}
	h.started, h.restarted, h.struck = time.Now(), h.lives > 1, false
	if err := h.cmd.Start(); err != nil {
		return err
	}
	h.alive = true
	go func(cmd *exec.Cmd) {
		_ = cmd.Wait()
		c.ended <- h
	}(h.cmd)
	return nil
}

func (c *workers) noteOf(h *worker) string {
	return c.a.at(fmt.Sprintf("tmp/%s-%d.point", h.job.Name, h.lives))
}

// over records how a life ended, and reports whether there is to be another.
func (c *workers) over(h *worker) (again bool) {
	h.alive = false
	if h.struck {
		c.killsUnderWay-- // from now on it is counted by how it ended
	}
	switch state := h.cmd.ProcessState; {
	case state.Success():
		h.done = true
		return false
	case killed(state):
		if note, err := os.ReadFile(c.noteOf(h)); err == nil && len(note) > 0 {
			names := strings.Fields(string(note)) // it may have stopped at one before
			c.a.row.Points[names[len(names)-1]]++
			c.points++
		} else {
			c.outside++
		}
		return true
	default:
		said, _ := os.ReadFile(c.a.at(filepath.Join("out", h.job.Name)))
		c.a.fail(nil, "the worker %s ended with %s: %s", h.job.Name, state,
			strings.TrimSpace(string(said[max(0, len(said)-2000):])))
		return false
	}
}

// ready measures a recovery: the time from the start of a process until it says that it is ready.
func (c *workers) ready(e entry) {
	if e.words[0] != "ready" {
		return
	}
	for _, h := range c.list {
		if h.job.Name == e.who && h.restarted && strconv.Itoa(h.lives) == e.words[1] {
			h.restarted = false
			if at, err := strconv.ParseInt(e.words[2], 10, 64); err == nil {
				c.a.times = append(c.a.times, time.UnixMicro(at).Sub(h.started))
			}
		}
	}
}

// killAndStop kills and stops as many workers as the progress asks for, and reports whether kills or stops are
// overdue. It kills from outside what random points have not killed.
func (c *workers) killAndStop(ctx context.Context, progress float64) (behind bool) {
	kills := due(c.chaos.kills, progress) - c.points - c.outside - c.killsUnderWay
	stops := due(c.chaos.stops, progress) - c.stops
	fits := func(h *worker) bool { return h.alive && !h.isStopped }
	if kills > 0 {
		if h := c.any(fits); h != nil && h.cmd.Process.Kill() == nil {
			h.alive, h.struck = false, true // its end comes by the channel, and counts it
			c.killsUnderWay++
		}
	}
	if c.stopsUnderWay < min(stops, max(c.chaos.together, 1)) {
		if h := c.any(fits); h != nil && halt(h.cmd.Process) == nil {
			c.stopAndContinue(ctx, h)
		}
	}
	return kills > 0 || stops > 0
}

// hold makes the workers wait while kills and stops are overdue, and longer near the end of the work. Without it a slow
// machine would finish the work before it has killed enough workers.
func (c *workers) hold(behind bool, progress float64) error {
	how := ""
	if behind {
		how = waiting
		if progress > 1/leadFactor {
			how = waitingLong
		}
	}
	if how == c.held {
		return nil
	}
	if c.held = how; how == "" {
		return os.Remove(c.a.at(holding))
	}
	return os.WriteFile(c.a.at(holding), []byte(how), 0o600)
}

// maxStop is how long a worker is stopped at most.
const maxStop = time.Second

// stopAndContinue calls chaos.stopped for a stopped worker and then continues the worker, in the background. The result
// arrives on c.woken.
func (c *workers) stopAndContinue(ctx context.Context, h *worker) {
	h.isStopped = true
	c.stopsUnderWay++
	p := h.cmd.Process
	go func() {
		done := make(chan bool, 1)
		go func() { done <- c.chaos.stopped(ctx, h, p.Pid) }()
		w := wakeup{h: h}
		select {
		case w.counts = <-done:
			_ = wake(p)
		case <-time.After(maxStop): // it may hold a lock that everybody waits for
			_ = wake(p)
			w.counts = <-done
		}
		time.Sleep(50 * time.Millisecond) // it notes a point before it stops there, and may have been woken too early
		_ = wake(p)
		c.woken <- w
	}()
}

// atPoints continues, later, the workers that have stopped themselves at a point.
func (c *workers) atPoints(ctx context.Context) {
	for _, h := range c.list {
		if !h.alive || h.isStopped || !strings.HasPrefix(h.armed, "stop:") {
			continue
		}
		if _, err := os.Stat(c.noteOf(h)); err == nil {
			h.armed = ""
			c.stopAndContinue(ctx, h)
		}
	}
}

// any returns a random worker that fits, nil if there is none.
func (c *workers) any(fits func(*worker) bool) *worker {
	var some []*worker
	for _, h := range c.list {
		if fits(h) {
			some = append(some, h)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return some[c.a.rng.IntN(len(some))]
}

// killAll kills the workers that are left, and waits for the stops under way.
func (c *workers) killAll() {
	for _, h := range c.list {
		if !h.done && h.cmd != nil && h.cmd.Process != nil {
			_ = h.cmd.Process.Kill()
		}
	}
	for c.stopsUnderWay > 0 {
		if w := <-c.woken; w.counts {
			c.stops++
		}
		c.stopsUnderWay--
	}
}
