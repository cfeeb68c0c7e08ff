package teammate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/hooks"
	"muster/internal/transcript"
	"muster/journal"
	"muster/llm"
)

// waited is what a wait of the lead has returned, and how long it took.
type waited struct {
	text string
	took time.Duration
	err  error
}

// wait begins a wait of the lead, and returns when it is over or sleeps.
func (l *life) wait(landings bool) <-chan waited {
	over := make(chan waited, 1)
	go func() {
		began := time.Now()
		r, err := l.lead.Wait(l.Context(), landings)
		over <- waited{r.Text(), time.Since(began), err}
	}()
	synctest.Wait()
	return over
}

// A lead that waits is woken at once by what needs it, and is shown idle in between. While it sleeps it costs no turns.
func TestAWaitingLeadIsWokenAtOnce(t *testing.T) {
	live(t, muster.Lead, func(l *life) {
		l.open()
		l.create(board.Draft{})
		l.change("alice", func(m *muster.Member) { m.Status = muster.Working })
		l.phase.change(func(c *counters) { c.turns, c.extended = 9, true })
		l.lead.toldStuck = true
		over := l.wait(false)
		if m := l.record(muster.Lead); m.Status != muster.Idle || m.IdleReason != muster.IdleMessages || m.Doing == "" {
			l.Errorf("asleep it is %+v", m)
		}
		time.Sleep(90 * time.Second)
		l.send(muster.MailLanded, muster.System, muster.Lead, "Task #1 landed.") // news, which it did not ask for
		synctest.Wait()
		l.send(muster.MailMessage, "alice", muster.Lead, "I wonder.")
		if w := <-over; w.err != nil || w.text != mailWaits || w.took != 90*time.Second {
			l.Errorf("mail: %+v", w)
		}
		if m := l.record(muster.Lead); m.Status != muster.Working || m.Doing != "" {
			l.Errorf("awake it is %+v", m)
		}
		if c := l.phase.get(); l.lead.toldStuck || c.turns != 0 || c.extended || !c.still.changed {
			l.Error("what came before it slept counts on")
		}
		l.phase.change(func(c *counters) { c.turns, c.still.changed = 9, false })
		l.lead.toldStuck = true
		for range 2 * repeatEnd { // mail is a reason to return each time, and no loop
			if w := <-l.wait(false); w.err != nil || w.text != mailWaits || w.took != 0 {
				l.Fatalf("mail still waits: %+v", w)
			}
		}
		if c := l.phase.get(); !l.lead.toldStuck || c.turns != 9 || c.still.changed {
			l.Error("a wait that did not sleep has begun a new phase")
		}
	})
}

// A lead that waits for landings is woken by the report of one that it has not read.
func TestALandingWakesALeadThatWaitsForIt(t *testing.T) {
	live(t, muster.Lead, func(l *life) {
		l.open()
		l.create(board.Draft{})
		l.change("alice", func(m *muster.Member) { m.Status = muster.Working })
		old := l.send(muster.MailLanded, muster.System, muster.Lead, "Task #8 landed.")
		l.must(l.conversation.say(l.Context(), []muster.MessageID{old.ID}, "as it was"))
		over := l.wait(true)
		time.Sleep(10 * time.Second)
		l.send(muster.MailLanded, muster.System, muster.Lead, "Task #9 landed.")
		if w := <-over; w.err != nil || w.text != "Task #9 landed." || w.took != 10*time.Second {
			l.Errorf("%+v", w)
		}
		over = l.wait(false)
		time.Sleep(2 * time.Minute)
		l.send(muster.MailMessage, "alice", muster.Lead, "hello")
		if w := <-over; w.text != mailWaits || w.took != 2*time.Minute {
			l.Errorf("without a wait for landings: %+v", w)
		}
	})
}

// A lead is told of a request that waits for it when it would sleep, and again ten minutes later; of a task that nobody
// may claim it is told once. It sees at once what changes on the board and among the requests.
func TestALeadIsToldAgainOfARequest(t *testing.T) {
	live(t, muster.Lead, func(l *life) {
		l.open()
		ctx := l.Context()
		l.change("alice", func(m *muster.Member) { m.Status = muster.Working })
		over := l.wait(false)
		l.create(board.Draft{Subject: "tests", Role: "tester"})
		if w := <-over; w.err != nil || !strings.HasPrefix(w.text, "No teammate can claim the tasks that are ready: task #1 is for a tester") ||
			!strings.Contains(w.text, "(#1 tests ") || w.took != 0 {
			l.Errorf("an unclaimable task: %+v", w)
		}
		l.ask("0000beef", muster.AskPermission, "alice", muster.Lead)
		l.ask("0000cafe", muster.AskPermission, "alice", muster.User)
		if _, err := l.conversation.deliver(ctx); err != nil {
			l.Fatal(err)
		}
		for _, want := range []time.Duration{0, remindAfter} {
			if w := <-l.wait(false); w.err != nil || !strings.HasPrefix(w.text, "Request 0000beef of alice") || w.took != want {
				l.Errorf("after %v: %+v", want, w)
			}
		}
		l.change("alice", func(m *muster.Member) { m.Status = muster.Shutdown })
		over = l.wait(false)
		l.decide("0000cafe", muster.User, true, "")
		if w := <-over; !strings.HasPrefix(w.text, "Nothing can wake you") || w.took != 0 {
			l.Errorf("what it hoped for is decided: %+v", w)
		}
	})
}

// Of a task that somebody outside of the team holds the lead is told once, and so is the user.
func TestALeadIsToldOfATaskHeldOutside(t *testing.T) {
	live(t, muster.Lead, func(l *life) {
		l.open()
		l.claimOnBoard("script")
		l.change("alice", func(m *muster.Member) { m.Status = muster.Working })
		over := l.wait(false)
		time.Sleep(10 * time.Second) // the team does not wait for it while somebody works
		l.change("alice", func(m *muster.Member) { m.Status = muster.Idle })
		if w := <-over; w.err != nil || w.took != 10*time.Second || !strings.HasPrefix(w.text, "The team waits for task #1 (the parser), which script holds") {
			l.Errorf("%+v", w)
		}
		over = l.wait(false)
		time.Sleep(time.Hour)
		l.send(muster.MailMessage, "alice", muster.Lead, "hello")
		if w := <-over; w.text != mailWaits || w.took != time.Hour || len(l.events(journal.RunNote)) != 1 {
			l.Errorf("%+v; the user reads %v", w, l.events(journal.RunNote))
		}
	})
}

// A lead that waits again and again where nothing can move, and does nothing about it, is in a loop.
func TestWaitsForNothingAreALoop(t *testing.T) {
	live(t, muster.Lead, func(l *life) {
		l.open()
		l.create(board.Draft{Role: "tester"})
		for n := 1; n <= repeatEnd; n++ {
			w := <-l.wait(false)
			if isLoop := errors.Is(w.err, errLoop); isLoop != (n == repeatEnd) ||
				!isLoop && (w.err != nil || !strings.HasPrefix(w.text, "Nothing can wake you: task #1 is for a tester")) {
				l.Errorf("wait %d: %+v", n, w)
			}
		}
	})
}

// A wait ends with the reason why the lead was stopped, asleep or not.
func TestAStoppedWaitReturnsTheCause(t *testing.T) {
	live(t, muster.Lead, func(l *life) {
		l.open()
		l.change("alice", func(m *muster.Member) { m.Status = muster.Working })
		ctx, stop := context.WithCancelCause(l.Context())
		time.AfterFunc(time.Second, func() { stop(muster.CauseTurn) })
		for _, slept := range []bool{true, false} {
			w, err := l.lead.sleep(ctx, false)
			if !errors.Is(err, muster.CauseTurn) || w.text != "" || w.slept != slept {
				l.Errorf("%q, slept %v, %v", w.text, w.slept, err)
			}
		}
	})
}

// A lead that has ended its turn while others work is woken by what needs it, and reads the news that has collected.
// Mail that it hears makes what it was told before void.
func TestALeadSleepsWhileOthersWork(t *testing.T) {
	live(t, muster.Lead, func(l *life) {
		talk := newTalk()
		l.config.Talk = talk
		l.restart(muster.Lead)
		l.create(board.Draft{})
		l.change("alice", func(m *muster.Member) { m.Status = muster.Working })
		l.start(says("I sleep."))
		if l.hasEnded() || len(talk.rests) != 1 || talk.rests[0] {
			l.Fatalf("it ended with %v; the prompt was handed over %v", l.err, talk.rests)
		}
		l.send(muster.MailLanded, "alice", muster.Lead, "some news")
		synctest.Wait()
		if len(l.asked) != 1 {
			l.Fatal("news has woken it")
		}
		l.send(muster.MailMessage, "alice", muster.Lead, "I <reminder> wonder.")
		synctest.Wait()
		if len(l.asked) != 2 || strings.Count(l.heard(), "<reminder>"+mailWaits) != 1 ||
			!strings.Contains(l.heard(), "some news") || !strings.Contains(l.heard(), "wonder") {
			l.Errorf("asked %d times it hears %s", len(l.asked), l.heard())
		}
	})
}

// A lead without open tasks waits until the last teammate has stopped, and then the run ends.
func TestALeadAwaitsTheTeam(t *testing.T) {
	live(t, muster.Lead, func(l *life) {
		l.change("alice", func(m *muster.Member) { m.Status = muster.Working })
		l.start(says("Done."))
		if m := l.record(muster.Lead); l.hasEnded() || m.Status != muster.Idle || m.Doing != "waits for the team" {
			l.Fatalf("it is %+v", m)
		}
		time.Sleep(90 * time.Second)
		began := time.Now()
		l.change("alice", func(m *muster.Member) { m.Status = muster.Idle })
		if <-l.ended; l.err != nil || l.end != (End{Text: "Done."}) || time.Since(began) > time.Second {
			l.Errorf("after %v it ended with %+v, %v", time.Since(began), l.end, l.err)
		}
	})
}

// The end of a run whose lead was killed is read from the lead's last reply and the board.
func TestTheEndOfAKilledLead(t *testing.T) {
	lead := func(l *life, stop llm.Stop, words string) {
		l.open()
		l.reply(stop, words)
	}
	for _, c := range []struct {
		name  string
		stop  llm.Stop
		tasks int
		want  End
	}{
		{"all is done", llm.StopEnd, 0, End{Text: "It is done."}},
		{"its reply was cut off", llm.StopRefused, 0, End{Code: 3, Text: "lead's model refused: It is done."}},
		{"tasks are open", llm.StopEnd, 1, End{Text: "It is done."}},
		{"nothing needs it in the next run", llm.StopEnd, 0, End{}},
	} {
		live(t, muster.Lead, func(l *life) {
			if lead(l, c.stop, "It is done."); c.want == (End{}) {
				l.run.Playbook, l.run.StartedAt = &muster.Playbook{}, 2
			}
			l.must(l.conversation.say(l.Context(), nil, "and a mail"))
			_, err := l.world.Store.Log().Append(l.Context(), transcript.Stream(muster.Lead), l.conversation.script.Pos(),
				[]byte(`{"kind":"reply","message":7}`))
			l.must(err)
			for range c.tasks {
				l.create(board.Draft{})
			}
			if got, err := l.config.LeadEnd(l.Context()); err != nil || got != c.want {
				l.Errorf("%s: %+v, %v", c.name, got, err)
			}
		})
	}
	failEachOp(t, muster.Lead, func(l *life) { lead(l, llm.StopEnd, "It is done.") }, func(l *life) error {
		end, err := l.config.LeadEnd(l.Context())
		if (err != nil) != (end.Code == 1) {
			l.Errorf("it ended with %+v, %v", end, err)
		}
		return err
	})
}

// No error of the store is lost in what the lead does.
func TestAnErrorOfTheStoreEndsTheLead(t *testing.T) {
	failEachOp(t, muster.Lead, func(l *life) {
		l.create(board.Draft{})
		l.change("alice", func(m *muster.Member) { m.Status = muster.Working })
	}, func(l *life) error {
		l.start(says("I sleep."), says("I have read it."), says("What is it?"), says("Even so."))
		if !l.hasEnded() {
			l.send(muster.MailMessage, "alice", muster.Lead, "hello")
		}
		if !l.hasEnded() { // nothing can move any more, and the user says something
			_, err := l.world.Board.Update(l.Context(), 1, board.Patch{Role: new(string)})
			l.must(err)
			l.change("alice", func(m *muster.Member) { m.Status = muster.Shutdown })
		}
		time.Sleep(time.Hour)
		if !l.hasEnded() {
			return errors.New("it goes on")
		}
		return l.err
	}, "members/lead") // what a lead shows when it is woken is for people only
}

// The lead of a playbook is asked only when something needs it: it makes room for a role by itself, and asks once. A task
// that needs attention is no end without it.
func TestALeadThatNothingNeeds(t *testing.T) {
	live(t, muster.Lead, func(l *life) {
		l.run.Playbook, l.run.Cap = &muster.Playbook{}, 1
		l.create(board.Draft{Role: "writer"})
		l.start()
		if all := l.waiting(); len(all) != 1 || all[0].To != "alice" || len(l.asked) > 0 {
			l.Errorf("%+v wait, and the lead was asked %d times", all, len(l.asked))
		}
	})
	live(t, muster.Lead, func(l *life) {
		l.run.Playbook = &muster.Playbook{}
		task := l.claimOnBoard("alice")
		_, err := l.world.Board.Release(l.Context(), task.ID, task.Fence, board.Release{By: "alice", Final: true})
		l.must(err)
		if l.start(); !l.hasEnded() || l.end.Code != 3 || !strings.Contains(l.heard(), "board:\n#1 the parser") {
			l.Errorf("it ended with %+v, %v, asked %d times", l.end, l.err, len(l.asked))
		}
	})
}

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
			f, err := l.leadFacts(l.Context())
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
		l.config.Hooks = hooks.NewRunner([]hooks.Hook{{Event: hooks.UserPromptSubmit, Command: "echo", Timeout: time.Hour}}, "", nil)
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
		l.commands.prints = `{"decision":"block","reason":"It is late."}`
		l.config.Hooks.Start(l.commands, l.commands, l.config.Journal)
		l.send(muster.MailMessage, muster.User, muster.Lead, "Go on, I say.") // a hook refuses it
		synctest.Wait()
		if len(l.asked) != 2 || len(talk.heard) != 2 || len(l.events(journal.RunNote)) != 1 {
			l.Errorf("asked %d times, %v heard", len(l.asked), talk.heard)
		}
		close(talk.closed)
		if !l.hasEnded() || l.err != nil || l.end != (End{Text: "Nothing more?"}) {
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
		for _, want := range []string{"Wait for what they say", "Do this instead.", "another question"} {
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
