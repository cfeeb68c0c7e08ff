package team_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"muster"
	"muster/llm"
	"muster/team"
	"muster/tool"
)

// A member whose tool meets what may pass (a git that was killed, a lock that is held) goes on by itself; only when that
// does not end is it lost, and its task another's.
func TestAMemberGoesOnAfterWhatPasses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fails, met, lost int // how many times
		owner            muster.Name
	}{"a few times": {3, 3, 0, "alice"}, "always": {1000, 4, 1, "bob"}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(h *house) {
				tries := 0
				flaky := tool.New("flaky", "Fails.", func(context.Context, struct{}) (llm.Result, error) {
					if tries++; tries <= c.fails {
						return llm.Result{}, tool.Fatal(muster.Errorf(muster.Unavailable, "a lock is held"))
					}
					return tool.Text("fine"), nil
				})
				m := &steps{f: map[string]func(context.Context, int, llm.Request) (llm.Reply, error){
					"lead": h.reads(`
speakers:
  lead:
    - do: [{task_create: {subject: one}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
    - do: [{spawn_teammate: {name: bob, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
    - say: Done.
`), "bob": h.reads(writes),
					"alice": func(_ context.Context, n int, _ llm.Request) (llm.Reply, error) {
						id := fmt.Sprintf("call-%d", n)
						if tries <= c.fails {
							return calls(id, "flaky", in{})
						}
						return calls(id, "complete_task", in{"task_id": 1, "summary": "one"})
					}}}
				tm := h.open(m, func(o *team.Config) { o.Tools = []llm.Tool{flaky} })
				h.begin(func(ctx context.Context) (team.Summary, error) { return tm.Run(ctx, "g", team.Start{}) }).ends(0, time.Hour)
				h.heard("lead", "Teammate alice is lost: a lock is held", c.lost)
				h.heard("alice", "Interrupted: a lock is held", c.met)
				if got := h.task(1); got.Owner != c.owner {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}
