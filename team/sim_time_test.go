package team_test

import (
	"context"
	"encoding/json"
	"errors"
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

// A shutdown ends although the clocks of those who asked, and of who ended the request, are a day off; it is early or
// late by no more than that.
func TestShutdownWhenClocksJump(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change   func(doc map[string]any)
		from, to time.Duration // after the request
	}{
		"as it is":          {func(map[string]any) {}, 30 * time.Second, time.Minute},
		"asked a day ahead": {func(doc map[string]any) { shift(doc, aDay.Seconds(), "created_at", "updated_at", "deadline") }, 30 * time.Second, aDay + time.Minute},
		"asked a day ago":   {func(doc map[string]any) { shift(doc, -aDay.Seconds(), "created_at", "updated_at", "deadline") }, 0, time.Minute},
		"ended by a clock a day behind": {func(doc map[string]any) {
			doc["status"], doc["resolved_by"], doc["resolved_at"] = "expired", "system", doc["created_at"]
			shift(doc, -aDay.Seconds(), "resolved_at")
		}, 0, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(h *house) {
				tm := h.open(hungModel{h.scripted(hungTeam)}, nil)
				r := h.begin(func(ctx context.Context) (team.Summary, error) { return tm.Run(ctx, "the goal", team.Start{}) })
				h.until("alice works", is(journal.TaskClaimed, "alice"))
				time.Sleep(10 * time.Second)
				asked := time.Now()
				q, err := h.requests.Ask(t.Context(), muster.Request{Kind: muster.AskShutdown, From: muster.User, To: "alice"})
				if err != nil {
					t.Fatal(err)
				}
				h.doctor(muster.TableRequests, string(q.ID), c.change)
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

// An idle teammate is timed out by how long it has waited, whatever its record says since when.
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
				h.doctor(muster.TableMembers, "alice", func(doc map[string]any) { shift(doc, by.Seconds(), "since", "joined_at") })
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
