package team_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"muster"
	"muster/journal"
	"muster/team"
)

// Who is spawned again while its last life is just ending starts as soon as that has ended: the supervisor that saw the new
// record when the old life still ran looks at it again.
func TestSpawnedAgainWhileItEnds(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		var again sync.Once
		r := h.start(`
speakers:
  lead:
    - do: [{spawn_teammate: {name: alice, role: coder, prompt: Hello.}}]
    - wait: 10m
      do: [{task_list: {}}]
    - say: Done.
  alice:
    - say: I am here.
`, func(c *team.Config) {
			c.Store = tapped{Store: c.Store, wrote: func(ctx context.Context, key string, data []byte) {
				var m muster.Member
				if key != muster.TableMembers+"/alice" || jsonInto(data, &m) != nil || m.Status != muster.Shutdown {
					return
				}
				again.Do(func() {
					if _, err := h.roster.Add(ctx, muster.Member{Name: "alice", Role: "coder", Prompt: "Hello again.", StartedBy: muster.Lead}); err != nil {
						t.Error(err)
					}
					time.Sleep(time.Second) // its goroutine ends, and the hint has long been heard
				})
			}}
		})
		var spawned float64
		lives := 0
		h.until("alice lives again", func(e muster.Event) bool {
			if e.Member == "alice" && e.Kind == journal.MemberSpawned {
				if lives++; lives == 2 {
					spawned = e.At
				}
			}
			return lives == 2 && e.Member == "alice" && e.Kind == journal.TurnEnded && e.At > spawned
		})
		if took := time.Since(muster.Time(spawned)); took > 2*time.Second {
			t.Errorf("it took %v, as if nobody had looked before the next sweep", took)
		}
		r.abandon()
	})
}
