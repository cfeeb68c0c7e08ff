package team_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/proc"
	"muster/internal/testing/tier"
	"muster/journal"
	"muster/llm"
	"muster/store/mem"
	"muster/team"
)

var (
	clumsySeed  = flag.Uint64("clumsy.seed", 0, "run this seed of the clumsy teams alone")
	clumsySeeds = flag.Int("clumsy.seeds", 0, "how many clumsy teams are simulated (default 300 in all tests, else a few)")
)

// Teams of models that forget to complete, edit in the wrong place, answer in text, loop, contradict each other, complete
// without work, make tasks that wait for each other or twice, write to the dead, stop early, and call tools that are not
// there; some repeat two calls in turn, or read, as long as they are let. Nothing else fails. A run of theirs always ends,
// and never with 0 while something that they made has not landed.
func TestClumsyTeams(t *testing.T) {
	t.Parallel()
	n := cmp.Or(*clumsySeeds, tier.Amount(4, 300))
	var done, files, landed, loops, standstills atomic.Int64
	playSeeds(t, *clumsySeed, 1, n, func(t *testing.T, seed uint64) {
		c := playClumsy(t, seed)
		files.Add(int64(len(c.made)))
		landed.Add(int64(len(c.s.meadow.target)))
		loops.Add(c.met("a loop"))
		standstills.Add(c.met("a standstill"))
		if c.sum.Code == 0 {
			done.Add(1)
		}
		if len(c.s.wrong) > 0 {
			t.Errorf("seed %d: %s\n%s\nagain: go test -tags failpoint ./team -run TestClumsyTeams -clumsy.seed=%d -sim.log",
				seed, strings.Join(c.s.wrong, "\n"), strings.Join(c.lines(), "\n"), seed)
		}
	})
	t.Logf("%d teams, of which %d ended with 0; %d files were made, %d landed; %d loops and %d standstills were ended",
		n, done.Load(), files.Load(), landed.Load(), loops.Load(), standstills.Load())
	// Teams that never get anything done, or never end with 0, would show nothing.
	if n := int64(n); n >= 50 && (done.Load() < n/20 || landed.Load() < n/2 || loops.Load() < n/10 || standstills.Load() < n/10) {
		t.Error("the teams do too little to show anything")
	}
}

// clumsy is one clumsy team.
type clumsy struct {
	s   *sim
	sum team.Summary

	mu    sync.Mutex
	made  map[string]bool // the files that were written; false: one that its member has taken back
	files int
}

const (
	clumsyTurns = 120            // after which everybody only says that it is done
	clumsyRut   = 330            // after which one who does the same all the time, over and over, only says so too
	clumsyLong  = 48 * time.Hour // of a run, on its own clock
)

func playClumsy(t *testing.T, seed uint64) *clumsy {
	s := &sim{T: t, seed: seed, root: filepath.Join(t.TempDir(), "r"), turns: map[string]int{}}
	s.meadow = newMeadow(s.root)
	c := &clumsy{s: s, made: map[string]bool{}}
	synctest.Test(t, func(t *testing.T) {
		s.T = t
		s.base = mem.New()
		s.o = elsewhere(s.base.Handle())
		c.run()
		c.judge()
		s.gather()
	})
	return c
}

func (c *clumsy) lines() []string {
	if *simLog {
		return append(c.s.lines, c.s.left...)
	}
	return append(c.s.lines[max(0, len(c.s.lines)-25):], c.s.left...)
}

func (c *clumsy) run() {
	s := c.s
	store := s.base.Handle()
	tm, err := team.OpenOn(s.Context(), team.Config{Dir: s.root, Store: store, Name: "demo", Settings: team.Settings{Teammates: 3},
		Model: func(string) (llm.Model, error) { return c, nil }}, s.meadow)
	if err != nil {
		s.broken("open: %v", err)
		return
	}
	tm.Launch(func(context.Context) (proc.Launcher, error) { return c, nil })
	ctx, end := context.WithCancelCause(context.WithoutCancel(s.Context()))
	defer end(nil)
	late := time.AfterFunc(clumsyLong, func() {
		s.broken("it goes on after %v", clumsyLong)
		end(errKilled)
	})
	defer late.Stop()
	away, back := context.WithCancel(s.Context())
	var user sync.WaitGroup
	user.Go(func() { c.answers(away) })
	c.sum, err = tm.Run(ctx, "the goal", team.Start{})
	back()
	user.Wait()
	s.say("the run ends: code %d, %q, %v", c.sum.Code, c.sum.Text, err)
	if err != nil || c.sum.Code != 0 && c.sum.Code != 3 {
		s.broken("the run ended with %d: %v", c.sum.Code, err)
	}
	if c.sum.Code == 3 && c.sum.Text == "" {
		s.broken("the run ended with 3 and did not say why")
	}
	_ = store.Close()
}

// answers is the user, who looks after their mail every hour: a member that has asked them something waits for them.
func (c *clumsy) answers(ctx context.Context) {
	hour := time.NewTicker(time.Hour)
	defer hour.Stop()
	for seen := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-hour.C:
		}
		mails, _, err := c.s.base.Inbox().Peek(ctx, muster.User, 0, 1<<30)
		for _, m := range mails[min(seen, len(mails)):] {
			if m.From != muster.System && err == nil {
				_, err = c.s.o.post.Send(ctx, muster.Message{From: muster.User, To: m.From, Content: "As you like."})
			}
		}
		if seen = len(mails); err != nil && ctx.Err() == nil {
			c.s.broken("the user: %v", err)
		}
	}
}

func (c *clumsy) judge() {
	s := c.s
	if s.isBroken() {
		return
	}
	members, err := s.o.roster.List(s.Context())
	if err != nil {
		s.broken("members: %v", err)
	}
	run, err := s.run()
	if err != nil {
		s.broken("the run's record: %v", err)
	}
	for _, m := range members {
		if run.EndedAt != 0 && m.Status != muster.Shutdown { // else it stopped at a limit, and can go on
			s.broken("%s is %s after the run", m.Name, m.Status)
		}
	}
	tasks, err := s.o.board.List(s.Context())
	if err != nil {
		s.broken("list: %v", err)
	}
	unfinished := false
	for _, t := range tasks {
		unfinished = unfinished || t.Open() || t.Status == muster.NeedsAttention
	}
	if unfinished && c.sum.Code == 0 {
		s.broken("the run ended with 0, and tasks are left")
	}
	for file, isThere := range c.made {
		if _, hasLanded := s.meadow.target[file]; hasLanded || !isThere {
			continue
		}
		listed := slices.IndexFunc(c.sum.Left, func(l team.Leftover) bool { return slices.Contains(l.Files, file) })
		isDropped := listed >= 0 && c.sum.Left[listed].Dropped
		switch {
		case c.sum.Code == 0 && !isDropped:
			s.broken("the run ended with 0, and %s has not landed", file)
		case listed < 0 && !unfinished:
			s.broken("%s has not landed, and the summary does not say where it is: %s", file, c.sum.Text)
		}
	}
}

func (c *clumsy) met(limit string) (n int64) {
	if strings.Contains(c.sum.Text, limit) {
		n++
	}
	for e, err := range c.s.o.journal.Read(context.Background(), 0) {
		if reason, _ := e.Fields["reason"].(string); err == nil && e.Kind == journal.TaskReleased && strings.HasPrefix(reason, limit) {
			n++
		}
	}
	return n
}

// Close is of the launcher.
func (c *clumsy) Close() error { return nil }

// Start runs "put PATH", which writes a file, or "take PATH", which takes it back.
func (c *clumsy) Start(ctx context.Context, p proc.Spec) (proc.Process, error) {
	verb, path, _ := strings.Cut(p.Argv[len(p.Argv)-1], " ")
	file := filepath.Base(path)
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.Dir, path)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	exit := done(0)
	switch verb {
	case "put":
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			exit = 1
		} else {
			c.made[file] = true
		}
	case "take":
		if _, there := c.made[file]; os.Remove(path) == nil && there {
			c.made[file] = false
		}
	}
	return exit, context.Cause(ctx)
}

// done is a program that has ended.
type done int

func (d done) Wait() (int, error) { return int(d), nil }
func (d done) Kill() error        { return nil }
func (d done) PID() int           { return 1 }

// Reply is what a clumsy model says.
func (c *clumsy) Reply(ctx context.Context, r llm.Request, _ func(llm.Delta)) (llm.Reply, error) {
	s := c.s
	name, _, _ := strings.Cut(r.CacheKey, "@")
	s.mu.Lock()
	n := s.turns[name]
	s.turns[name]++
	s.turns[""]++
	all := s.turns[""]
	s.mu.Unlock()
	if all > 20*clumsyTurns {
		s.broken("%d turns, and no end", all)
		return llm.Reply{}, llm.Errorf(llm.Denied, "the simulation ends")
	}
	d := s.dice("clumsy "+name, n)
	select {
	case <-time.After(time.Duration(d.Int64N(int64(20 * time.Second)))):
	case <-ctx.Done():
		return llm.Reply{}, context.Cause(ctx)
	}
	rut := s.dice("rut "+name, 0).IntN(12)
	isInRut := rut < 2 && n > 3 && n < clumsyRut
	if all > clumsyTurns && !isInRut {
		return says("I am done.")
	}
	p := &simTalk{s: s, who: muster.Name(name), n: n, d: d}
	if isInRut && rut == 0 { // it reads for ever
		p.call("glob", args{"pattern": fmt.Sprint("f", n)})
	} else if isInRut {
		p.call("task_get", args{"task_id": 1 + n%2})
	} else if s.dice("habit "+name, n/10).IntN(10) == 0 { // it goes round in circles for a while
		p.call("task_get", args{"task_id": 1})
	} else if p.who == muster.Lead {
		c.lead(ctx, p)
	} else {
		c.teammate(ctx, p)
	}
	if p.err != nil {
		s.broken("the model of %s: %v", name, p.err)
	}
	s.say("%s: %s%s", name, p.text, p.gist())
	return p.reply(), nil
}

func (c *clumsy) file() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files++
	return fmt.Sprintf("f%d", c.files)
}

func anybody(d *rand.Rand) string {
	return []string{"lead", "m1", "m2", "m3", "ghost", "user"}[d.IntN(6)]
}

func (c *clumsy) lead(ctx context.Context, p *simTalk) {
	tasks, err := c.s.o.board.List(ctx)
	p.err = err
	d := p.d
	some := func() muster.TaskID { return muster.TaskID(1 + d.IntN(len(tasks)+1)) }
	hand := handOf(tasks, muster.Lead)
	open := slices.ContainsFunc(tasks, func(t muster.Task) bool { return t.Open() })
	switch n := d.IntN(30); {
	case p.n == 0 && n < 3:
		p.text = "Done." // without having looked
	case p.n < 2 || n < 3:
		for range 1 + d.IntN(3) {
			p.call("task_create", args{"subject": fmt.Sprintf("part %d", d.IntN(4)), "claim_role": []string{"", "coder", "nobody"}[d.IntN(20)/9]})
		}
		p.call("spawn_teammate", args{"name": fmt.Sprintf("m%d", 1+d.IntN(3)), "role": "coder", "prompt": "Work."})
	case n == 3:
		p.call("task_update", args{"task_id": some(), "add_blocked_by": []any{some()}})
	case n == 4:
		p.call("task_update", args{"task_id": some(), "status": []string{"pending", "deleted", "completed"}[d.IntN(3)]})
	case n == 5:
		p.call("bash", args{"command": "put " + c.file()})
	case n == 6:
		c.takeBack(p, c.s.meadow.scratch(muster.Lead))
	case n == 7:
		p.call("send_message", args{"to": anybody(d), "content": fmt.Sprintf("Stop that, and go on (%d)?", p.n)})
	case n == 8:
		p.call("broadcast", args{"content": fmt.Sprintf("Everybody do part %d", p.n)})
	case n == 9:
		p.call("request_shutdown", args{"teammate": anybody(d), "force": d.IntN(2) == 0})
	case n == 10:
		p.call([]string{"finish", "TaskCreate", "bash_run"}[d.IntN(3)], args{"x": 1})
	case n == 11:
		p.call("worktree_create", args{"name": fmt.Sprintf("own-%d", d.IntN(3))})
	case n == 12:
		p.call("worktree_run", args{"name": fmt.Sprintf("own-%d", d.IntN(3)), "command": "put " + c.file()})
	case n == 13:
		p.call("worktree_remove", args{"name": fmt.Sprintf("own-%d", d.IntN(3)), "force": d.IntN(2) == 0})
	case n == 14 && hand.ID == 0:
		p.call("claim_task", args{"task_id": some()})
	case n < 18 && hand.ID != 0:
		c.work(ctx, p, hand)
	case n == 18:
		p.text = "All is done, I think."
	case n == 19:
		p.text = " "
	case !open && len(tasks) > 0:
		p.text = "Done."
	default:
		p.call("wait", args{})
	}
}

func (c *clumsy) teammate(ctx context.Context, p *simTalk) {
	tasks, err := c.s.o.board.List(ctx)
	p.err = err
	d := p.d
	hand := handOf(tasks, p.who)
	switch n := d.IntN(24); {
	case n == 0:
		p.text = "I have done it." // and has called nothing
	case n == 1:
		p.call("complete_task", args{"task_id": 1 + d.IntN(len(tasks)+1), "summary": "not mine, perhaps"})
	case n == 2:
		p.call("send_message", args{"to": anybody(d), "content": fmt.Sprintf("What now (%d)?", p.n)})
	case n == 3:
		p.call("task_create", args{"subject": fmt.Sprintf("part %d", d.IntN(4)), "blocked_by": []any{1 + d.IntN(len(tasks)+1)}})
	case n == 4:
		p.call("edit", args{"path": "f1"})
	case n == 5: // into a lane of somebody else, which may be gone
		for _, l := range c.lanes() {
			if l.TaskID != hand.ID {
				p.call("bash", args{"command": "put " + filepath.Join(l.Path, c.file())})
				return
			}
		}
		p.call("idle", args{})
	case n == 6 && hand.ID != 0:
		p.call("release_task", args{"task_id": hand.ID, "reason": "I do not want to"})
	case n == 7:
		p.call("claim_task", args{"task_id": 1 + d.IntN(len(tasks)+1)})
	case n == 8:
		p.call("bash", args{"command": "put " + c.file()})
	case n == 9 && hand.ID != 0:
		p.call("complete_task", args{"task_id": hand.ID, "summary": "nothing was needed"})
	case n == 10:
		p.call("respond_shutdown", args{"request_id": "00000000", "approve": false, "reason": "no"})
	case n == 11:
		p.call("submit_plan", args{"plan": ""})
	case hand.ID != 0:
		c.work(ctx, p, hand)
	case n < 18:
		p.text = "I wait."
	default:
		p.call("idle", args{})
	}
}

func (c *clumsy) work(_ context.Context, p *simTalk, hand muster.Task) {
	if p.d.IntN(3) == 0 {
		p.call("complete_task", args{"task_id": hand.ID, "summary": "done by " + string(p.who)})
		return
	}
	p.call("bash", args{"command": "put " + c.file()})
}

func (c *clumsy) takeBack(p *simTalk, dir string) {
	for name := range filesOf(dir) {
		p.call("bash", args{"command": "take " + filepath.Join(dir, name)})
		return
	}
	p.call("wait", args{})
}

func (c *clumsy) lanes() []muster.Lane {
	all, _ := (meadowLanes{c.s.meadow}).List(c.s.Context())
	slices.SortFunc(all, func(a, b muster.Lane) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return all
}

func handOf(tasks []muster.Task, who muster.Name) (hand muster.Task) {
	for _, t := range tasks {
		if t.Owner == who && t.Claimed() {
			hand = t
		}
	}
	return hand
}
