package team_test

import (
	"cmp"
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
	"muster/internal/testing/tier"
	"muster/llm"
	"muster/store/mem"
	"muster/team"
)

var (
	simSeed  = flag.Uint64("sim.seed", 0, "run this seed of the simulation alone")
	simSeeds = flag.Int("sim.seeds", 0, "how many seeds the simulation runs (default 1,000 in all tests, of which 20 on git, else a few)")
	simFirst = flag.Uint64("sim.first", 1, "the first of them")
	simGit   = flag.Bool("sim.git", false, "work on a git repository alone, which is thirty times as slow")
	simLog   = flag.Bool("sim.log", false, "print what happens in a simulation")
)

// A whole team, with a user and another program beside it and now and then a second process that has joined, through faults
// that a seed decides: a store that fails, a model that does not answer or answers nonsense, processes that die, clocks that
// jump. Whatever happens, no promise is broken on the way, and once the faults have ended the team finishes its work.
//
// A seed decides what everybody does and what fails, not how goroutines are scheduled: where a failure needs a certain
// order of two things at one moment, a seed may have to run some times (-count=20) before it shows again.
func TestSimulation(t *testing.T) {
	t.Parallel()
	var lives, faults, kills, joined atomic.Int64
	run := func(t *testing.T, template string, first uint64, seeds int) {
		playSeeds(t, *simSeed, first, seeds, func(t *testing.T, seed uint64) {
			s := simulate(t, seed, template, sound)
			lives.Add(int64(s.lives))
			faults.Add(s.faults.Load())
			kills.Add(s.kills.Load())
			joined.Add(s.joined.Load())
			if len(s.wrong) > 0 {
				s.report(t)
			}
		})
	}
	if !*simGit {
		run(t, "", *simFirst, cmp.Or(*simSeeds, tier.Amount(6, 1000)))
	}
	if onGit := tier.Amount(0, 20); *simGit || onGit > 0 && *simSeeds == 0 && *simSeed == 0 {
		first := *simFirst
		if !*simGit {
			first = 2000
		}
		run(t, newRepo(t), first, cmp.Or(*simSeeds, onGit))
	}
	t.Logf("%d processes, %d that joined, %d deaths, %d faults", lives.Load(), joined.Load(), kills.Load(), faults.Load())
}

func playSeeds(t *testing.T, one, first uint64, n int, play func(t *testing.T, seed uint64)) {
	if one != 0 {
		first, n = one, 1
	}
	var next atomic.Uint64
	t.Run("seeds", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				for {
					i := next.Add(1) - 1
					if i >= uint64(n) {
						return
					}
					play(t, first+i)
				}
			})
		}
	})
}

// defect is what is wrong with the store of a simulation that must fail.
type defect string

const (
	sound defect = ""
	blind defect = "a put overwrites what others have written since"
	leaky defect = "one mail in forty is acknowledged and not kept"
)

// The simulation proves nothing unless it notices what it is there to notice.
func TestSimulationNotices(t *testing.T) {
	for _, d := range []defect{blind, leaky} {
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(200) {
				if s := simulate(t, seed+1, "", d); len(s.wrong) > 0 {
					t.Logf("seed %d: %s", seed+1, s.wrong[0])
					return
				}
			}
			t.Error("200 seeds did not notice it")
		})
	}
}

// sim is one seed's team.
type sim struct {
	*testing.T
	seed   uint64
	root   string
	base   *mem.Store
	o      other // on a handle without faults
	plan   simPlan
	with   defect
	meadow *meadow // nil: the ground is a git repository

	lives         int
	kills, joined atomic.Int64
	faults        atomic.Int64
	widowed       atomic.Bool // a process that had joined was killed
	calm          atomic.Bool // no more faults
	still         atomic.Bool // nobody from outside acts any more

	mu       sync.Mutex
	acked    map[muster.Name]map[muster.MessageID]muster.MessageType // mails that were acknowledged to their senders
	requests map[string][]llm.Message                                // the last one of each conversation
	turns    map[string]int
	fresh    map[muster.Name]simFresh
	watched  simWatched
	wrong    []string
	lines    []string
	left     []string // what the records said in the end
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
	simTeam  = 5             // teammates at once
	simWords = 300           // turns after which nothing fails any more
	simLives = 6             // processes after which nothing fails any more
	simMost  = simLives + 4  // processes in all
	simLong  = 2 * time.Hour // of a process, on its own clock
)

func simulate(t *testing.T, seed uint64, template string, with defect) *sim {
	s := &sim{T: t, seed: seed, with: with, root: t.TempDir(), acked: map[muster.Name]map[muster.MessageID]muster.MessageType{},
		requests: map[string][]llm.Message{}, turns: map[string]int{}, fresh: map[muster.Name]simFresh{}}
	s.root = filepath.Join(s.root, "r")
	if template == "" {
		s.meadow = newMeadow(s.root)
		s.meadow.check = s.check
	} else if err := os.CopyFS(s.root, os.DirFS(template)); err != nil {
		t.Fatal(err)
	}
	s.makePlan()
	synctest.Test(t, func(t *testing.T) {
		s.T = t
		s.base = mem.New()
		s.o = elsewhere(s.base.Handle())
		s.all()
		s.judge()
		s.gather()
	})
	return s
}

func (s *sim) check(n int, _ map[string]string) (takes time.Duration, returns string) {
	d := s.dice("landing", n)
	takes = time.Duration(d.Int64N(int64(30 * time.Second)))
	if !s.calm.Load() && d.IntN(5) == 0 {
		returns = []string{"check", "conflict"}[d.IntN(2)]
	}
	return takes, returns
}

func (s *sim) report(t *testing.T) {
	lines := s.lines
	if !*simLog {
		lines = lines[max(0, len(lines)-25):]
	}
	again := fmt.Sprintf("again: go test -tags failpoint ./team -run 'TestSimulation$' -sim.seed=%d -sim.log", s.seed)
	if s.meadow == nil {
		again += " -sim.git"
	}
	t.Errorf("seed %d: %s\n%s\n%s\n%s", s.seed, strings.Join(s.wrong, "\n"), strings.Join(lines, "\n"), strings.Join(s.left, "\n"), again)
}

func (s *sim) say(f string, a ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := time.Now().Format("02 15:04:05.000 ") + fmt.Sprintf(f, a...)
	s.lines = append(s.lines, line[:min(len(line), 260)])
}

func (s *sim) gather() {
	tasks, _ := s.o.board.List(s.Context())
	for _, t := range tasks {
		if t.Open() || t.Status == muster.NeedsAttention {
			s.left = append(s.left, fmt.Sprintf("task %d %s: %s of %q, fence %d, waits for %v, role %q, effects %v", t.ID, t.Subject, t.Status, t.Owner, t.Fence, t.BlockedBy, t.ClaimRole, t.Effects))
		}
	}
	members, _ := s.o.roster.List(s.Context())
	for _, m := range members {
		waiting, _, _ := s.base.Inbox().Peek(s.Context(), m.Name, 0, 1<<30)
		line := fmt.Sprintf("%s (%s): %s %s, host %q, task %d; mail:", m.Name, m.Role, m.Status, m.IdleReason, m.Host, m.Task)
		for _, l := range waiting {
			line += fmt.Sprintf(" %s of %s %.30q,", l.Type, l.From, l.Content)
		}
		s.left = append(s.left, line)
	}
	pending, _ := s.o.requests.Pending(s.Context())
	for _, q := range pending {
		s.left = append(s.left, fmt.Sprintf("request %s: %s of %s to %s for task %d", q.ID, q.Kind, q.From, q.To, q.TaskID))
	}
}

func (s *sim) broken(f string, a ...any) {
	s.say("BROKEN: "+f, a...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.wrong) < 10 {
		s.wrong = append(s.wrong, fmt.Sprintf(f, a...))
	}
}

func (s *sim) isBroken() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.wrong) > 0
}

// errKilled is the end of a process that nobody asked.
var errKilled = errors.New("killed")

// all runs one process after the other until the team has ended, in the bubble of synctest.
func (s *sim) all() {
	watch, stop := context.WithCancel(s.Context())
	var outside sync.WaitGroup
	defer outside.Wait()
	defer stop()
	outside.Go(func() { s.watch(watch) })
	others, dismissed := context.WithCancel(s.Context())
	var beside sync.WaitGroup
	beside.Go(func() { s.joiners(others) })
	defer func() { // a process that has joined leaves by itself when the run is over
		if run, err := s.run(); err == nil && run.EndedAt != 0 {
			s.calm.Store(true)
			late := time.AfterFunc(simLong, func() {
				s.broken("a process that had joined goes on %v after the run", simLong)
				dismissed()
			})
			defer late.Stop()
		} else {
			dismissed()
		}
		beside.Wait()
		dismissed()
	}()
	outside.Go(func() { s.user(watch) })
	for s.lives = 0; s.lives < simMost; s.lives++ {
		if s.lives >= simLives {
			s.calm.Store(true)
			s.still.Store(true)
			s.tidyUp()
		}
		if s.process(s.lives) || s.isBroken() {
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
	c := s.config(shaky)
	if r.IntN(4) == 0 {
		c.Limits.Turns = 5 + r.IntN(10)
	}
	if r.IntN(5) == 0 {
		c.Limits.IdleTimeout = -1
	}
	ctx, end := context.WithCancelCause(context.WithoutCancel(s.Context()))
	defer end(nil)
	t, err := s.open(ctx, c)
	if err != nil {
		s.broken("open: %v", err)
		return true
	}
	t.Launch(func(context.Context) (proc.Launcher, error) { return &shell{}, nil })
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for waits := true; waits; waits = s.tidyUp() { // for somebody outside it may wait for ever
			select {
			case <-ended:
				return
			case <-time.After(simLong):
			}
		}
		s.broken("process %d goes on after %v", n, simLong)
		shaky.die()
		end(errKilled)
	}()
	if !s.calm.Load() && r.IntN(3) > 0 {
		kill := time.AfterFunc(time.Duration(r.Int64N(int64(4*time.Minute))), func() {
			if r.IntN(4) == 0 {
				s.say("process %d: Ctrl-C", n)
				end(muster.CauseUser)
				return
			}
			s.say("process %d is killed", n)
			s.kills.Add(1)
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

func (s *sim) config(store muster.Store) team.Config {
	return team.Config{Dir: s.root, Store: store, Name: "demo", Settings: team.Settings{Teammates: simTeam},
		Model: func(string) (llm.Model, error) { return simModel{s}, nil }}
}

func (s *sim) joiners(ctx context.Context) {
	for n := range s.dice("joiners", 0).IntN(4) {
		r := s.dice("joiner", n)
		wait := time.NewTimer(time.Duration(r.Int64N(int64(3 * time.Minute))))
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
		}
		if s.calm.Load() {
			return
		}
		s.joiner(ctx, n, r)
	}
}

func (s *sim) joiner(ctx context.Context, n int, r *rand.Rand) {
	shaky := newShaky(s, 100+n)
	defer shaky.die()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	t, err := s.open(ctx, s.config(shaky))
	if err != nil {
		s.broken("open, to join: %v", err)
		return
	}
	t.Launch(func(context.Context) (proc.Launcher, error) { return &shell{}, nil })
	if r.IntN(3) > 0 {
		kill := time.AfterFunc(time.Duration(r.Int64N(int64(5*time.Minute))), func() {
			s.say("joiner %d is killed", n)
			s.kills.Add(1)
			s.widowed.Store(true)
			shaky.die()
			end(errKilled)
		})
		defer kill.Stop()
	}
	w := &team.Workers{N: 1 + r.IntN(2)}
	s.joined.Add(1)
	why, err := t.Join(ctx, w)
	if err != nil {
		s.widowed.Store(true)
	}
	s.say("joiner %d, with %v, ends: %s, %v", n, w.Names, why, err)
}

func (s *sim) open(ctx context.Context, c team.Config) (*team.Team, error) {
	if s.meadow != nil {
		return team.OpenOn(ctx, c, s.meadow)
	}
	return team.Open(ctx, c)
}

func (s *sim) run() (run muster.Run, err error) {
	doc, err := s.base.Table(muster.TableTeam).Get(s.Context(), "run")
	if errors.Is(err, muster.ErrNotFound) {
		return run, nil
	}
	if err == nil {
		err = jsonInto(doc.Data, &run)
	}
	return run, err
}
