package team_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"muster"
	"muster/internal/durable"
	"muster/internal/testing/tapped"
	"muster/journal"
	"muster/llm"
	"muster/team"
	"muster/tool"
)

func noRoom() error {
	return muster.Errorf(muster.Unavailable, "the disk of .team is full (%w)", syscall.ENOSPC)
}

// deaf is a store whose journal takes nothing while it is full.
func deaf(s muster.Store, full func() bool) tapped.Store {
	return tapped.Store{Store: s, Before: func(_ context.Context, op, key string, _ []byte) error {
		if op == "append" && key == muster.StreamEvents && full() {
			return noRoom()
		}
		return nil
	}}
}

// failing is a run in which one member's first tool fails as long as fine says. The lead spawns bob after alice.
func (h *house) failing(who string, fine func() error, change func(*team.Config)) *running {
	h.Helper()
	worked := false
	try := tool.New("try", "Fails.", func(context.Context, struct{}) (llm.Result, error) {
		err := fine()
		worked = err == nil
		return tool.Text("fine"), tool.Fatal(err)
	})
	type call struct {
		tool string
		in   in
	}
	does := func(name string, all ...call) member {
		next := 0
		return func(_ context.Context, n int, _ llm.Request) (llm.Reply, error) {
			id := fmt.Sprintf("call-%d", n)
			switch {
			case name == who && !worked:
				return calls(id, "try", in{})
			case next == len(all):
				return says("Done.")
			}
			next++
			return calls(id, all[next-1].tool, all[next-1].in)
		}
	}
	spawn := func(name string) call {
		return call{"spawn_teammate", in{"name": name, "role": "coder", "prompt": "Work."}}
	}
	completes := call{"complete_task", in{"task_id": 1, "summary": "one"}}
	m := cast{
		"lead":  does("lead", call{"task_create", in{"subject": "one"}}, spawn("alice"), call{"wait", in{}}, spawn("bob"), call{"wait", in{}}),
		"alice": does("alice", call{"write_file", in{"path": "one", "content": "x"}}, completes),
		"bob":   does("bob", completes),
	}.model()
	return h.run(h.open(m, func(c *team.Config) {
		c.Tools = []llm.Tool{try}
		if change != nil {
			change(c)
		}
	}))
}

// While the disk is full a member waits, however long that takes; it says so once, also where the journal cannot be written.
func TestAFullDiskIsWaitedOut(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"lead", "alice"} {
		t.Run(who, func(t *testing.T) {
			bubble(t, func(h *house) {
				var full atomic.Bool
				var said atomic.Int32
				until := time.Now().Add(20 * time.Minute)
				r := h.failing(who, func() error {
					full.Store(time.Now().Before(until))
					if full.Load() {
						return noRoom()
					}
					return nil
				}, func(c *team.Config) {
					c.Store = deaf(c.Store, full.Load)
					c.Emit = func(_ muster.Name, v any) {
						if e, ok := v.(muster.Event); ok && e.Kind == journal.RunNote && strings.Contains(e.Text("text"), "when there is room") {
							said.Add(1)
						}
					}
				})
				r.ends(0, time.Hour)
				if said.Load() != 1 {
					t.Errorf("it was said %d times", said.Load())
				}
				if got := h.task(1); got.Landed == nil || got.Fence != 1 {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}

// A member that waits for room may be shut down: what it had goes back, and nobody calls it lost.
func TestShutDownWhileTheDiskIsFull(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		r := h.failing("alice", noRoom, nil)
		h.until("alice waits", is(journal.RunNote, "alice"))
		h.shutDownAlice(func(q *muster.Request) { q.Force = true })
		r.ends(0, time.Hour)
		h.heard("lead", "is lost", 0)
		if got := h.task(1); got.Owner != "bob" || h.member("alice").Status != muster.Shutdown {
			t.Errorf("%+v", got)
		}
	})
}

// That a member has shut down is written in the end, also where the first tries fail: no member of a run that is over seems to
// live, and the lead is told once.
func TestAnEndIsWrittenInTheEnd(t *testing.T) {
	t.Parallel()
	for what, broken := range map[string]error{"at the end of the run": nil, "when it is lost": errors.New("it is broken")} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(h *house) {
				var tries atomic.Int32
				h.failing("alice", func() error { return broken }, func(c *team.Config) {
					c.Store = refusing(c.Store, muster.TableMembers, func(data []byte) error {
						var m muster.Member
						if jsonInto(data, &m) == nil && m.Name == "alice" && m.Status == muster.Shutdown && tries.Add(1) <= 3 {
							return muster.Errorf(muster.Unavailable, "not now")
						}
						return nil
					})
				}).ends(0, time.Hour)
				if got := h.member("alice"); got.Status != muster.Shutdown || tries.Load() != 4 {
					t.Errorf("after %d tries: %+v", tries.Load(), got)
				}
				if broken != nil {
					h.heard("lead", "Teammate alice is lost: it is broken", 1)
				}
			})
		})
	}
}

// A member whose tool meets what may pass (a git that was killed, a lock that is held) goes on by itself. Only when that
// does not end the run of a lead fails, and a teammate is lost and its task another's.
func TestAMemberGoesOnAfterWhatPasses(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"lead", "alice"} {
		for what, fails := range map[string]int{"a few times": 3, "always": 1000} {
			t.Run(who+" "+what, func(t *testing.T) {
				bubble(t, func(h *house) {
					tries := 0
					r := h.failing(who, func() error {
						if tries++; tries <= fails {
							return muster.Errorf(muster.Unavailable, "a lock is held")
						}
						return nil
					}, nil)
					lost := fails == 1000
					if lost && who == "lead" {
						if err := r.fails(); !errors.Is(err, muster.ErrUnavailable) || tries != 4 {
							t.Errorf("%v after %d tries", err, tries)
						}
						return
					}
					r.ends(0, time.Hour)
					owner := map[bool]muster.Name{true: "bob", false: "alice"}[lost]
					if got := h.task(1); got.Owner != owner || tries != 4 {
						t.Errorf("%d tries, then the task was done by %s", tries, got.Owner)
					}
					h.heard("lead", "Teammate alice is lost: a lock is held", map[bool]int{true: 1}[lost])
				})
			})
		}
	}
}

// After a failed sync nothing of this process is written: the team stops at once, whoever met it.
func TestAFailedSyncStopsTheTeam(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"lead", "alice"} {
		t.Run(who, func(t *testing.T) {
			bubble(t, func(h *house) {
				tries := 0
				r := h.failing(who, func() error {
					tries++
					return muster.Errorf(muster.Unavailable, "%w: a file could not be made durable", durable.ErrEnded)
				}, nil)
				if err := r.fails(); tries != 1 || !errors.Is(err, durable.ErrEnded) {
					t.Errorf("%d tries, %v", tries, err)
				}
			})
		})
	}
}
