package team_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"muster"
	"muster/internal/testing/tapped"
	"muster/journal"
	"muster/llm"
	"muster/team"
)

const aDay = 24 * time.Hour

// stamp is a stamp near a bubble's beginning, 2000-01-01.
var stamp = regexp.MustCompile(`([ :,\[])(9[34]\d{7}(?:\.\d+)?)\b`)

// jump sets the wall clock ahead or back. A bubble's own clock cannot be set, so all that is stored becomes older or
// newer, as a process finds it whose clock was set while its timers, which count on, were running.
func (h *house) jump(by time.Duration) {
	ctx := context.WithoutCancel(h.Context())
	for _, name := range []string{muster.TableTasks, muster.TableMembers, muster.TableRequests, muster.TableHosts} {
		table := h.store.Table(name)
		for c, err := range table.Changes(ctx, 0) {
			for err == nil && c.Rev != muster.None {
				data := stamp.ReplaceAllFunc(c.Data, func(hit []byte) []byte {
					at, _ := strconv.ParseFloat(string(hit[1:]), 64)
					return strconv.AppendFloat(hit[:1:1], at-by.Seconds(), 'f', -1, 64)
				})
				if _, err = table.Put(ctx, c.Key, data, c.Rev); !errors.Is(err, muster.ErrStale) {
					break
				}
				var d muster.Doc // a member was faster
				d, err = table.Get(ctx, c.Key)
				c.Data, c.Rev = d.Data, d.Rev
			}
			if err != nil && !errors.Is(err, muster.ErrNotFound) {
				h.Error(err)
			}
		}
	}
}

// held is the change of the configuration of a process that hold holds up before each thing that it does to the state.
func held(hold func()) func(*team.Config) {
	return func(c *team.Config) {
		c.Store = tapped.Store{Store: c.Store, Before: func(_ context.Context, op, key string, _ []byte) error {
			if !underLock(op, key) && op != "watch" && op != "lease" {
				hold()
			}
			return nil
		}}
	}
}

// waitingLead is a lead that waits for its teammate, once.
const waitingLead = `
speakers:
  lead:
    - do: [{task_create: {subject: one}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
    - say: Over.
`

func (h *house) hungTeam() llm.Model {
	h.Helper()
	return cast{"lead": h.reads(waitingLead), "alice": hangs}.model()
}

// A shutdown ends in its own time although the clocks of those who asked, and of who ended the request, are a day off.
func TestShutdownWhenClocksJump(t *testing.T) {
	t.Parallel()
	record := func(change func(doc args)) func(h *house, id muster.RequestID) {
		return func(h *house, id muster.RequestID) {
			if err := edit(h.Context(), h.store, muster.TableRequests, string(id), func(doc args) bool { change(doc); return true }); err != nil {
				h.Fatal(err)
			}
		}
	}
	clock := func(by time.Duration) func(h *house, id muster.RequestID) {
		return func(h *house, _ muster.RequestID) { h.jump(by) }
	}
	for name, c := range map[string]struct {
		change   func(h *house, id muster.RequestID)
		from, to time.Duration // after the request
	}{
		"set ahead":         {clock(aDay), 0, time.Minute},
		"set back":          {clock(-aDay), 30 * time.Second, time.Minute},
		"asked a day ahead": {record(func(doc args) { shift(doc, aDay.Seconds(), "created_at", "updated_at", "deadline") }), 30 * time.Second, time.Minute},
		"ended by a clock a day behind": {record(func(doc args) {
			doc["status"], doc["resolved_by"], doc["resolved_at"] = "expired", "system", doc["created_at"]
			shift(doc, -aDay.Seconds(), "resolved_at")
		}), 0, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(h *house) {
				r := h.run(h.open(h.hungTeam(), nil))
				h.until("alice works", is(journal.TaskClaimed, "alice"))
				time.Sleep(10 * time.Second)
				asked := time.Now()
				c.change(h, h.shutDownAlice(nil))
				for h.member("alice").Status != muster.Shutdown && time.Since(asked) < 2*aDay {
					time.Sleep(time.Second)
				}
				if took := time.Since(asked); took < c.from || took > c.to {
					t.Errorf("alice was shut down after %v, want %v to %v", took, c.from, c.to)
				}
				r.abandon()
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
				r := h.start(`
speakers:
  lead:
    - do: [{task_create: {subject: one, claim_role: nobody}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - wait: 10m
      say: Over.
    - say: Over.
  alice:
    - say: I wait.
`, nil)
				h.until("alice rests", is(journal.MemberIdle, "alice"))
				idle := time.Now()
				h.jump(by)
				h.until("alice is timed out", is(journal.MemberShutdown, "alice"))
				if took := time.Since(idle); took < 59*time.Second || took > 70*time.Second {
					t.Errorf("after %v", took)
				}
				r.abandon()
			})
		})
	}
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
					var f frozen
					r := h.run(h.open(h.hungTeam(), held(f.hold)))
					h.until("alice works", is(journal.TaskClaimed, "alice"))
					time.Sleep(10 * time.Second)
					id := h.shutDownAlice(nil)
					time.Sleep(10 * time.Second) // it has seen it
					f.freeze()
					h.jump(by)
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
					r.abandon()
				})
			})
		}
	}
}

// A member whose model says to come back later, or is overloaded, is waited for by the time that it takes, whatever the
// clock does; and while it waits, a shutdown, a forced one and Ctrl-C end it in their own time.
func TestBackoffWhenTheClockJumps(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err   *llm.Error
		by    time.Duration
		force bool
	}{
		"limited, back":     {&llm.Error{Kind: llm.Limited, After: 10 * time.Minute, Err: errors.New("too fast")}, -aDay, false},
		"overloaded, ahead": {&llm.Error{Kind: llm.Overloaded, Err: errors.New("too many")}, aDay, true},
	} {
		// with runs a team whose alice is refused until a time, to the fifth minute of it.
		with := func(what string, until time.Duration, then func(h *house, m llm.Model, r *running, start time.Time)) {
			t.Run(name+", "+what, func(t *testing.T) {
				bubble(t, func(h *house) {
					start := time.Now()
					m := cast{"lead": h.reads(waitingLead), "alice": func(context.Context, int, llm.Request) (llm.Reply, error) {
						if time.Since(start) < until {
							return llm.Reply{}, c.err
						}
						return calls("c", "complete_task", in{"task_id": 1, "summary": "done"})
					}}.model()
					r := h.run(h.open(m, nil))
					time.Sleep(5 * time.Minute)
					then(h, m, r, start)
				})
			})
		}
		with("and it goes on", 9*time.Minute, func(h *house, _ llm.Model, r *running, start time.Time) {
			h.jump(c.by)
			h.until("done", is(journal.TaskCompleted, "alice"))
			if took := time.Since(start); took < 9*time.Minute || took > 16*time.Minute {
				h.Errorf("it went on after %v", took)
			}
			r.abandon()
		})
		with("and Ctrl-C", 5*time.Minute, func(h *house, m llm.Model, r *running, _ time.Time) {
			stop := time.Now()
			r.interrupt()
			if took := time.Since(stop); took > time.Second {
				h.Errorf("Ctrl-C took %v", took)
			}
			h.jump(c.by)
			r = h.begin(h.open(m, nil).Resume)
			h.until("done", is(journal.TaskCompleted, "alice"))
			if took := time.Since(stop); took > time.Minute {
				h.Errorf("it was parked for %v in its next life", took)
			}
			r.abandon()
		})
		with("and a shutdown", time.Hour, func(h *house, _ llm.Model, r *running, _ time.Time) {
			asked := time.Now()
			h.shutDownAlice(func(q *muster.Request) { q.Force = c.force })
			h.until("shut down", is(journal.MemberShutdown, "alice"))
			if took := time.Since(asked); took > time.Second && c.force || took > 31*time.Second {
				h.Errorf("it took %v", took)
			}
			if got := h.task(1); got.Status != muster.Pending {
				h.Errorf("her task is %s", got.Status)
			}
			r.abandon()
		})
	}
}
