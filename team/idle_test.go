package team_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"muster"
	"muster/internal/testing/tapped"
	"muster/internal/testing/tier"
	"muster/journal"
	"muster/llm"
	"muster/team"
)

// Idle teammates cost a goroutine, a hint of their inbox, and nothing else: no watch of the board, no
// conversation in memory, no write however long they wait. One new task wakes one of them.
func TestThousandIdle(t *testing.T) { // not parallel: it counts what the process has
	many := tier.Amount(100, 1000)
	bubble(t, func(h *house) {
		m := &meter{watches: map[string]int{}, puts: map[string]int{}}
		crew, talk := &crew{}, team.NewConversation()
		r := h.run(h.open(crew, func(c *team.Config) {
			c.Store = tapped.Store{Store: c.Store, Before: m.tap}
			c.Teammates, c.Conversation, c.Limits.IdleTimeout = many, talk, -1
		}))
		h.until("the lead has spoken", is(journal.TurnEnded, muster.Lead))
		synctest.Wait()
		watches, _ := m.counts()
		goroutines := runtime.NumGoroutine()

		h.addMany(many)
		synctest.Wait()
		if n := h.count(func(e muster.Event) bool { return e.Kind == journal.MemberIdle && e.Member != muster.Lead }); n != many {
			t.Fatalf("%d of %d are idle\n%s", n, many, h.tail())
		}
		watchesNow, boxes := m.counts()
		if watchesNow != watches+many || boxes != 1 {
			t.Errorf("%d watches with the lead alone, %d with %d teammates, at most %d of one inbox", watches, watchesNow, many, boxes)
		}
		if now := runtime.NumGoroutine() - goroutines; now > many+10 { // one each, and a few that are not theirs
			t.Errorf("%d teammates have %d goroutines", many, now)
		}
		crew.hasReleased(t, many)

		time.Sleep(time.Minute) // what is gathered before it is written, for other programs to read, is written
		synctest.Wait()
		m.forget()
		crew.forget()
		time.Sleep(time.Hour)
		synctest.Wait()
		if puts, asked := m.forget(), crew.forget(); len(puts) != 0 || len(asked) != 0 {
			t.Errorf("in an hour with nothing to do %d members were asked, and written was %v", len(asked), puts)
		}

		task := h.create("look around")
		h.until("the task is completed", is(journal.TaskCompleted, ""))
		synctest.Wait()
		who := h.task(task.ID).Owner
		for name, asked := range crew.forget() {
			if name != who && name != muster.Lead {
				t.Errorf("%s was asked %d times: the task is %s's", name, asked, who)
			}
		}
		for key, times := range m.forget() {
			if name, member := strings.CutPrefix(key, muster.TableMembers+"/"); member && name != string(who) && name != string(muster.Lead) {
				t.Errorf("%s was written %d times: the task is %s's", key, times, who)
			}
		}
		crew.hasReleased(t, many)
		talk.Close()
		r.ends(0, time.Minute)
	})
}

func (h *house) addMany(n int) {
	h.Helper()
	for i := range n {
		h.add(fmt.Sprintf("t%d", i), "coder")
	}
}

// crew is a model of all members: who has a task completes it, everybody else says a word. It knows which of the
// conversations that it was shown are still in memory.
type crew struct {
	mu    sync.Mutex
	shown map[muster.Name]weak.Pointer[llm.Part] // the first part of each conversation
	asked map[muster.Name]int
}

func (c *crew) Reply(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Reply, error) {
	who, _, _ := strings.Cut(r.CacheKey, "@")
	c.mu.Lock()
	if c.shown == nil {
		c.shown, c.asked = map[muster.Name]weak.Pointer[llm.Part]{}, map[muster.Name]int{}
	}
	c.shown[muster.Name(who)] = weak.Make(&r.Messages[0].Parts[0])
	c.asked[muster.Name(who)]++
	c.mu.Unlock()
	for _, p := range r.Messages[len(r.Messages)-1].Parts {
		if text, ok := p.(llm.Text); ok && who != string(muster.Lead) && strings.Contains(text.Text, "Task #1: look around") {
			return calls("done", "complete_task", in{"task_id": 1, "summary": "There was nothing to do."})
		}
	}
	return says("Ready.")
}

func (c *crew) forget() map[muster.Name]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := c.asked
	c.asked = map[muster.Name]int{}
	return asked
}

func (c *crew) hasReleased(t *testing.T, many int) {
	t.Helper()
	runtime.GC()
	c.mu.Lock()
	defer c.mu.Unlock()
	held := 0
	for who, p := range c.shown {
		if who != muster.Lead && p.Value() != nil {
			held++
		}
	}
	if len(c.shown) < many || held != 0 {
		t.Errorf("%d of %d conversations are in memory", held, len(c.shown))
	}
}

// meter counts the watches that the users of a store hold, and what they write.
type meter struct {
	mu      sync.Mutex
	watches map[string]int // by what is watched
	puts    map[string]int // by table/key
}

// counts are the watches that are held now, and the most of one teammate's inbox.
func (m *meter) counts() (watches, perBox int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for what, n := range m.watches {
		watches += n
		if strings.HasPrefix(what, "inbox/t") {
			perBox = max(perBox, n)
		}
	}
	return watches, perBox
}

func (m *meter) forget() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	puts := m.puts
	m.puts = map[string]int{}
	return puts
}

func (m *meter) tap(ctx context.Context, op, key string, _ []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch op {
	case "put":
		m.puts[key]++
	case "watch":
		m.watches[key]++
		context.AfterFunc(ctx, func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.watches[key]--
		})
	}
	return nil
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
		h.heard("lead", "Sent to bob. Not sent to who has shut down: alice. To start it again call spawn_teammate", 1)
		h.heard("lead", "alice found nothing to do for 1m0s and shuts down", 1)
		if h.task(1).Owner != "alice" || h.member("alice").Epoch < 3 {
			t.Errorf("%+v", h.task(1))
		}
	})
}
