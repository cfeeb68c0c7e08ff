package teammate

import (
	"testing"

	"muster"
	"muster/llm"
)

// factsAt are the facts of a member at a stage.
func (p *life) factsAt(s Stage) Facts {
	p.Helper()
	p.stage = s
	f, err := p.Member.facts(p.Context())
	p.must(err)
	return f
}

// A member that starts looks at what its conversation holds, and whether the model owes a reply.
func TestTheFactsOfAStart(t *testing.T) {
	p := newParts(t, "alice")
	p.Member.start.Opened = true
	if f := p.factsAt(Starting).Start; f != (StartFacts{Opened: true, Empty: true}) {
		t.Errorf("nothing was said: %+v", f)
	}
	p.must(p.conversation.say(t.Context(), nil, "Hello."))
	if f := p.factsAt(Starting).Start; f != (StartFacts{Opened: true, OwesReply: true}) {
		t.Errorf("the model was asked: %+v", f)
	}
	p.reply(llm.StopEnd, "Hello.")
	p.phase.Idle("")
	if f := p.factsAt(Starting).Start; f != (StartFacts{Opened: true, PhaseOver: true}) {
		t.Errorf("the model has answered, and a tool has ended the phase: %+v", f)
	}
}

// A conversation that was started afresh helps again after three replies.
func TestTheFactsOfAPhase(t *testing.T) {
	for _, c := range []struct {
		restarts, replies, want int
	}{{0, 0, 0}, {2, minReplies - 1, 2}, {1, minReplies, 0}} {
		p := newParts(t, "alice")
		p.Member.err, p.byUser = errTest, true
		p.phase.change(func(n *counters) { n.restarts, n.replies, n.leaves = c.restarts, c.replies, true })
		if f := p.factsAt(PhaseEnded).Phase; f != (PhaseFacts{Err: errTest, ByUser: true, ShutdownGranted: true,
			Restarts: c.want}) {
			t.Errorf("%+v: %+v", c, f)
		}
	}
}

// Mail is looked for wherever it decides what follows; after the shutdown also whether the member was spawned again.
func TestTheFactsOfMail(t *testing.T) {
	for _, stage := range []Stage{Resting, Leaving, Left} {
		p := newParts(t, "alice")
		p.must(p.presence.leave(t.Context()))
		if f := p.factsAt(stage); f.WakingMail || f.Replaced {
			t.Errorf("%d: no mail: %+v", stage, f)
		}
		p.send(muster.MailMessage, "bob", "alice", "Look.")
		if f := p.factsAt(stage); !f.WakingMail || f.Replaced {
			t.Errorf("%d: mail: %+v", stage, f)
		}
		_, err := p.Roster.Add(t.Context(), muster.Member{Name: "alice", Role: "coder", Prompt: "Work."})
		p.must(err)
		if f := p.factsAt(stage); !f.WakingMail || f.Replaced != (stage == Left) {
			t.Errorf("%d: spawned again: %+v", stage, f)
		}
	}
}
