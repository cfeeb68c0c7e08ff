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

// crew is the worker processes of a scenario: each is started again whenever it was killed, until it has done its job.
type crew struct {
	a     *arena
	hands []*hand
	ended chan *hand
	chaos chaos
	lates int // stops under way
	woken chan wakeup
	held  string // how the workers wait for the chaos: what the file says that they look at, "" when there is none
	// counted while it runs
	points, outside, stops int
	struck                 int // kills from outside whose end was not seen yet
}

// chaos is what is done to a crew.
type chaos struct {
	kills int // half of them from outside at any moment, half at named points
	stops int
	// together is how many may be stopped at the same time; 0 is one.
	together int
	// passes is about how many points the whole crew passes: with it the kills at points are spread over the session.
	passes int
	// total is how many operations there are, and step reports whether a line of a ledger is one.
	total int
	step  func(entry) bool
	// arm says what a worker's next life is armed with; "" are kills at random points.
	arm func(h *hand) string
	// stopped is called while a worker is stopped, before it is continued. A stop that had nothing to take away, it says,
	// does not count.
	stopped func(ctx context.Context, h *hand) bool
	// tick is called now and then, with the progress from 0 to 1.
	tick func(ctx context.Context, progress float64)
}

// hand is one worker.
type hand struct {
	job     Job
	cmd     *exec.Cmd
	lives   int
	started time.Time
	reborn  bool // after a kill, and not ready yet
	armed   string
	alive   bool
	struck  bool // killed from outside
	halted  bool
	done    bool
}

// wakeup is a worker that was continued, and whether its stop counts.
type wakeup struct {
	h      *hand
	counts bool
}

// patience is how long nothing may go on before the crew counts as stuck.
const patience = 60 * time.Second

// early is how much earlier the kills and stops come than the progress asks for: the last are over while there is work.
const early = 1.25

// due is how many of so many kills or stops there should be by now: one more than has its share of the progress.
func due(all int, progress float64) int { return min(int(float64(all)*progress*early)+1, all) }

// run lets the workers do their jobs under the chaos. Its error is of the torture itself, Unavailable when fewer were
// killed or stopped than should be; what the crew did wrong is in the row.
func (a *arena) run(ctx context.Context, jobs []Job, x chaos) error {
	c := &crew{a: a, ended: make(chan *hand, len(jobs)), woken: make(chan wakeup, len(jobs)), chaos: x}
	for _, j := range jobs {
		j.Dir, j.Mutant = a.root(), a.Mutant
		c.hands = append(c.hands, &hand{job: j})
	}
	err := c.hold(x.kills+x.stops > 0, 0)
	for i := 0; i < len(c.hands) && err == nil; i++ {
		err = c.start(c.hands[i])
	}
	if err == nil {
		err = c.conduct(ctx)
	}
	c.endAll()
	a.row.Kills += c.points + c.outside
	a.row.AtPoints += c.points
	a.row.Stops += c.stops
	if err == nil && !a.row.Bad() {
		err = c.fellShort()
	}
	return err
}

// fellShort is the error of a crew that did its work with fewer kills or stops than it was to have.
func (c *crew) fellShort() error {
	kills := c.points + c.outside
	if kills >= c.chaos.kills && c.stops >= c.chaos.stops {
		return nil
	}
	return muster.Errorf(muster.Unavailable, "only %d of %d kills and %d of %d stops came about before the work was done, so nothing is proven",
		kills, c.chaos.kills, c.stops, c.chaos.stops).WithHint("try again when the machine has less to do")
}

// conduct goes on until every worker has ended well, nothing has moved for long, or one has failed.
func (c *crew) conduct(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	left, steps, moved := len(c.hands), 0, time.Now()
	for left > 0 {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case w := <-c.woken:
			w.h.halted = false
			c.lates--
			if w.counts {
				c.stops++
			}
		case h := <-c.ended:
			again, err := c.over(h)
			if err != nil || len(c.a.row.Violations) > 0 {
				return err
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
		if err := c.hold(c.strike(ctx, progress), progress); err != nil {
			return err
		}
		c.atPoints(ctx)
		if time.Since(moved) > patience {
			c.a.fail(&c.a.row.Stuck, "nothing has moved for %s; %d of %d workers have not ended", patience, left, len(c.hands))
			return nil
		}
	}
	return c.a.ledgers.read(func(e entry) { c.ready(e) })
}

// start starts a worker's next life.
func (c *crew) start(h *hand) error {
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
		h.armed = fmt.Sprintf("random:%d:%g", c.a.dice.Uint32(), float64(x.kills)/2/float64(x.passes))
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
	h.started, h.reborn, h.struck = time.Now(), h.lives > 1, false
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

func (c *crew) noteOf(h *hand) string {
	return c.a.at(fmt.Sprintf("tmp/%s-%d.point", h.job.Name, h.lives))
}

// over looks how a life ended: again is whether there is to be another.
func (c *crew) over(h *hand) (again bool, err error) {
	h.alive = false
	if h.struck {
		c.struck-- // from now on it is counted by how it ended
	}
	switch state := h.cmd.ProcessState; {
	case state.Success():
		h.done = true
		return false, nil
	case killed(state):
		if note, err := os.ReadFile(c.noteOf(h)); err == nil && len(note) > 0 {
			names := strings.Fields(string(note)) // it may have stopped at one before
			c.a.row.Points[names[len(names)-1]]++
			c.points++
		} else {
			c.outside++
		}
		return true, nil
	default:
		said, _ := os.ReadFile(c.a.at(filepath.Join("out", h.job.Name)))
		c.a.fail(nil, "the worker %s ended with %s: %s", h.job.Name, state, strings.TrimSpace(string(said[max(0, len(said)-2000):])))
		return false, nil
	}
}

// ready takes the time of a recovery.
func (c *crew) ready(e entry) {
	if e.words[0] != "ready" {
		return
	}
	for _, h := range c.hands {
		if h.job.Name == e.who && h.reborn && strconv.Itoa(h.lives) == e.words[1] {
			h.reborn = false
			if at, err := strconv.ParseInt(e.words[2], 10, 64); err == nil {
				c.a.times = append(c.a.times, time.UnixMicro(at).Sub(h.started))
			}
		}
	}
}

// strike kills and stops as many as the progress asks for, and reports whether it is behind. What random points have not
// killed is killed from outside.
func (c *crew) strike(ctx context.Context, progress float64) (behind bool) {
	kills := due(c.chaos.kills, progress) - c.points - c.outside - c.struck
	stops := due(c.chaos.stops, progress) - c.stops
	fits := func(h *hand) bool { return h.alive && !h.halted }
	if kills > 0 {
		if h := c.any(fits); h != nil && h.cmd.Process.Kill() == nil {
			h.alive, h.struck = false, true // its end comes by the channel, and counts it
			c.struck++
		}
	}
	if c.lates < min(stops, max(c.chaos.together, 1)) {
		if h := c.any(fits); h != nil && halt(h.cmd.Process) == nil {
			c.late(ctx, h)
		}
	}
	return kills > 0 || stops > 0
}

// hold lets the workers wait, or go on: a machine that kills slowly must not be outrun by the work. Near the end they wait
// longer.
func (c *crew) hold(behind bool, progress float64) error {
	how := ""
	if behind {
		how = waiting
		if progress > 1/early {
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

// longest is how long a worker is stopped at most.
const longest = time.Second

// late lets the world go on without a stopped worker, then continues it.
func (c *crew) late(ctx context.Context, h *hand) {
	h.halted = true
	c.lates++
	p := h.cmd.Process
	go func() {
		done := make(chan bool, 1)
		go func() { done <- c.chaos.stopped(ctx, h) }()
		w := wakeup{h: h}
		select {
		case w.counts = <-done:
			_ = wake(p)
		case <-time.After(longest): // it has a lock, and everybody waits for it
			_ = wake(p)
			w.counts = <-done
		}
		time.Sleep(50 * time.Millisecond) // it notes a point before it stops there, and may have been woken too early
		_ = wake(p)
		c.woken <- w
	}()
}

// atPoints finds the workers that have stopped themselves at a point.
func (c *crew) atPoints(ctx context.Context) {
	for _, h := range c.hands {
		if !h.alive || h.halted || !strings.HasPrefix(h.armed, "stop:") {
			continue
		}
		if _, err := os.Stat(c.noteOf(h)); err == nil {
			h.armed = ""
			c.late(ctx, h)
		}
	}
}

func (c *crew) any(fits func(*hand) bool) *hand {
	var some []*hand
	for _, h := range c.hands {
		if fits(h) {
			some = append(some, h)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return some[c.a.dice.IntN(len(some))]
}

// endAll kills who is left, and waits for their ends.
func (c *crew) endAll() {
	for _, h := range c.hands {
		if !h.done && h.cmd != nil && h.cmd.Process != nil {
			_ = h.cmd.Process.Kill()
		}
	}
	for c.lates > 0 {
		if w := <-c.woken; w.counts {
			c.stops++
		}
		c.lates--
	}
}
