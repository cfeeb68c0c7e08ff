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
	"muster/journal"
	"muster/llm"
	"muster/team"
	"muster/tool"
)

// deaf is a store whose journal takes nothing while it is full.
type deaf struct {
	muster.Store
	full *atomic.Bool
}

type deafLog struct {
	muster.Log
	full *atomic.Bool
}

func (d deaf) Log() muster.Log { return deafLog{d.Store.Log(), d.full} }

func (d deafLog) Append(ctx context.Context, stream string, at muster.Pos, recs ...[]byte) (muster.Pos, error) {
	if stream == muster.StreamEvents && d.full.Load() {
		return 0, noRoom()
	}
	return d.Log.Append(ctx, stream, at, recs...)
}

// refusing is a store that calls a function before each write of a table's document; what it refuses is not written.
type refusing struct {
	muster.Store
	table  string
	refuse func(data []byte) error
}

type refusingTable struct {
	muster.Table
	refuse func(data []byte) error
}

func (r refusing) Table(name string) muster.Table {
	if name != r.table {
		return r.Store.Table(name)
	}
	return refusingTable{r.Store.Table(name), r.refuse}
}

func (r refusingTable) Put(ctx context.Context, key string, data []byte, at muster.Rev) (muster.Rev, error) {
	if err := r.refuse(data); err != nil {
		return muster.None, err
	}
	return r.Table.Put(ctx, key, data, at)
}

func noRoom() error {
	return muster.Errorf(muster.Unavailable, "the disk of .team is full (%w)", syscall.ENOSPC)
}

// failing is a run in which one member's first tool fails as long as fine says.
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
	does := func(name string, all ...call) func(context.Context, int, llm.Request) (llm.Reply, error) {
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
	tm := h.open(&steps{f: map[string]func(context.Context, int, llm.Request) (llm.Reply, error){
		"lead": does("lead", call{"task_create", in{"subject": "one"}}, call{"spawn_teammate", in{"name": "alice", "role": "coder", "prompt": "Work."}},
			call{"wait", in{}}),
		"alice": does("alice", call{"bash", in{"command": "echo one > one"}}, call{"complete_task", in{"task_id": 1, "summary": "one"}}),
	}}, func(c *team.Config) {
		c.Tools = []llm.Tool{try}
		if change != nil {
			change(c)
		}
	})
	return h.begin(func(ctx context.Context) (team.Summary, error) { return tm.Run(ctx, "g", team.Start{}) })
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
					c.Store = deaf{c.Store, &full}
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

// Who waits for room may be shut down: what it had goes back, and nobody calls it lost.
func TestShutDownWhileTheDiskIsFull(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		r := h.failing("alice", noRoom, nil)
		h.until("alice waits", is(journal.RunNote, "alice"))
		h.ask(t, "alice", func(q *muster.Request) { q.Force = true })
		r.ends(3, time.Hour)
		h.heard("lead", "is lost", 0)
		if got := h.task(1); got.Status != muster.Pending || got.Owner != "" || h.member("alice").Status != muster.Shutdown {
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
				code := map[bool]int{true: 0, false: 3}[broken == nil]
				h.failing("alice", func() error { return broken }, func(c *team.Config) {
					c.Store = refusing{c.Store, muster.TableMembers, func(data []byte) error {
						var m muster.Member
						if jsonInto(data, &m) == nil && m.Name == "alice" && m.Status == muster.Shutdown && tries.Add(1) <= 3 {
							return muster.Errorf(muster.Unavailable, "not now")
						}
						return nil
					}}
				}).ends(code, time.Hour)
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

// A lead goes on, too, after what passes.
func TestALeadGoesOnAfterWhatPasses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ fails, code int }{"a few times": {3, 0}, "always": {1000, 1}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(h *house) {
				tries := 0
				r := h.failing("lead", func() error {
					if tries++; tries <= c.fails {
						return muster.Errorf(muster.Unavailable, "a lock is held")
					}
					return nil
				}, nil)
				if c.code == 0 {
					r.ends(0, time.Hour)
				} else if err := r.fails(); !errors.Is(err, muster.ErrUnavailable) {
					t.Error(err)
				}
				if tries != 4 {
					t.Errorf("%d tries", tries)
				}
			})
		})
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
