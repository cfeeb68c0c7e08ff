package teammate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/board"
	"muster/journal"
	"muster/llm"
)

// Where a conversation has few messages left, a member that is woken is told who it is; in a new one it was told so
// with the opening words.
func TestWhoAMemberIsIsSaidInAShortConversation(t *testing.T) {
	for n := range 6 {
		live(t, "alice", func(l *life) {
			ctx := l.Context()
			l.must(l.Member.open(ctx))
			for i := range n {
				if i%2 == 0 {
					l.must(l.conversation.say(ctx, nil, "Go on."))
				} else {
					l.reply(llm.StopEnd, "I do.")
				}
			}
			l.must(l.conversation.wake(ctx))
			if got, want := strings.Count(l.said(), "<identity>You are 'alice'"), n > 0 && n < 4; (got == 1) != want {
				l.Errorf("of %d messages: it is said %d times", n, got)
			}
		})
	}
}

// A member hears its prompt once for each spawn, also when it is spawned again with the same words.
func TestAPromptIsSaidOncePerSpawn(t *testing.T) {
	live(t, "alice", func(l *life) {
		prompts := func() int { return strings.Count(l.heard(), "Write &lt;mail> parsers.") }
		l.start(says("Ready."))
		if prompts() != 1 || strings.Count(l.heard(), "<identity>") != 1 {
			l.Fatalf("at first it hears %s", l.heard())
		}
		l.stop(muster.CauseUser)
		if !l.hasEnded() || !errors.Is(l.err, muster.CauseUser) || l.record("alice").Status == muster.Shutdown {
			l.Fatalf("stopped by the user it ended with %v, and is %s", l.err, l.record("alice").Status)
		}
		l.restart("alice")
		l.start()
		l.send(muster.MailMessage, muster.Lead, "alice", "Are you there?")
		if synctest.Wait(); prompts() != 1 {
			l.Fatalf("after a restart it hears %s", l.heard())
		}
		l.stop(muster.CauseShutdown)
		if !l.hasEnded() || l.err != nil || l.record("alice").Status != muster.Shutdown {
			l.Fatalf("shut down it ended with %v, and is %s", l.err, l.record("alice").Status)
		}
		_, err := l.world.Roster.Add(l.Context(), muster.Member{Name: "alice", Role: "coder", Prompt: l.Member.record.Prompt,
			Host: "here"})
		l.must(err)
		l.restart("alice")
		if l.start(); prompts() != 2 {
			l.Errorf("spawned again it hears %s", l.heard())
		}
	})
}

// A lead goes on with the conversation of its run, and begins a new one in the next run.
func TestALeadOfANewRunBeginsAfresh(t *testing.T) {
	live(t, muster.Lead, func(l *life) {
		l.open()
		l.must(l.conversation.script.Reply(l.Context(), llm.Reply{Message: llm.Message{Parts: llm.Parts{
			llm.Thinking{Text: "hm", Provider: "p"}, llm.Text{Text: " The answer"}, llm.Text{Text: " is 42. "}}}}))
		l.restart(muster.Lead)
		l.start()
		if !l.hasEnded() || l.err != nil || l.end != (End{Text: "The answer is 42."}) || len(l.asked) != 0 {
			l.Fatalf("restarted it was asked %d times and ended with %+v, %v", len(l.asked), l.end, l.err)
		}
		l.run.StartedAt = 2
		l.restart(muster.Lead)
		l.start(says("It is 43."))
		if !l.hasEnded() || strings.Contains(l.heard(), "is 42") || strings.Count(l.heard(), "The goal: a parser.") != 1 {
			l.Errorf("in the next run it hears %s", l.heard())
		}
		l.runErr = muster.Errorf(muster.Unavailable, "no run")
		l.restart(muster.Lead)
		if l.start(); !l.hasEnded() || !errors.Is(l.err, muster.ErrUnavailable) || l.end.Code != 1 {
			l.Errorf("without a run it ended with %+v, %v", l.end, l.err)
		}
	})
}

// A background job that has ended wakes the member, which reads its output once.
func TestAnEndedJobIsAnnouncedOnce(t *testing.T) {
	live(t, "alice", func(l *life) {
		l.create(board.Draft{})
		l.start(calls("bash", map[string]any{"command": "make", "background": true}), says("I wait."))
		if m := l.record("alice"); m.Status != muster.Working || m.Doing == "" || len(l.asked) != 2 {
			l.Errorf("while the job runs she is %s (%s), asked %d times", m.Status, m.Doing, len(l.asked))
		}
		close(l.commands.running[0].done)
		synctest.Wait()
		if strings.Count(l.heard(), "<background-results>") != 1 || !strings.Contains(l.heard(), "the output") {
			l.Errorf("she hears %s", l.heard())
		}
	})
}

// Mail that a dead process has delivered and not removed is removed, and not read again, however much of it there is.
func TestDeliveredMailIsNotReadAgain(t *testing.T) {
	live(t, "alice", func(l *life) {
		l.start(says("Ready."))
		l.stop(muster.CauseUser)
		l.hasEnded()
		ctx := l.Context()
		old := l.send(muster.MailMessage, "lead", "alice", strings.Repeat("old ", maxDelivery/4))
		l.must(l.conversation.say(ctx, []muster.MessageID{old.ID}, "as it was"))
		l.reply(llm.StopEnd, "I see.")
		l.send(muster.MailMessage, muster.Lead, "alice", "the news")
		l.asked = nil
		l.restart("alice")
		l.start(says("Noted."))
		if len(l.asked) != 1 || strings.Count(l.heard(), "<mail ") != 1 || strings.Count(l.heard(), "the news") != 1 ||
			strings.Contains(l.heard(), "old old") {
			l.Errorf("asked %d times, she hears %s", len(l.asked), l.heard())
		}
		if left := l.mail("alice"); len(left) != 0 {
			l.Errorf("%d mails are left", len(left))
		}
		if e := l.events(journal.MailDelivered); len(e) != 1 || e[0].Member != "alice" {
			l.Errorf("it was told of %v", e)
		}
	})
}

// deliver says whether something new has come. The user sees which of their mails the lead has read: those, and not what
// other members read.
func TestDeliverReportsWhatIsNew(t *testing.T) {
	for _, name := range []muster.Name{muster.Lead, "alice"} {
		for _, inTalk := range []bool{true, false} {
			live(t, name, func(l *life) {
				talk := newTalk()
				if inTalk {
					l.config.Talk = talk
				}
				l.restart(name)
				l.open()
				mine := l.send(muster.MailMessage, muster.User, name, "hello")
				l.send(muster.MailMessage, "alice", muster.Lead, "hello")
				for _, want := range []bool{true, false} {
					if came, err := l.conversation.deliver(l.Context()); err != nil || came != want {
						l.Errorf("%s: %v, %v", name, came, err)
					}
				}
				if want := name == muster.Lead && inTalk; len(talk.heard) == 1 != want || want && talk.heard[0] != mine.ID {
					l.Errorf("%s has heard %v", name, talk.heard)
				}
			})
		}
	}
	failEachOp(t, "alice", func(l *life) {
		l.open()
		l.send(muster.MailMessage, muster.Lead, "alice", "one")
		l.send(muster.MailMessage, muster.Lead, "alice", strings.Repeat("long ", maxDelivery/5))
	}, func(l *life) error {
		for _, f := range []func(context.Context) (bool, error){l.conversation.hasWakingMail, l.conversation.deliverWaking,
			l.conversation.deliver} {
			if came, err := f(l.Context()); err != nil || !came {
				if came {
					l.Error("new mail, with an error")
				}
				return err
			}
		}
		return nil
	})
}

// Mail that brings a request which was decided already says nothing any more: it wakes nobody, and goes.
func TestMailOfADecidedRequestIsVoid(t *testing.T) {
	live(t, "alice", func(l *life) {
		l.open()
		ctx := l.Context()
		for _, kind := range []muster.RequestKind{muster.AskShutdown, muster.AskPlan} {
			q, err := l.config.Requests.Ask(ctx, muster.Request{Kind: kind, From: "lead", To: "alice", Plan: "x", TaskID: 1})
			l.must(err)
			if wakes, err := l.conversation.hasWakingMail(ctx); err != nil || !wakes {
				l.Errorf("%s does not wake her: %v", kind, err)
			}
			l.decide(q.ID, "alice", false, "not now")
			wakes, err := l.conversation.hasWakingMail(ctx)
			if left := l.mail("alice"); err != nil || wakes || len(left) != 0 {
				l.Errorf("%s wakes: %v; %d mails are left; %v", kind, wakes, len(left), err)
			}
		}
	})
}

// The inbox tool shows what waits, without delivering it, and what was delivered last.
func TestInboxShowsWhatWaitsAndWhatCame(t *testing.T) {
	live(t, "alice", func(l *life) {
		l.open()
		shows := func(want, not string) {
			t.Helper()
			got, err := l.conversation.Inbox(l.Context())
			if err != nil || !strings.Contains(got, want) || not != "" && strings.Contains(got, not) {
				l.Errorf("%q, not %q with %q: %v", got, want, not, err)
			}
		}
		shows("Nothing waits.", "Delivered last")
		l.send(muster.MailMessage, muster.Lead, "alice", "the first")
		for range 2 {
			shows("the first", "Nothing waits.")
			shows("New mail", "Delivered last")
		}
		_, err := l.conversation.deliver(l.Context())
		l.must(err)
		shows("Nothing waits.\nDelivered last:", "New mail")
		shows("the first", "")
	})
}

// Status news keeps no model going that would stop: it waits for what wakes the member.
func TestNewsDoesNotKeepAModelGoing(t *testing.T) {
	live(t, "alice", func(l *life) {
		l.start(func(r llm.Request) (llm.Reply, error) {
			l.send(muster.MailIdle, muster.Lead, "alice", "the news")
			return says("I stop.")(r)
		})
		if len(l.asked) != 1 || len(l.mail("alice")) != 1 {
			l.Fatalf("asked %d times, %d mails left", len(l.asked), len(l.mail("alice")))
		}
		l.turns = []turn{
			func(r llm.Request) (llm.Reply, error) {
				l.send(muster.MailMessage, muster.Lead, "alice", "more")
				return says("I stop again.")(r)
			}}
		l.send(muster.MailMessage, muster.Lead, "alice", "wake up")
		if synctest.Wait(); len(l.asked) != 3 || !strings.Contains(l.heard(), "the news") ||
			!strings.Contains(l.heard(), "more") {
			l.Errorf("asked %d times, she hears %s", len(l.asked), l.heard())
		}
	})
}

// A life goes on after no error of the store: whatever fails, the process ends the life with that error, and another
// one goes on with it.
func TestAnErrorOfTheStoreEndsALife(t *testing.T) {
	failEachOp(t, "alice", func(l *life) { l.create(board.Draft{}) }, func(l *life) error {
		l.start(says("May I?"), says("May I now?"), says("Noted?"))
		if !l.hasEnded() {
			l.send(muster.MailMessage, muster.Lead, "alice", "Try again.")
		}
		time.Sleep(3 * time.Minute)
		if !l.hasEnded() {
			return errors.New("it goes on")
		}
		return l.err
	}, "tasks/1") // a lane that cannot be made releases its task
}

// No error of the store is lost in what a test of a whole life does not reach: see TestAnErrorOfTheStoreEndsALife.
func TestNoErrorOfTheStoreIsLost(t *testing.T) {
	opened := func(l *life) { l.open() }
	withTask := func(l *life) { l.create(board.Draft{}); l.open() }
	for what, c := range map[string]struct {
		name    muster.Name
		prepare func(*life)
		act     func(*life) error
	}{
		"the inbox": {"alice", opened, func(l *life) error { _, err := l.conversation.Inbox(l.Context()); return err }},
		"a shutdown that is granted": {"alice", func(l *life) { l.ask("0000beef", muster.AskShutdown, muster.User, "alice") },
			func(l *life) error { return GrantShutdown{ID: "0000beef"}.do(l.Context(), l.Member) }},
		"a claimed task": {"alice", func(l *life) { l.open(); l.claim() }, func(l *life) error {
			_, _, err := l.claims.nextTask(l.Context())
			return err
		}},
		"a wait for the team": {muster.Lead, opened, func(l *life) error {
			return l.lead.await(l.Context(), "waits for the team", false, nil, time.After(time.Minute))
		}},
		// A wait whose facts cannot be read fails, and so does one that cannot show that the lead sleeps.
		"a wait": {muster.Lead, func(l *life) {
			l.open()
			l.change("alice", func(m *muster.Member) { m.Status = muster.Working })
		}, func(l *life) error {
			time.AfterFunc(time.Second, func() { l.send(muster.MailMessage, "alice", muster.Lead, "hello") })
			if _, err := l.lead.Wait(l.Context(), true); err != nil || l.me().Status == muster.Working {
				return err
			}
			l.change(muster.Lead, func(m *muster.Member) { m.Status = muster.Working })
			return errDisk // that it was woken is for people only
		}},
		"a fresh start": {muster.Lead, opened, func(l *life) error {
			return RestartConversation{Harder: maxRestarts}.do(l.Context(), l.Member)
		}},
		"a limit":       {"alice", withTask, func(l *life) error { l.Member.err = errTurns; return ReleaseTask{}.do(l.Context(), l.Member) }},
		"a model fails": {"alice", withTask, func(l *life) error { l.Member.err = errTest; return GiveUp{}.do(l.Context(), l.Member) }},
	} {
		t.Run(what, func(t *testing.T) { failEachOp(t, c.name, c.prepare, c.act) })
	}
}
