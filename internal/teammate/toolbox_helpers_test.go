package teammate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"muster"
	"muster/internal/transcript"
	"muster/journal"
	"muster/llm"
)

// talkOf returns the conversation of a helper in a line.
func (l *life) talkOf(name muster.Name) string {
	l.Helper()
	var all []string
	for e, err := range transcript.Read(l.Context(), l.world.Store.Log(), name, 0) {
		l.must(err)
		said := e.Text
		if e.Message != nil {
			said = textOf(*e.Message)
			for _, p := range e.Message.Parts {
				switch p := p.(type) {
				case llm.Call:
					said += " " + p.Name
				case llm.Result:
					said += p.Text()
				}
			}
		}
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %.40s", e.Kind, strings.TrimSpace(said))))
	}
	return strings.Join(all, "; ")
}

// Each helper has a name of its own, in every process, which its events, its calls and its transcript have.
func TestEachHelperHasANameAndATranscript(t *testing.T) {
	live(t, "alice", func(l *life) {
		var names []string
		noted := func(next turn) turn {
			return func(r llm.Request) (llm.Reply, error) {
				names = append(names, r.Agent+" "+r.Role)
				return next(r)
			}
		}
		ask := calls("subagent", map[string]any{"kind": "explore", "prompt": "find it\nand more"})
		l.start(noted(ask), noted(calls("glob", map[string]any{"pattern": "*.go"})), noted(says("I found it.")), noted(says("Done.")))
		synctest.Wait()
		l.stop(muster.CauseUser)
		<-l.ended
		l.restart("alice")
		l.send(muster.MailMessage, muster.Lead, "alice", "again")
		l.start(ask, noted(says("Again.")), says("Done."))
		synctest.Wait()
		want := []string{" ", "alice.explore-1 explore", "alice.explore-1 explore", " ", "alice.explore-2 explore"}
		if !slices.Equal(names, want) {
			l.Errorf("the model is asked by %q, want %q", names, want)
		}
		for _, kind := range []string{journal.AgentStarted, journal.ToolStarted, journal.ToolEnded, journal.TurnEnded, journal.AgentEnded} {
			is := slices.ContainsFunc(l.events(kind), func(e muster.Event) bool {
				return e.Member == "alice" && e.Text("agent") == "alice.explore-1" && e.Text("role") == "explore"
			})
			if !is {
				l.Errorf("no event %s names the helper: %v", kind, l.events(kind))
			}
		}
		talk := l.talkOf("alice.explore-1")
		if !strings.HasPrefix(talk, "mark find it\nand more; user ") || !strings.Contains(talk, "; reply glob; result ") ||
			!strings.HasSuffix(talk, "; reply I found it.") {
			l.Errorf("the helper's transcript has %s", talk)
		}
		if talk := l.talkOf("alice.explore-2"); !strings.HasSuffix(talk, "; reply Again.") {
			l.Errorf("the second helper's transcript has %s", talk)
		}
	})
}

// A conversation that begins again, or is made shorter, is in the transcript as it is sent.
func TestTranscriptsOfHelpersFollowTheirConversations(t *testing.T) {
	l := newParts(t, "alice")
	ctx, end, err := l.toolbox.helpers.begin(l.Context(), "Der Prüfer", "m", "review")
	l.must(err)
	say := func(texts ...string) llm.Message {
		m := llm.Message{Role: llm.User}
		for _, s := range texts {
			m.Parts = append(m.Parts, llm.Text{Text: s})
		}
		return m
	}
	call := llm.Call{ID: "1", Name: "grep", Input: []byte("{}")}
	asks := llm.Message{Role: llm.Assistant, Parts: llm.Parts{call}}
	answer := llm.Message{Role: llm.User, Parts: llm.Parts{llm.Result{ID: "1", Parts: llm.Parts{llm.Text{Text: "found"}}}}}
	for i, c := range []struct {
		messages []llm.Message
		reply    llm.Message
	}{
		{[]llm.Message{say("facts", "look")}, llm.Message{Role: llm.Assistant}},
		{[]llm.Message{say("facts", "look", "go on")}, asks},
		{[]llm.Message{say("facts", "look", "go on"), asks, answer}, asks},
		{[]llm.Message{say("short"), asks, answer}, asks},
		{[]llm.Message{say("facts", "look")}, asks},
	} {
		m := helperModel{turns(func(llm.Request) (llm.Reply, error) { return llm.Reply{Message: c.reply, Stop: llm.StopTools}, nil })}
		if _, err := m.Reply(ctx, llm.Request{Messages: c.messages}, nil); err != nil {
			l.Errorf("turn %d: %v", i, err)
		}
	}
	end()
	want := "mark review; user factslook; reply; user go on; reply grep; result found; reply grep; " +
		"result (the agent has ended); compressed it has grown too long; reply grep; result (the agent has ended); " +
		"fresh factslook; reply grep; result (the agent has ended)"
	if got := l.talkOf("alice.der-pr-fer-1"); got != want {
		t.Errorf("the transcript is\n%s\nwant\n%s", got, want)
	}
}

// turns is a model of one function.
type turns func(llm.Request) (llm.Reply, error)

func (f turns) Reply(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Reply, error) {
	return f(r)
}
