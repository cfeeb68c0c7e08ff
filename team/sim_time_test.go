package team_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"muster"
	"muster/journal"
	"muster/llm"
	"muster/team"
)

// hungTeam is a lead that waits and a teammate whose model never answers.
const hungTeam = `
speakers:
  lead:
    - do: [{task_create: {subject: one}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
    - say: Over.
`

// hungModel is a model that speaks for the lead, and for everybody else never answers.
type hungModel struct{ llm.Model }

func (m hungModel) Reply(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	if r.CacheKey == "lead@demo" {
		return m.Model.Reply(ctx, r, emit)
	}
	<-ctx.Done()
	return llm.Reply{}, context.Cause(ctx)
}

// doctor edits a document, as a host with another clock would have written it.
func (h *house) doctor(table, key string, f func(doc map[string]any)) {
	h.Helper()
	for {
		d, err := h.other.store.Table(table).Get(h.Context(), key)
		if err != nil {
			h.Fatal(err)
		}
		var doc map[string]any
		if err := json.Unmarshal(d.Data, &doc); err != nil {
			h.Fatal(err)
		}
		f(doc)
		data, err := json.Marshal(doc)
		if err != nil {
			h.Fatal(err)
		}
		if _, err = h.other.store.Table(table).Put(h.Context(), key, data, d.Rev); err == nil {
			return
		} else if !errors.Is(err, muster.ErrStale) {
			h.Fatal(err)
		}
	}
}

const aDay = 24 * time.Hour

// A shutdown ends in its own time although the clocks of those who asked, and of who ended the request, are a day off.
func TestShutdownWhenClocksJump(t *testing.T) {
	t.Parallel()
	record := func(change func(doc map[string]any)) func(h *house, w *wall, id muster.RequestID) {
		return func(h *house, w *wall, id muster.RequestID) { h.doctor(muster.TableRequests, string(id), change) }
	}
	clock := func(by time.Duration) func(h *house, w *wall, id muster.RequestID) {
		return func(h *house, w *wall, id muster.RequestID) { w.jump(by) }
	}
	for name, c := range map[string]struct {
		change   func(h *house, w *wall, id muster.RequestID)
		from, to time.Duration // after the request
	}{
		"as it is":          {clock(0), 30 * time.Second, time.Minute},
		"set ahead":         {clock(aDay), 0, time.Minute},
		"set back":          {clock(-aDay), 30 * time.Second, time.Minute},
		"asked a day ahead": {record(func(doc map[string]any) { shift(doc, aDay.Seconds(), "created_at", "updated_at", "deadline") }), 30 * time.Second, time.Minute},
		"asked a day ago":   {record(func(doc map[string]any) { shift(doc, -aDay.Seconds(), "created_at", "updated_at", "deadline") }), 0, time.Minute},
		"ended by a clock a day behind": {record(func(doc map[string]any) {
			doc["status"], doc["resolved_by"], doc["resolved_at"] = "expired", "system", doc["created_at"]
			shift(doc, -aDay.Seconds(), "resolved_at")
		}), 0, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(h *house) {
				w := h.wallClock()
				tm := h.open(hungModel{h.scripted(hungTeam)}, w.on)
				r := h.begin(func(ctx context.Context) (team.Summary, error) { return tm.Run(ctx, "the goal", team.Start{}) })
				h.until("alice works", is(journal.TaskClaimed, "alice"))
				time.Sleep(10 * time.Second)
				asked := time.Now()
				c.change(h, w, h.ask(h.T, "alice", nil))
				gone := make(chan struct{})
				go func() {
					defer close(gone)
					for h.member("alice").Status != muster.Shutdown {
						time.Sleep(time.Second)
						if time.Since(asked) > 2*aDay {
							return
						}
					}
				}()
				<-gone
				if took := time.Since(asked); took < c.from || took > c.to {
					t.Errorf("alice was shut down after %v, want %v to %v", took, c.from, c.to)
				}
				r.stop(muster.CauseUser)
				<-r.done
			})
		})
	}
}

// An idle teammate is timed out by how long it has waited, whatever its record and its clock say since when.
func TestIdleTimeoutWhenClocksJump(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]time.Duration{"ahead": aDay, "behind": -aDay} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(h *house) {
				w := h.wallClock()
				r := h.start(`
speakers:
  lead:
    - do: [{task_create: {subject: one, claim_role: nobody}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - wait: 10m
      say: Over.
    - say: Over.
  alice:
    - say: I wait.
`, w.on)
				h.until("alice rests", is(journal.MemberIdle, "alice"))
				idle := time.Now()
				w.jump(by)
				h.until("alice is timed out", is(journal.MemberShutdown, "alice"))
				if took := time.Since(idle); took < 59*time.Second || took > 70*time.Second {
					t.Errorf("after %v", took)
				}
				r.stop(muster.CauseUser)
				<-r.done
			})
		})
	}
}

// Mail that comes at the moment of an idle timeout is never lost: a sender who does not find that the member has shut down
// is heard. Every operation of the team takes its time, so that the mails of many come between all that a timeout does.
func TestMailAtTheMomentOfAnIdleTimeout(t *testing.T) {
	t.Parallel()
	const (
		members = 60
		step    = 10 * time.Millisecond // of an operation
	)
	bubble(t, func(h *house) {
		w := h.wallClock()
		m := &steps{f: map[string]func(context.Context, int, llm.Request) (llm.Reply, error){"lead": hangs}}
		tm := h.open(m, w.held(func() { time.Sleep(step) }))
		r := h.begin(func(ctx context.Context) (team.Summary, error) { return tm.Run(ctx, "the goal", team.Start{}) })
		h.until("the run has started", is(journal.RunStarted, ""))
		h.spawn(members)
		told := make([]bool, members)
		var all sync.WaitGroup
		for i := range members {
			all.Go(func() {
				name := muster.Name(fmt.Sprintf("t%d", i))
				idle := h.until("idle", is(journal.MemberIdle, name))
				time.Sleep(time.Until(muster.Time(idle.At).Add(time.Minute - 10*step + time.Duration(i)*step/2)))
				if _, err := h.post.Send(h.Context(), muster.Message{From: muster.User, To: name, Content: fmt.Sprintf("mail for %s.", name)}); err != nil {
					t.Error(err)
				}
				told[i] = h.member(name).Status == muster.Shutdown
			})
		}
		all.Wait()
		time.Sleep(10 * time.Minute)
		heard := 0
		for i := range members {
			name := muster.Name(fmt.Sprintf("t%d", i))
			n := strings.Count(h.said(name), fmt.Sprintf("mail for %s.", name))
			if n > 1 || n == 0 && !told[i] {
				t.Errorf("%s, whose sender was told that it had shut down: %v, read its mail %d times", name, told[i], n)
			}
			heard += n
			if got := h.member(name).Status; got != muster.Shutdown {
				t.Errorf("%s is %s", name, got)
			}
		}
		if heard == 0 || heard == members {
			t.Errorf("%d of %d mails came in time: the moment of the timeout is not among those tried", heard, members)
		}
		r.stop(muster.CauseUser)
		<-r.done
	})
}

// frozen is a process that was stopped, as with SIGSTOP: from freeze to thaw it does nothing to the state.
type frozen struct {
	mu   sync.Mutex
	thaw chan struct{}
}

func (f *frozen) freeze() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.thaw = make(chan struct{})
}

func (f *frozen) hold() {
	f.mu.Lock()
	thaw := f.thaw
	f.mu.Unlock()
	if thaw != nil {
		<-thaw
	}
}

// A deadline that passes while the process is stopped is carried out when it goes on, whoever saw first that it had
// passed, and whatever the clock has done meanwhile. An answer that comes after it is too late.
func TestDeadlineWhileTheProcessIsStopped(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]time.Duration{"as it is": 0, "set back": -aDay} {
		for _, seen := range []bool{false, true} { // by another process, while this one is stopped
			t.Run(fmt.Sprintf("%s, seen elsewhere: %v", name, seen), func(t *testing.T) {
				bubble(t, func(h *house) {
					w := h.wallClock()
					var f frozen
					tm := h.open(hungModel{h.scripted(hungTeam)}, w.held(f.hold))
					r := h.begin(func(ctx context.Context) (team.Summary, error) { return tm.Run(ctx, "the goal", team.Start{}) })
					h.until("alice works", is(journal.TaskClaimed, "alice"))
					time.Sleep(10 * time.Second)
					id := h.ask(h.T, "alice", nil)
					time.Sleep(10 * time.Second) // it has seen it
					f.freeze()
					w.jump(by)
					if seen {
						began := time.Now()
						q, err := h.requests.Await(h.Context(), id)
						if took := time.Since(began); err != nil || q.Status != muster.RequestExpired || took > 30*time.Second {
							t.Errorf("%+v, %v after %v", q, err, took)
						}
					}
					time.Sleep(5 * time.Minute)
					if got := h.member("alice").Status; got == muster.Shutdown {
						t.Fatal("the process was not stopped")
					}
					close(f.thaw)
					time.Sleep(time.Second)
					if q, err := h.requests.Get(h.Context(), id); err != nil || q.Status != muster.RequestExpired {
						t.Errorf("%+v, %v", q, err)
					}
					if m, k := h.member("alice"), h.task(1); m.Status != muster.Shutdown || k.Status != muster.Pending {
						t.Errorf("alice is %s and her task %s", m.Status, k.Status)
					}
					r.stop(muster.CauseUser)
					<-r.done
				})
			})
		}
	}
}

// A member whose model says to come back later, or is overloaded, is waited for by the time that it takes, whatever the
// clock does; and while it waits, a shutdown, a forced one and Ctrl-C end it in their own time.
func TestBackoffWhenTheClockJumps(t *testing.T) {
	t.Parallel()
	model := func(h *house, err *llm.Error, until time.Duration) llm.Model {
		started, s := time.Now(), h.scripted(hungTeam)
		return &steps{f: map[string]func(context.Context, int, llm.Request) (llm.Reply, error){
			"lead": func(ctx context.Context, _ int, r llm.Request) (llm.Reply, error) {
				return s.Reply(ctx, r, func(llm.Delta) {})
			},
			"alice": func(_ context.Context, n int, _ llm.Request) (llm.Reply, error) {
				if time.Since(started) < until {
					return llm.Reply{}, err
				}
				return calls("c", "complete_task", in{"task_id": 1, "summary": "done"})
			},
		}}
	}
	limited := &llm.Error{Kind: llm.Limited, After: 10 * time.Minute, Err: errors.New("too fast")}
	overloaded := &llm.Error{Kind: llm.Overloaded, Err: errors.New("too many")}
	for name, c := range map[string]struct {
		err   *llm.Error
		by    time.Duration
		force bool
	}{"limited": {limited, -aDay, false}, "overloaded": {overloaded, -aDay, true}, "limited, ahead": {limited, aDay, true}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(h *house) {
				w := h.wallClock()
				start := time.Now()
				tm := h.open(model(h, c.err, 9*time.Minute), w.on)
				r := h.begin(func(ctx context.Context) (team.Summary, error) { return tm.Run(ctx, "the goal", team.Start{}) })
				time.Sleep(5 * time.Minute)
				w.jump(c.by)
				h.until("done", is(journal.TaskCompleted, "alice"))
				if took := time.Since(start); took < 9*time.Minute || took > 16*time.Minute {
					t.Errorf("it went on after %v", took)
				}
				r.stop(muster.CauseUser)
				<-r.done
			})
		})
		t.Run(name+", stopped meanwhile", func(t *testing.T) {
			bubble(t, func(h *house) {
				w := h.wallClock()
				m := model(h, c.err, 5*time.Minute)
				tm := h.open(m, w.on)
				r := h.begin(func(ctx context.Context) (team.Summary, error) { return tm.Run(ctx, "the goal", team.Start{}) })
				time.Sleep(5 * time.Minute)
				stop := time.Now()
				r.interrupt()
				if took := time.Since(stop); took > time.Second {
					t.Errorf("Ctrl-C took %v", took)
				}
				w.jump(c.by)
				r = h.begin(h.open(m, w.on).Resume)
				h.until("done", is(journal.TaskCompleted, "alice"))
				if took := time.Since(stop); took > time.Minute {
					t.Errorf("it was parked for %v in its next life", took)
				}
				r.stop(muster.CauseUser)
				<-r.done
			})
		})
		t.Run(fmt.Sprint(name, ", shut down, by force: ", c.force), func(t *testing.T) {
			bubble(t, func(h *house) {
				r := h.begin(func(ctx context.Context) (team.Summary, error) {
					return h.open(model(h, c.err, time.Hour), nil).Run(ctx, "the goal", team.Start{})
				})
				time.Sleep(5 * time.Minute)
				asked := time.Now()
				h.ask(h.T, "alice", func(q *muster.Request) { q.Force = c.force })
				h.until("shut down", is(journal.MemberShutdown, "alice"))
				if took := time.Since(asked); took > time.Second && c.force || took > 31*time.Second {
					t.Errorf("it took %v", took)
				}
				if got := h.task(1); got.Status != muster.Pending {
					t.Errorf("her task is %s", got.Status)
				}
				r.stop(muster.CauseUser)
				<-r.done
			})
		})
	}
}
