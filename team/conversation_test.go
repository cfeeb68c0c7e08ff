package team_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/testing/rawnames"
	"muster/internal/testing/require"
	"muster/llm"
	"muster/team"
)

// talking is a run with a user who talks.
type talking struct {
	*running
	talk *team.Conversation
}

func (h *house) converse(m llm.Model, first string) *talking {
	h.Helper()
	c := team.NewConversation()
	t := h.open(m, func(cfg *team.Config) { cfg.Conversation = c })
	return &talking{h.begin(func(ctx context.Context) (team.Summary, error) { return t.Run(ctx, first, team.Start{}) }), c}
}

func (c *talking) rests() {
	c.h.Helper()
	late := time.After(time.Hour)
	for {
		if resting, quiet := c.talk.Resting(); resting && quiet {
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

func echo(_ context.Context, n int, r llm.Request) (llm.Reply, error) {
	last := fmt.Sprint(r.Messages[len(r.Messages)-1].Parts)
	if n == 0 {
		return says("Hello.")
	}
	return says("You said " + last)
}

// Another process can stop the lead's turn, and is told what came of it, also where there is none to stop. Nothing goes on
// before the user has spoken.
func TestAnAttachmentStopsATurn(t *testing.T) {
	attached := func(h *house) (stop func() error, detach func()) {
		a := require.Value(h.open(cast{}.model(), nil).Attach(h.Context()))(t)
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
		require.NoError(t, stop())
		c.rests()
		if err := stop(); err == nil || !strings.Contains(err.Error(), "it waits already") {
			t.Errorf("a second time: %v", err)
		}
		require.Value(h.post.Send(h.Context(), muster.Message{Type: muster.MailMessage, From: "system", To: muster.Lead, Content: "news"}))(t)
		time.Sleep(time.Minute)
		if n := h.turns("lead"); n != 1 {
			t.Errorf("asked %d times: others' mail went before the user", n)
		}
		c.say("shorter")
		c.rests()
		said := h.said(muster.Lead)
		if !strings.Contains(said, "The user stopped your turn here") || !strings.Contains(said, "news") || strings.Contains(said, "permission") {
			t.Errorf("it has heard:\n%s", said)
		}
		c.say("and longer")
		time.Sleep(time.Second)
		if isStopped := c.talk.Interrupt(); !isStopped { // in its own process
			t.Error("it has a turn")
		}
		c.rests()
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

// A conversation reads like one: words, calls in a few words, answers, and mail as mail.
func TestConversationOfAMember(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		tm := h.open(h.scripted(`
speakers:
  lead:
    - say: I begin.
      do: [{task_create: {subject: write it}}, {task_create: {subject: and more}}, {claim_task: {task_id: 1}}]
    - do: [{send_message: {to: lead, content: "a note\nto me"}}]
    - do: [{read_file: {path: nothing}}]
    - do: [{complete_task: {task_id: 1, summary: Nothing to do.}}]
    - do: [{claim_task: {task_id: 2}}, {complete_task: {task_id: 2, summary: Nothing to do.}}]
    - say: Done.
`), nil)
		h.tellLead("hello\nthere")
		h.run(tm).ends(0, time.Hour)
		var all []string
		var last muster.Pos
		for s, err := range tm.Members().Conversation(h.Context(), muster.Lead, 0) {
			require.NoError(t, err)
			all, last = append(all, strings.TrimSpace(string(s.Kind)+" "+s.Tool+" "+s.Text+" "+string(s.Input))), s.Pos
		}
		for _, want := range []string{"text  I begin.", `call task_create write it {"subject":"write it"}`, "in  from user: hello\nthere", "text  Done."} {
			if !slices.Contains(all, want) {
				t.Errorf("no %q in %q", want, all)
			}
		}
		for _, raw := range rawnames.Find(strings.Join(all, "\n")) {
			t.Errorf("it is shown as the model reads it: %s", raw)
		}
		for who, at := range map[muster.Name]muster.Pos{muster.Lead: last, "nobody": 0} {
			for s, err := range tm.Members().Conversation(h.Context(), who, at) {
				t.Errorf("%s after %d: %+v, %v", who, at, s, err)
			}
		}
	})
}

// The list of steps is the one that was taken last, wherever a reader has stopped before: a call that was refused and
// what another tool prints change nothing.
func TestTheStepsOfAMember(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		tm := h.open(h.scripted(`
speakers:
  lead:
    - do: [{bash: {command: "printf '[x] 1 nothing\\n1 of 1 completed'"}}, {todo: {items: [{id: a, text: "write\nit", status: in_progress}]}}, {todo: {items: [{id: a, text: x, status: odd}]}}]
    - do: [{todo: {items: []}}]
    - say: Done.
`), nil)
		h.run(tm).ends(0, time.Hour)
		read := func(after muster.Pos) (ends []muster.Pos, lists [][]team.Step) {
			for s, err := range tm.Members().Conversation(h.Context(), muster.Lead, after) {
				require.NoError(t, err)
				if ends = append(ends, s.Pos); s.Steps != nil {
					lists = append(lists, s.Steps)
				}
			}
			return ends, lists
		}
		want := [][]team.Step{{{Text: "write\nit", Status: team.StepInProgress}}, {}}
		ends, lists := read(0)
		if !reflect.DeepEqual(lists, want) {
			t.Fatalf("the lists are %q, want %q", lists, want)
		}
		// The rest that each place has is the end of the same lists.
		for _, at := range ends {
			if _, rest := read(at); len(rest) > 2 || !reflect.DeepEqual(rest, want[2-len(rest):]) && len(rest) > 0 {
				t.Errorf("from %d on the lists are %q", at, rest)
			}
		}
		if _, rest := read(ends[slices.IndexFunc(ends, func(p muster.Pos) bool { return p > ends[0] })]); len(rest) != 2 {
			t.Errorf("after the calls the lists are %q", rest)
		}
	})
}
