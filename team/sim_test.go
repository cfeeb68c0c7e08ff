package team_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/proc"
	"muster/llm"
	"muster/store/mem"
	"muster/team"
)

var (
	simSeed  = flag.Uint64("sim.seed", 0, "run this seed of the simulation alone")
	simSeeds = flag.Int("sim.seeds", 0, "how many seeds the simulation runs")
	simFirst = flag.Uint64("sim.first", 1, "the first of them")
	simLog   = flag.Bool("sim.log", false, "print what happens in a simulation")
)

// A whole team, with a user and another program beside it, through faults that a seed decides: a store that fails, a
// model that does not answer or answers nonsense, processes that die, clocks that jump. Whatever happens, no promise is
// broken on the way, and once the faults have ended the team finishes its work.
//
// A seed decides what everybody does and what fails, not how goroutines are scheduled: where a failure needs a certain
// order of two things at one moment, a seed may have to run some times (-count=20) before it shows again.
func TestSimulation(t *testing.T) {
	if *simSeed == 0 && *simSeeds == 0 {
		t.Skip("NOT RUN HERE: go test ./team -run TestSimulation -sim.seeds=100. Some seeds in a hundred fail, not always the same: " +
			"goroutines are not scheduled by the seed, and it is not known yet whether the team or the judge is wrong.")
	}
	seeds := make(chan uint64)
	go func() {
		defer close(seeds)
		if *simSeed != 0 {
			seeds <- *simSeed
			return
		}
		n := *simSeeds
		if testing.Short() {
			n = min(n, 10)
		}
		for i := range n {
			seeds <- *simFirst + uint64(i)
		}
	}()
	template := newWorld(t).root
	var all, failed, lives, faults, kills atomic.Int64
	started := time.Now()
	t.Run("seeds", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				for seed := range seeds {
					all.Add(1)
					if !t.Run(fmt.Sprint(seed), func(t *testing.T) {
						s := simulate(t, seed, template)
						lives.Add(int64(s.lives))
						faults.Add(s.faults.Load())
						kills.Add(int64(s.kills))
					}) {
						failed.Add(1)
						t.Errorf("again: go test ./team -run 'TestSimulation' -sim.seed=%d", seed)
					}
				}
			})
		}
	})
	n := max(all.Load(), 1)
	t.Logf("%d seeds, %d failed, %.1f a second; a seed has %.1f processes, %.1f deaths, %.1f faults", all.Load(), failed.Load(),
		float64(n)/time.Since(started).Seconds(), float64(lives.Load())/float64(n), float64(kills.Load())/float64(n), float64(faults.Load())/float64(n))
}

// sim is one seed's team.
type sim struct {
	*testing.T
	seed uint64
	root string
	base *mem.Store
	o    other // on a handle without faults
	plan simPlan

	lives, kills int
	faults       atomic.Int64
	calm         atomic.Bool // no more faults
	still        atomic.Bool // nobody from outside acts any more

	mu       sync.Mutex
	acked    map[muster.Name]map[muster.MessageID]muster.MessageType // mails that were acknowledged to their senders
	requests map[string][]llm.Message                                // the last one of each conversation
	turns    map[string]int
	fresh    map[muster.Name]simFresh
	watched  simWatched
	wrong    []string
	lines    []string
}

// simPlan is what the lead is to make.
type simPlan struct {
	tasks   []simTask
	members []simMember
}

type simTask struct {
	subject, role string
	on            []any
	plan, change  bool
	priority      int
}

type simMember struct {
	name muster.Name
	role string
	plan bool
}

// dice is a stream of random numbers of its own for each purpose: what one does takes nothing from another's.
func (s *sim) dice(purpose string, n int) *rand.Rand {
	h := uint64(14695981039346656037)
	for _, b := range []byte(purpose) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return rand.New(rand.NewPCG(s.seed, h+uint64(n)*0x9e3779b97f4a7c15))
}

func (s *sim) makePlan() {
	r := s.dice("plan", 0)
	roles := []string{"coder", "tester"}
	for i := range 1 + r.IntN(4) {
		s.plan.members = append(s.plan.members, simMember{name: muster.Name(fmt.Sprintf("m%d", i+1)), role: roles[(i+r.IntN(2))%2], plan: r.IntN(8) == 0})
	}
	for i := range 3 + r.IntN(10) {
		k := simTask{subject: fmt.Sprintf("task-%d", i+1), plan: r.IntN(6) == 0, change: r.IntN(4) == 0, priority: r.IntN(3)}
		if r.IntN(3) == 0 {
			k.role = s.plan.members[r.IntN(len(s.plan.members))].role
		}
		for d := range i {
			if r.IntN(4) == 0 && len(k.on) < 3 {
				k.on = append(k.on, fmt.Sprintf("task-%d", d+1))
			}
		}
		s.plan.tasks = append(s.plan.tasks, k)
	}
}

// The bounds of a simulation.
const (
	simWords = 300           // turns after which nothing fails any more
	simLives = 6             // processes after which nothing fails any more
	simMost  = simLives + 4  // processes in all
	simLong  = 2 * time.Hour // of a process, on its own clock
)

func simulate(t *testing.T, seed uint64, template string) *sim {
	s := &sim{T: t, seed: seed, root: t.TempDir(), acked: map[muster.Name]map[muster.MessageID]muster.MessageType{},
		requests: map[string][]llm.Message{}, turns: map[string]int{}, fresh: map[muster.Name]simFresh{}}
	s.root = filepath.Join(s.root, "r")
	if err := os.CopyFS(s.root, os.DirFS(template)); err != nil {
		t.Fatal(err)
	}
	s.makePlan()
	synctest.Test(t, func(t *testing.T) {
		s.T = t
		s.base = mem.New()
		s.o = elsewhere(s.base.Handle())
		s.all()
		s.judge()
	})
	if len(s.wrong) > 0 {
		lines := s.lines
		if !*simLog {
			lines = lines[max(0, len(lines)-25):]
		}
		t.Errorf("seed %d: %s\n%s", seed, strings.Join(s.wrong, "\n"), strings.Join(lines, "\n"))
	}
	return s
}

// say notes what happened.
func (s *sim) say(f string, a ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := time.Now().Format("02 15:04:05.000 ") + fmt.Sprintf(f, a...)
	s.lines = append(s.lines, line[:min(len(line), 260)])
}

// broken notes a promise that did not hold.
func (s *sim) broken(f string, a ...any) {
	s.say("BROKEN: "+f, a...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.wrong) < 10 {
		s.wrong = append(s.wrong, fmt.Sprintf(f, a...))
	}
}

// errKilled is the end of a process that nobody asked.
var errKilled = errors.New("killed")

// all runs one process after the other until the team has ended.
func (s *sim) all() {
	watch, stop := context.WithCancel(s.Context())
	var outside sync.WaitGroup
	defer outside.Wait()
	defer stop()
	outside.Go(func() { s.watch(watch) })
	outside.Go(func() { s.user(watch) })
	for s.lives = 0; s.lives < simMost; s.lives++ {
		if s.lives >= simLives {
			s.calm.Store(true)
			s.still.Store(true)
			s.tidyUp()
		}
		if s.process(s.lives) || len(s.wrong) > 0 {
			return
		}
		time.Sleep(time.Duration(s.dice("gap", s.lives).IntN(100)) * time.Second)
	}
	s.broken("after %d processes, the last %d without any fault, the team has not ended", simMost, simMost-simLives)
}

// process is one process's life; over says that the team has ended for good.
func (s *sim) process(n int) (over bool) {
	r := s.dice("process", n)
	shaky := newShaky(s, n)
	c := team.Config{Dir: s.root, Store: shaky, Name: "demo", Teammates: 5,
		Model: func(string) (llm.Model, error) { return simModel{s}, nil }}
	if r.IntN(4) == 0 {
		c.Limits.Turns = 5 + r.IntN(10)
	}
	if r.IntN(5) == 0 {
		c.Limits.IdleTimeout = -1
	}
	ctx, end := context.WithCancelCause(context.WithoutCancel(s.Context()))
	defer end(nil)
	t, err := team.Open(ctx, c)
	if err != nil {
		s.broken("open: %v", err)
		return true
	}
	t.Launch(func(context.Context) (proc.Launcher, error) { return &shell{}, nil })
	limit := time.AfterFunc(simLong, func() {
		s.broken("process %d goes on after %v", n, simLong)
		shaky.die()
		end(errKilled)
	})
	defer limit.Stop()
	if !s.calm.Load() && r.IntN(3) > 0 {
		kill := time.AfterFunc(time.Duration(r.Int64N(int64(4*time.Minute))), func() {
			if r.IntN(4) == 0 {
				s.say("process %d: Ctrl-C", n)
				end(muster.CauseUser)
				return
			}
			s.say("process %d is killed", n)
			s.kills++
			shaky.die()
			end(errKilled)
		})
		defer kill.Stop()
	}
	var sum team.Summary
	run, err2 := s.run()
	switch {
	case err2 != nil:
		s.broken("the run's record: %v", err2)
		return true
	case run.StartedAt == 0:
		sum, err = t.Run(ctx, "the goal", team.Start{})
	default:
		sum, err = t.Resume(ctx)
	}
	s.say("process %d ends: code %d, %q, %v", n, sum.Code, sum.Text, err)
	shaky.die() // its handle is closed
	if errors.Is(err, muster.ErrNotFound) && run.StartedAt != 0 && run.EndedAt != 0 {
		return true // it had ended, and nothing is open
	}
	if err != nil {
		if s.calm.Load() && !errors.Is(err, errKilled) {
			s.broken("process %d, without any fault, failed: %v", n, err)
		}
		return false
	}
	s.fits(sum)
	return sum.Code == 0 || s.calm.Load() && n == simMost-1
}

func (s *sim) run() (run muster.Run, err error) {
	doc, err := s.o.store.Table(muster.TableTeam).Get(s.Context(), "run")
	if errors.Is(err, muster.ErrNotFound) {
		return run, nil
	}
	if err == nil {
		err = jsonInto(doc.Data, &run)
	}
	return run, err
}
