package team_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/testing/tapped"
	"muster/journal"
	"muster/llm"
	"muster/team"
)

// Idle teammates write nothing however long they wait. A new task is for one of them: nobody else's model is asked, and
// nobody else writes.
func TestManyIdle(t *testing.T) {
	t.Parallel()
	const many = 20
	bubble(t, func(h *house) {
		var mu sync.Mutex
		did := map[string]int{} // calls of models, and writes, since forget
		count := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			did[what]++
		}
		forget := func() (was map[string]int) {
			mu.Lock()
			defer mu.Unlock()
			was, did = did, map[string]int{}
			return was
		}
		talk := team.NewConversation()
		r := h.run(h.open(crew(func(who string) { count("model " + who) }), func(c *team.Config) {
			c.Store = tapped.Store{Store: c.Store, Before: func(_ context.Context, op, key string, _ []byte) error {
				if op == "put" {
					count(key)
				}
				return nil
			}}
			c.Teammates, c.Conversation, c.Limits.IdleTimeout = many, talk, -1
		}))
		h.until("the lead has spoken", is(journal.TurnEnded, muster.Lead))
		for i := range many {
			h.add(fmt.Sprintf("t%d", i), "coder")
		}
		time.Sleep(time.Minute) // what is gathered before it is written, for other programs to read, is written
		synctest.Wait()
		if n := h.count(func(e muster.Event) bool { return e.Kind == journal.MemberIdle && e.Member != muster.Lead }); n != many {
			t.Fatalf("%d of %d are idle\n%s", n, many, h.tail())
		}
		forget()
		time.Sleep(time.Hour)
		synctest.Wait()
		if did := forget(); len(did) != 0 {
			t.Errorf("in an hour with nothing to do they did %v", did)
		}

		task := h.create("look around")
		h.until("the task is completed", is(journal.TaskCompleted, ""))
		synctest.Wait()
		who := string(h.task(task.ID).Owner)
		for what := range forget() {
			_, name, _ := strings.Cut(strings.Replace(what, muster.TableMembers+"/", "model ", 1), "model ")
			if name != "" && name != who && name != string(muster.Lead) {
				t.Errorf("%s, though the task is %s's", what, who)
			}
		}
		talk.Close()
		r.ends(0, time.Minute)
	})
}

// crew is a model of all members: who has a task completes it, everybody else says a word. It is called with who asks.
type crew func(who string)

func (c crew) Reply(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Reply, error) {
	who, _, _ := strings.Cut(r.CacheKey, "@")
	c(who)
	if last := r.Messages[len(r.Messages)-1].Parts.Text(); who != string(muster.Lead) && strings.Contains(last, "Task #1: look around") {
		return calls("done", "complete_task", in{"task_id": 1, "summary": "There was nothing to do."})
	}
	return says("Ready.")
}

// oneTask is a lead with one task for one teammate.
const oneTask = `
speakers:
  lead:
    - do: [{task_create: {subject: one}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
      until: All done
    - say: Done.
`

// writes does any task in one step.
const writes = `scenes:
  - cue: 'Task #(?P<id>\d+): (?P<what>\w+)'
    turns:
      - do: [{write_file: {path: "${what}.txt", content: "${what}\n"}}]
      - do: [{complete_task: {task_id: "${number:id}", summary: "${what}"}}]
`

// An idle member is timed out, the lead reads of it, and it is spawned again by name with its conversation and new words.
func TestIdleTimeoutAndSpawnedAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		r := h.start(`
speakers:
  lead:
    - do:
        - spawn_teammate: {name: alice, role: coder, prompt: First words.}
        - spawn_teammate: {name: bob, role: slow, prompt: Think.}
    - do: [{wait: {}}]
    - do: [{send_message: {to: alice, content: "Are you there?"}}, {broadcast: {content: "Is anybody there?"}}]
    - do: [{spawn_teammate: {name: alice, role: coder, prompt: First words.}}, {task_create: {subject: one, claim_role: coder}}]
    - do: [{wait: {}}]
    - say: Over.
  alice:
    - say: I am here.
  bob:
    - wait: 3m
      do: [{send_message: {to: lead, content: ready}}]
    - say: Bye.
`+writes, nil)
		h.until("alice is timed out", func(e muster.Event) bool { return e.Kind == journal.MemberShutdown && e.Text("reason") == "timeout" })
		if m := h.member("alice"); m.Status != muster.Shutdown || m.IdleReason != muster.IdleTimeout || m.Host != "" {
			t.Errorf("alice is %+v", m)
		}
		if h.turns("lead") != 2 {
			t.Errorf("the timeout alone woke the lead: %d turns", h.turns("lead"))
		}
		r.ends(0, time.Hour)
		h.heard("alice", "First words.", 2)
		h.heard("alice", "I am here.", 1)
		h.heard("alice", "Are you there?", 1)
		h.heard("lead", "alice has shut down: it reads this when it is spawned again. To start it again call spawn_teammate", 1)
		h.heard("lead", "Sent to bob. These have shut down: alice. To start it again call spawn_teammate", 1)
		h.heard("lead", "alice found nothing to do for 1m0s and shuts down", 1)
		if h.task(1).Owner != "alice" || h.member("alice").Epoch < 3 {
			t.Errorf("%+v", h.task(1))
		}
	})
}
