package team_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/llm"
	"muster/team"
)

// talking is a run with a user who talks.
type talking struct {
	*running
	talk *team.Conversation
}

// converse starts a conversation; the first words are the goal.
func (h *house) converse(m llm.Model, first string) *talking {
	h.Helper()
	c := team.NewConversation()
	t := h.open(m, func(cfg *team.Config) { cfg.Conversation = c })
	run := func(ctx context.Context) (team.Summary, error) { return t.Run(ctx, first, team.Start{}) }
	if first == "" {
		run = t.Resume
	}
	return &talking{h.begin(run), c}
}

// rests waits until the prompt is the user's.
func (c *talking) rests(done bool) {
	c.h.Helper()
	late := time.After(time.Hour)
	for {
		if resting, quiet := c.talk.Resting(); resting && quiet == done {
			return
		}
		select {
		case <-c.talk.Changed():
		case <-c.done:
			c.h.Fatalf("the run ended: %v (%s)\n%s", c.err, c.sum.Text, c.h.tail())
		case <-late:
			c.h.Fatalf("the prompt never came back\n%s", c.h.tail())
		}
	}
}

func (c *talking) say(text string) {
	c.h.Helper()
	if err := c.talk.Say(c.h.Context(), text); err != nil {
		c.h.Fatal(err)
	}
}

// echo answers what the user wrote last.
func echo(_ context.Context, n int, r llm.Request) (llm.Reply, error) {
	last := fmt.Sprint(r.Messages[len(r.Messages)-1].Parts)
	if n == 0 {
		return says("Hello.")
	}
	return says("You said " + last)
}

func TestConversationGoesOn(t *testing.T) {
	bubble(t, func(h *house) {
		m := cast{"lead": echo}.model()
		c := h.converse(m, "hi")
		c.rests(true)
		if lead := h.member(muster.Lead); lead.Status != muster.Idle || lead.Doing != "waits for you" {
			t.Errorf("the lead is %s %q", lead.Status, lead.Doing)
		}
		for _, word := range []string{"one", "two"} {
			time.Sleep(time.Hour) // nobody is timed out, nothing ends
			c.say(word)
			c.rests(true)
			if !strings.Contains(h.said(muster.Lead), "You said") || !strings.Contains(h.said(muster.Lead), word) {
				t.Fatalf("%s was not answered:\n%s", word, h.said(muster.Lead))
			}
		}
		c.talk.Close()
		sum := c.ends(0, time.Second)
		if !strings.Contains(sum.Text, "two") {
			t.Errorf("the last words are %q", sum.Text)
		}
	})
}

func TestConversationHearsWhileTheTeamWorks(t *testing.T) {
	bubble(t, func(h *house) {
		m := cast{
			"lead": func(_ context.Context, n int, r llm.Request) (llm.Reply, error) {
				switch n {
				case 0:
					return calls("a", "task_create", in{"subject": "long"})
				case 1:
					return calls("b", "spawn_teammate", in{"name": "alice", "role": "coder", "prompt": "work"})
				}
				return says(fmt.Sprintf("Turn %d.", n))
			},
			"alice": func(_ context.Context, n int, _ llm.Request) (llm.Reply, error) {
				if n == 0 {
					time.Sleep(10 * time.Minute)
					return calls("c", "complete_task", in{"task_id": 1, "summary": "done"})
				}
				return says("Finished.")
			},
		}.model()
		c := h.converse(m, "do it")
		c.rests(false) // the team works on, the prompt is back
		c.say("how is it going?")
		c.rests(false)
		if !strings.Contains(h.said(muster.Lead), "Turn 3.") {
			t.Fatalf("the lead did not answer while the team works:\n%s", h.said(muster.Lead))
		}
		c.rests(true)
		if got := h.task(1); got.Status != muster.Completed {
			t.Errorf("the task is %s", got.Status)
		}
		time.Sleep(time.Hour)
		if alice := h.member("alice"); alice.Status != muster.Idle {
			t.Errorf("alice is %s: nobody is timed out while the user is there", alice.Status)
		}
		c.talk.Close()
		c.ends(0, time.Minute)
	})
}

func TestConversationIsKeptAndGoesOn(t *testing.T) {
	bubble(t, func(h *house) {
		m := cast{
			"lead": func(_ context.Context, n int, r llm.Request) (llm.Reply, error) {
				if n == 0 {
					return calls("a", "task_create", in{"subject": "later"})
				}
				return says("There is a task.")
			},
		}.model()
		c := h.converse(m, "note it")
		c.rests(false)
		c.interrupt()
		again := h.converse(cast{"lead": echo}.model(), "")
		again.rests(false)
		again.say("drop it")
		again.rests(false)
		if said := h.said(muster.Lead); !strings.Contains(said, "note it") || !strings.Contains(said, "drop it") {
			t.Errorf("one conversation:\n%s", said)
		}
		again.interrupt()
	})
}

// Another process can stop the lead's turn, and is told what came of it, also where there is none to stop. Nothing goes on
// before the user has spoken.
func TestAnAttachmentStopsATurn(t *testing.T) {
	attached := func(h *house) (stop func() error, detach func()) {
		a, err := h.open(cast{}.model(), nil).Attach(h.Context())
		if err != nil {
			t.Fatal(err)
		}
		told := make(chan error, 1)
		return func() error { a.Interrupt(func(err error) { told <- err }); return <-told }, a.Detach
	}
	bubbleOnGit(t, func(h *house) {
		c := h.converse(cast{"lead": func(ctx context.Context, n int, r llm.Request) (llm.Reply, error) {
			if n%2 == 0 {
				return hangs(ctx, n, r)
			}
			return echo(ctx, n, r)
		}}.model(), "think long")
		time.Sleep(time.Second)
		stop, detach := attached(h)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		c.rests(true)
		if err := stop(); err == nil || !strings.Contains(err.Error(), "it waits already") {
			t.Errorf("a second time: %v", err)
		}
		if _, err := h.post.Send(h.Context(), muster.Message{Type: muster.MailMessage, From: "system", To: muster.Lead, Content: "news"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if n := h.turns("lead"); n != 1 {
			t.Errorf("asked %d times: others' mail went before the user", n)
		}
		c.say("shorter")
		c.rests(true)
		said := h.said(muster.Lead)
		if !strings.Contains(said, "The user stopped your turn here") || !strings.Contains(said, "news") || strings.Contains(said, "permission") {
			t.Errorf("it has heard:\n%s", said)
		}
		c.say("and longer")
		time.Sleep(time.Second)
		if isStopped := c.talk.Interrupt(); !isStopped { // in its own process
			t.Error("it has a turn")
		}
		c.rests(true)
		if isStopped := c.talk.Interrupt(); isStopped {
			t.Error("it has none any more")
		}
		detach()
		c.talk.Close()
		c.ends(0, time.Minute)
	})
	bubbleOnGit(t, func(h *house) { // nobody talks with the lead of a plain run
		r := h.start("speakers: {lead: [{wait: 10s, say: Done.}]}", nil)
		time.Sleep(time.Second)
		stop, detach := attached(h)
		if err := stop(); err == nil || !strings.Contains(err.Error(), "muster stop") {
			t.Errorf("a plain run: %v", err)
		}
		detach()
		r.ends(0, time.Minute)
	})
}
