package team_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/llm"
	"muster/team"
	"muster/tool"
)

// A member whose model or tool does not heed the end of its context writes nothing after Run has returned, and does not
// keep Run from returning.
func TestNobodyWritesAfterRunHasReturned(t *testing.T) {
	t.Parallel()
	const late = 10 * time.Minute // long after every limit
	deaf := func() { time.Sleep(late) }
	slow := tool.Func("slow", "It does not heed its context.", func(context.Context, struct{}) (string, error) {
		deaf()
		return "It is done at last.", nil
	})
	for name, c := range map[string]struct {
		who  muster.Name
		with func(n int) (llm.Reply, error)
	}{
		"a teammate's model": {"alice", func(int) (llm.Reply, error) {
			deaf()
			return calls("late", "send_message", in{"to": "lead", "content": "late"})
		}},
		"a teammate's tool": {"alice", func(int) (llm.Reply, error) { return calls("s", "slow", in{}) }},
		"the lead's model": {muster.Lead, func(int) (llm.Reply, error) {
			deaf()
			return calls("late", "task_create", in{"subject": "late"})
		}},
		"the lead's tool": {muster.Lead, func(int) (llm.Reply, error) { return calls("s", "slow", in{}) }},
	} {
		for cause, stop := range map[string]error{"interrupted": muster.CauseUser, "ended": nil} {
			if stop == nil && c.who == muster.Lead {
				continue // it ends the run by itself
			}
			t.Run(name+" "+cause, func(t *testing.T) {
				bubble(t, func(h *house) {
					spawn := func() (llm.Reply, error) {
						return calls("s", "spawn_teammate", in{"name": "alice", "role": "coder", "prompt": "Work."})
					}
					m := cast{string(c.who): func(_ context.Context, n int, _ llm.Request) (llm.Reply, error) { return c.with(n) }}
					if c.who != muster.Lead {
						m["lead"] = func(ctx context.Context, n int, r llm.Request) (llm.Reply, error) {
							switch {
							case n == 0:
								return spawn()
							case stop != nil:
								return hangs(ctx, n, r)
							case n == 1:
								return calls("w", "request_shutdown", in{"teammate": "alice", "force": true, "reason": "enough"})
							}
							return says("Done.")
						}
					}
					r := h.run(h.open(m.model(), func(o *team.Config) { o.Tools = []llm.Tool{slow} }))
					if stop != nil {
						time.Sleep(time.Minute)
						synctest.Wait()
						r.stop(stop)
					}
					began := time.Now()
					<-r.done
					if took := time.Since(began); took > time.Minute {
						t.Errorf("Run returned after %v", took)
					}
					said, told := h.said("alice")+h.said(muster.Lead), len(h.events())
					time.Sleep(2 * late)
					if now := h.said("alice") + h.said(muster.Lead); now != said {
						t.Errorf("a transcript has grown after Run had returned:\n%s", now)
					}
					if n := len(h.events()); n != told {
						t.Errorf("%d events came after Run had returned\n%s", n-told, h.tail())
					}
				})
			})
		}
	}
}
