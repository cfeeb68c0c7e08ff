package teammate

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"muster"
	"muster/internal/board"
)

// At the end of its turn the lead hears the user whatever else holds, and in a conversation everybody, unless the user
// has stopped it to speak first.
func TestWhomTheLeadHears(t *testing.T) {
	for _, c := range []struct {
		from           muster.Name
		inTalk, onHold bool
		want           bool
	}{
		{muster.User, false, false, true}, {muster.User, true, false, true}, {muster.User, true, true, true},
		{"alice", false, false, false}, {"alice", true, false, true}, {"alice", true, true, false},
		{"", true, false, false},
	} {
		live(t, muster.Lead, func(l *life) {
			if c.inTalk {
				l.config.Talk = newTalk()
				l.restart(muster.Lead)
			}
			l.open()
			l.create(board.Draft{Role: "tester"})
			l.phase.change(func(p *counters) { p.onHold, p.words = c.onHold, "So far." })
			if c.from != "" {
				l.send(muster.MailMessage, c.from, muster.Lead, "hello")
			}
			f, err := l.lead.turnFacts(l.Context())
			if err != nil || f.ToHear != c.want || f.Message != "So far." || f.OnHold != c.onHold {
				l.Errorf("%+v: %+v, %v", c, f, err)
			}
			if !f.ToHear && len(f.Progress.Open) != 1 {
				l.Errorf("%+v: the progress is %+v", c, f.Progress)
			}
		})
	}
}

// In a conversation the lead listens where the run would end: it hears the user and its team, and the run ends when the
// user closes the conversation.
func TestALeadListensToTheUser(t *testing.T) {
	live(t, muster.Lead, func(l *life) {
		talk := newTalk()
		l.config.Talk = talk
		l.restart(muster.Lead)
		l.start(says("What next?"))
		if m := l.record(muster.Lead); l.hasEnded() || m.Doing != "waits for you" || len(talk.rests) == 0 || slices.Contains(talk.rests, false) {
			l.Fatalf("it is %+v; the prompt was handed over %v", m, talk.rests)
		}
		if talk.turns != 0 {
			l.Error("its turn is not over")
		}
		l.send(muster.MailMessage, muster.User, muster.Lead, "Go on.")
		synctest.Wait()
		if len(l.asked) != 2 || !strings.Contains(l.heard(), "Go on.") || len(talk.heard) != 1 {
			l.Errorf("asked %d times it hears %s", len(l.asked), l.heard())
		}
		close(talk.closed)
		if !l.hasEnded() || l.err != nil || l.end != (End{Text: "Nothing more."}) {
			l.Errorf("it ended with %+v, %v", l.end, l.err)
		}
	})
}

// A user who stops a turn is heard before the lead goes on: what it was about to say counts for nothing, and its calls
// are answered.
func TestTheUserStopsATurn(t *testing.T) {
	live(t, muster.Lead, func(l *life) {
		talk := newTalk()
		l.config.Talk = talk
		l.restart(muster.Lead)
		l.create(board.Draft{})
		l.change("alice", func(m *muster.Member) { m.Status = muster.Working })
		l.start(says("First."), calls("wait", nil, func() { talk.stop(muster.CauseTurn) }))
		talk.rests = nil
		l.send(muster.MailMessage, "alice", muster.Lead, "a question")
		synctest.Wait()
		if l.hasEnded() || len(l.asked) != 2 || len(talk.rests) == 0 || slices.Contains(talk.rests, true) || talk.turns != 0 {
			l.Fatalf("asked %d times, rests %v, ended with %v", len(l.asked), talk.rests, l.err)
		}
		if m := l.record(muster.Lead); m.Doing != "waits for you" || l.finalMessage() != "" {
			l.Errorf("it is %+v, and its last words are %q", m, l.finalMessage())
		}
		l.send(muster.MailMessage, "alice", muster.Lead, "another question") // the user speaks first
		synctest.Wait()
		if len(l.asked) != 2 {
			l.Error("it goes on before the user has spoken")
		}
		l.send(muster.MailMessage, muster.User, muster.Lead, "Do this instead.")
		synctest.Wait()
		for _, want := range []string{"Hear first what they want", "Do this instead.", "another question"} {
			if !strings.Contains(l.heard(), want) {
				l.Errorf("it does not hear %q: %s", want, l.heard())
			}
		}
	})
}

// A limit of the lead ends its phase in a conversation: the user reads why, and says how to go on.
func TestALimitOfTheLeadAsksTheUser(t *testing.T) {
	live(t, muster.Lead, func(l *life) {
		talk := newTalk()
		l.config.Talk, l.config.Limits.Turns = talk, 1
		l.restart(muster.Lead)
		l.create(board.Draft{Role: "tester"})
		l.start(calls("list_teammates", nil), calls("task_list", nil), calls("task_list", nil))
		if l.hasEnded() || len(talk.rests) == 0 || slices.Contains(talk.rests, true) || len(l.asked) != 2 {
			l.Fatalf("asked %d times, rests %v, ended with %v", len(l.asked), talk.rests, l.err)
		}
		if e := l.events("run.note"); len(e) != 1 || !strings.Contains(e[0].Fields["text"].(string), errTurns.Error()) {
			l.Errorf("the user reads %v", e)
		}
		l.turns = nil
		l.send(muster.MailMessage, muster.User, muster.Lead, "Go on.")
		synctest.Wait()
		if len(l.asked) < 3 {
			l.Error("it does not go on")
		}
	})
}

// What the user says makes void that the lead was told that nothing can move: it is told again.
func TestAHeardUserBeginsAnew(t *testing.T) {
	live(t, muster.Lead, func(l *life) {
		l.config.Talk = newTalk()
		l.restart(muster.Lead)
		l.create(board.Draft{Role: "tester"})
		l.start(says("Done."), says("Even so."))
		l.send(muster.MailMessage, muster.User, muster.Lead, "And now?")
		synctest.Wait()
		if n := strings.Count(l.heard(), "You ended your turn, but"); n != 2 || len(l.asked) != 4 {
			l.Errorf("asked %d times, it was told %d times", len(l.asked), n)
		}
	})
}
