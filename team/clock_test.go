package team_test

import (
	"context"
	"encoding/json"
	"iter"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"muster"
	"muster/internal/board"
	"muster/journal"
	"muster/store/mem"
	"muster/team"
)

// wall is a wall clock that can be set. A bubble's own clock cannot, so all that is stored is shifted on its way in and
// out: who reads after the clock was set ahead by a day finds what was written before a day older, as a process does whose
// clock was set while its timers, which count on, were running.
type wall struct {
	h   *house
	mu  sync.RWMutex
	off float64 // seconds by which the wall clock is ahead of the bubble's
}

// wallClock hangs a clock on the house: whoever opens the state from now on has it.
func (h *house) wallClock() *wall {
	w := &wall{h: h}
	h.other = elsewhere(w.handle())
	return w
}

func (w *wall) handle() *walled { return &walled{Store: w.h.store.Handle(), w: w} }

// on is the change of a team's configuration with which it has the clock.
func (w *wall) on(c *team.Config) { c.Store = w.handle() }

// held is on for a process that hold holds up before each thing that it does to the state.
func (w *wall) held(hold func()) func(*team.Config) {
	return func(c *team.Config) {
		s := w.handle()
		s.hold, c.Store = hold, s
	}
}

// jump sets the clock, between two operations of the state. What others have read is read again.
func (w *wall) jump(by time.Duration) {
	ctx := context.WithoutCancel(w.h.Context())
	w.mu.Lock()
	defer w.mu.Unlock()
	w.off += by.Seconds()
	for _, name := range []string{muster.TableTasks, muster.TableMembers, muster.TableRequests, muster.TableHosts, muster.TableTeam} {
		table := w.h.store.Table(name)
		for c, err := range table.Changes(ctx, 0) {
			if err == nil && c.Rev != muster.None {
				_, err = table.Put(ctx, c.Key, c.Data, c.Rev)
			}
			if err != nil {
				w.h.Error(err)
			}
		}
	}
}

// stamp is a stamp near a bubble's beginning, 2000-01-01, alone or in the mark with which a run begins.
var stamp = regexp.MustCompile(`(^|[ :,\[]|"run-)(9[34]\d{7}(?:\.\d+)?)\b`)

// shift shifts every stamp in a line of JSON. Whole seconds are added without loss: it can be undone.
func shiftAll(data []byte, by float64) []byte {
	if by == 0 {
		return data
	}
	return stamp.ReplaceAllFunc(data, func(hit []byte) []byte {
		part := stamp.FindSubmatch(hit)
		at, err := strconv.ParseFloat(string(part[2]), 64)
		if err != nil {
			return hit
		}
		precision := -1
		if strings.HasSuffix(string(part[1]), "run-") {
			precision = 6
		}
		return strconv.AppendFloat(append([]byte(nil), part[1]...), at+by, 'f', precision, 64)
	})
}

// walled is a process's handle on the state, by the wall clock.
type walled struct {
	*mem.Store
	w    *wall
	hold func() // nil: nothing does
}

func (s *walled) Table(name string) muster.Table { return walledTable{s.Store.Table(name), s} }
func (s *walled) Log() muster.Log                { return walledLog{s.Store.Log(), s} }
func (s *walled) Inbox() muster.Inbox            { return walledInbox{s.Store.Inbox(), s} }

// enter begins an operation: it is held up, then nobody sets the clock until it ends. by is what the clock is ahead.
func (s *walled) enter(op, key string) (by float64, leave func()) {
	if s.hold != nil && !underLock(op, key) {
		s.hold()
	}
	s.w.mu.RLock()
	return s.w.off, s.w.mu.RUnlock
}

type walledTable struct {
	muster.Table
	s *walled
}

func (t walledTable) Get(ctx context.Context, key string) (muster.Doc, error) {
	by, leave := t.s.enter("get", key)
	defer leave()
	d, err := t.Table.Get(ctx, key)
	d.Data = shiftAll(d.Data, -by)
	return d, err
}

func (t walledTable) Put(ctx context.Context, key string, data []byte, at muster.Rev) (muster.Rev, error) {
	by, leave := t.s.enter("put", key)
	defer leave()
	return t.Table.Put(ctx, key, shiftAll(data, by), at)
}

func (t walledTable) Changes(ctx context.Context, since muster.Mark) iter.Seq2[muster.Change, error] {
	return func(yield func(muster.Change, error) bool) {
		for c, err := range t.Table.Changes(ctx, since) {
			by, leave := t.s.enter("changes", "")
			c.Data = shiftAll(c.Data, -by)
			leave()
			if !yield(c, err) {
				return
			}
		}
	}
}

type walledLog struct {
	muster.Log
	s *walled
}

func (l walledLog) Append(ctx context.Context, stream string, at muster.Pos, recs ...[]byte) (muster.Pos, error) {
	by, leave := l.s.enter("append", stream)
	defer leave()
	shifted := make([][]byte, len(recs))
	for i, r := range recs {
		shifted[i] = shiftAll(r, by)
	}
	return l.Log.Append(ctx, stream, at, shifted...)
}

func (l walledLog) Read(ctx context.Context, stream string, after muster.Pos) iter.Seq2[muster.Record, error] {
	return func(yield func(muster.Record, error) bool) {
		for r, err := range l.Log.Read(ctx, stream, after) {
			by, leave := l.s.enter("read", stream)
			r.Data = shiftAll(r.Data, -by)
			leave()
			if !yield(r, err) {
				return
			}
		}
	}
}

type walledInbox struct {
	muster.Inbox
	s *walled
}

func (i walledInbox) Put(ctx context.Context, box muster.Name, m muster.Message) error {
	by, leave := i.s.enter("mail", string(box))
	defer leave()
	m.At += by
	return i.Inbox.Put(ctx, box, m)
}

func (i walledInbox) Peek(ctx context.Context, box muster.Name, after muster.Pos, most int) ([]muster.Message, muster.Pos, error) {
	by, leave := i.s.enter("peek", string(box))
	defer leave()
	ms, end, err := i.Inbox.Peek(ctx, box, after, most)
	for n := range ms {
		ms[n].At -= by
	}
	return ms, end, err
}

func TestShiftAll(t *testing.T) {
	line := `{"at":946684800.000001,"n":[1,946684801, 946684802.5],"text":"at 12","mail":["run-946684800.250000"],"id":9466848}`
	want := `{"at":946771200.000001,"n":[1,946771201, 946771202.5],"text":"at 12","mail":["run-946771200.250000"],"id":9466848}`
	there := shiftAll([]byte(line), aDay.Seconds())
	if !json.Valid(there) || string(there) != want {
		t.Errorf("%s", there)
	}
	if back := shiftAll(there, -aDay.Seconds()); string(back) != line {
		t.Errorf("%s", back)
	}
}

// jumps is a way in which a wall clock goes wrong: by how much at the n-th time.
var jumps = map[string]func(n int) time.Duration{
	"as it is": func(int) time.Duration { return 0 },
	"back":     func(int) time.Duration { return -aDay },
	"to and fro": func(n int) time.Duration {
		return map[bool]time.Duration{true: aDay, false: -aDay}[n%4 < 2]
	},
}

// keepJumping sets the clock every seven seconds until stop is called.
func (w *wall) keepJumping(by func(n int) time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.h.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(7 * time.Second)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				w.jump(by(n))
			}
		}
	}()
	return func() { cancel(); <-done }
}

// clockCrew has three tasks that take a while: one wants a plan, one comes after the others.
const clockCrew = `
speakers:
  lead:
    - do:
        - task_create: {subject: t1}
        - task_create: {subject: t2, require_plan: true}
        - task_create: {subject: t3, blocked_by: [t1, t2]}
        - spawn_teammate: {name: alice, role: coder, prompt: Work.}
        - spawn_teammate: {name: bob, role: coder, prompt: Work.}
    - do: [{wait: {}}]
      until: All done
    - say: Done.
scenes:
  - cue: 'Write it\.'
    who: [lead]
    turns: [{do: [{review_plan: {request_id: "${request}", approve: true}}]}]
  - cue: 'Task #(?P<id>2): (?P<what>\w+)'
    turns:
      - wait: 5s
        do: [{submit_plan: {plan: Write it.}}]
      - wait: 5s
        do: [{write_file: {path: "${what}.txt", content: "${what}\n"}}]
      - do: [{complete_task: {task_id: "${number:id}", summary: "${what}"}}]
  - cue: 'Task #(?P<id>\d+): (?P<what>\w+)'
    turns:
      - wait: 20s
        do: [{write_file: {path: "${what}.txt", content: "${what}\n"}}, {send_message: {to: lead, content: "half of ${what}"}}]
      - wait: 5s
        do: [{complete_task: {task_id: "${number:id}", summary: "${what}"}}]
`

// whole checks that a run of clockCrew did everything once, and took nobody for dead.
func (h *house) whole(sum team.Summary) {
	h.Helper()
	if len(sum.Tasks) != 3 {
		h.Errorf("%d tasks", len(sum.Tasks))
	}
	h.heard("lead", "All done: 3 tasks landed", 1)
	for _, k := range sum.Tasks {
		ends := h.count(func(e muster.Event) bool { return e.Kind == journal.TaskCompleted && e.Task == k.ID })
		claims := h.count(func(e muster.Event) bool { return e.Kind == journal.TaskClaimed && e.Task == k.ID })
		if k.Status != muster.Completed || k.Fence != 1 || claims != 1 || ends != 1 || k.Landed == nil {
			h.Errorf("task %d is %s at fence %d, claimed %d times, completed %d times", k.ID, k.Status, k.Fence, claims, ends)
		}
		if k.ID != 2 {
			h.heard("lead", "half of "+k.Subject, 1)
		}
	}
	if n := h.w.git("rev-list", "--count", "main..muster/demo"); n != "3" {
		h.Errorf("%s commits landed", n)
	}
	if n := h.count(is(journal.MemberSpawned, "")); n != 3 {
		h.Errorf("%d members were spawned", n)
	}
	for _, e := range h.events() {
		switch e.Kind {
		case journal.TaskReleased, journal.TaskRevoked, journal.TaskReturned, journal.TaskAttention, journal.MailRejected, journal.LaneFailed:
			h.Errorf("%s of %s, task %d: %v", e.Kind, e.Member, e.Task, e.Fields)
		}
	}
}

// A run goes on as if nothing had happened while its clock jumps by a day again and again: it takes as long as it does
// without, nothing is claimed or done twice, nobody is taken for dead. In a bubble the store's changes are found by
// polling, so a run may see the landing that frees the third task one poll later than another run does.
func TestRunWhileTheClockJumps(t *testing.T) {
	t.Parallel()
	took := map[string]time.Duration{}
	for _, name := range []string{"as it is", "back", "to and fro"} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(h *house) {
				w := h.wallClock()
				start := time.Now()
				r := h.start(clockCrew, w.on)
				defer w.keepJumping(jumps[name])()
				sum := r.ends(0, time.Hour)
				took[name] = time.Since(start)
				h.whole(sum)
				if base, ok := took["as it is"]; ok && (took[name]-base).Abs() > 10*time.Second {
					t.Errorf("it took %v, and without jumps %v", took[name], base)
				}
			})
		})
	}
}

// The clock jumps while the team is stopped: it goes on where it was.
func TestResumeAfterTheClockJumped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ by, after time.Duration }{
		"ahead, in a task": {aDay, 8 * time.Second},
		"back, in a task":  {-aDay, 8 * time.Second},
		// Members look every 5 s. In the very second in which they do, either may come first.
		"back after a landing": {-aDay, 32 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(h *house) {
				w := h.wallClock()
				r := h.start(clockCrew, w.on)
				time.Sleep(c.after)
				r.interrupt()
				w.jump(c.by)
				time.Sleep(time.Minute)
				h.whole(h.resume(clockCrew, w.on).ends(0, time.Hour))
				if run := h.run(); run.Away < 0 || run.Away > aDay.Seconds()+70 {
					t.Errorf("it was away for %v s", run.Away)
				}
			})
		})
	}
}

// run is the run's record.
func (h *house) run() (run muster.Run) {
	h.Helper()
	d, err := h.other.store.Table(muster.TableTeam).Get(h.Context(), "run")
	if err == nil {
		err = json.Unmarshal(d.Data, &run)
	}
	if err != nil {
		h.Fatal(err)
	}
	return run
}

// What a run has given up is its to answer for, although its clock was set back since it started.
func TestGivenUpAfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		w := h.wallClock()
		h.task0()
		time.Sleep(time.Minute)
		r := h.start(`
speakers:
  lead:
    - wait: 20s
      do: [{task_create: {subject: new}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
      until: All done
    - say: Over.
scenes:
  - cue: 'Task #(?P<id>\d+):'
    who: [alice]
    turns: [{wait: 20s, do: [{release_task: {task_id: "${number:id}", reason: no}}]}, {say: Next.}]
`, w.on)
		time.Sleep(10 * time.Second)
		w.jump(-aDay)
		r.ends(3, time.Hour)
		h.heard("lead", "nothing is open. Task #1 (old) needs attention", 1)
	})
}

// task0 puts a task on the board before the run.
func (h *house) task0() {
	h.Helper()
	if _, err := h.board.Create(h.Context(), board.Draft{Subject: "old", CreatedBy: muster.User}); err != nil {
		h.Fatal(err)
	}
}
