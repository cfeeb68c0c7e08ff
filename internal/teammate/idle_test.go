package teammate

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/board"
	"muster/llm"
)

// waits begins one wait of a resting member, and returns what it has returned once it has.
func (l *life) waits(ctx context.Context) <-chan error {
	done := make(chan error, 1)
	go func() { done <- l.idle.wait(ctx) }()
	synctest.Wait()
	return done
}

// isOver reports whether a wait has returned, and fails the test if it has with an error.
func (l *life) isOver(done <-chan error) bool {
	l.Helper()
	synctest.Wait()
	select {
	case err := <-done:
		l.must(err)
		return true
	default:
		return false
	}
}

// rests lets the member rest until it is woken for nothing.
func (l *life) rests(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if err := l.idle.begin(ctx); err != nil {
		return err
	}
	l.send(muster.MailIdle, muster.User, l.name(), "idle")
	return l.idle.wait(ctx)
}

// The last words of a phase are mailed to the lead, once. A model that was cut off has none, and the lead is told why.
func TestTheLastMessageOfAPhase(t *testing.T) {
	for _, c := range []struct {
		name, words string
		stop        llm.Stop
		want        string // the mail; "" for none
	}{
		{"words", "All is well.", llm.StopEnd, "result alice All is well."},
		{"very many words", strings.Repeat("ä", maxQuote), llm.StopEnd, "result alice " + strings.Repeat("ä", maxQuote/2) + " ..."},
		{"none", "", llm.StopEnd, ""},
		{"a tool has ended the phase", "I complete it.", llm.StopTools, ""},
		{"refused", "no", llm.StopRefused, "error system alice's model refused: no"},
		{"refused without a word", "", llm.StopRefused, "error system alice's model refused:"},
		{"cut", "", llm.StopMax, "error system alice's reply was cut at its length limit again and again"},
	} {
		p := newParts(t, "alice")
		p.phase.change(func(n *counters) { n.words, n.stop = c.words, c.stop })
		p.must(p.idle.begin(t.Context()))
		p.must(p.idle.begin(t.Context()))
		got := ""
		for _, m := range p.leadMail() {
			got += fmt.Sprint(m.Type, " ", m.From, " ", m.Content)
		}
		if got != c.want {
			t.Errorf("%s: the lead reads %q, want %q", c.name, got, c.want)
		}
	}
}

// The record of an idle member says why its phase has ended, and the lead is told once that it is idle. Its conversation
// and its tools are no longer in memory.
func TestAnIdleMemberSaysWhy(t *testing.T) {
	for want, set := range map[muster.IdleReason]func(p *life){
		muster.IdleNoToolUse: func(*life) {},
		muster.IdleTasks:     func(p *life) { p.phase.change(func(c *counters) { c.over = true }) },
		muster.IdleMessages:  func(p *life) { p.presence.Asked("bob", "Is it done?") },
	} {
		p := newParts(t, "alice")
		p.must(p.conversation.say(t.Context(), nil, "Hello."))
		p.toolbox.get()
		p.phase.change(func(c *counters) { c.calls = []llm.Call{{ID: "1"}} })
		set(p)
		p.must(p.rests(t.Context()))
		if m := p.me(); m.Status != muster.Idle || m.IdleReason != want {
			t.Errorf("she is %s (%s), want %s", m.Status, m.IdleReason, want)
		}
		p.must(p.idle.markIdle(t.Context(), muster.IdleMessages))
		mail := p.leadMail()
		if len(mail) != 1 || mail[0].Type != muster.MailIdle || mail[0].Content != fmt.Sprintf("alice is idle (%s).", want) {
			t.Errorf("the lead got %+v", mail)
		}
		if n := len(p.conversation.script.Messages()); n != 0 || p.toolbox.made.Load() != nil || p.phase.get().calls != nil {
			t.Errorf("%d messages, tools: %v, calls: %v", n, p.toolbox.made.Load() != nil, p.phase.get().calls != nil)
		}
	}
}

// A member with a task whose job runs, or has ended unheard, is at work on it.
func TestAMemberWaitsForItsJob(t *testing.T) {
	p := newParts(t, "alice")
	expect := func(what string, want muster.MemberStatus, doing string) {
		t.Helper()
		p.must(p.presence.setStatus(t.Context(), muster.Working, "", "works"))
		p.must(p.idle.markIdle(t.Context(), muster.IdleNoToolUse))
		if m := p.me(); m.Status != want || m.Doing != doing || len(p.leadMail()) > 0 != (want == muster.Idle) {
			t.Errorf("%s: she is %s and %q", what, m.Status, m.Doing)
		}
	}
	p.claim()
	p.startJob()
	expect("it runs", muster.Working, "waits for its background job")
	p.jobs.Stop()
	expect("it has ended", muster.Working, "waits for its background job")
	p.jobs.Finished()
	expect("it was heard of", muster.Idle, "")
	p.startJob()
	p.claims.clearTask()
	expect("she has no task", muster.Idle, "")
}

// A member without a task keeps its place in the queue until it has looked at the board; one that was called for nothing
// lets others go first for a second.
func TestThePlaceInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t, "alice")
		p.must(p.idle.begin(t.Context()))
		first := p.waits(t.Context())
		go p.Queue.Serve(t.Context())
		if p.isOver(first) || p.queued() != 1 {
			t.Fatalf("%d wait", p.queued())
		}
		p.send(muster.MailIdle, "bob", "alice", "idle")
		if !p.isOver(first) || p.queued() != 1 { // she has not looked yet
			t.Errorf("woken by mail: %d wait", p.queued())
		}
		second := p.waits(t.Context())
		if p.queued() != 1 {
			t.Errorf("waits again, in %d places", p.queued())
		}
		p.create(board.Draft{})
		if !p.isOver(second) || !p.idle.rest.called || p.idle.rest.timedOut {
			t.Errorf("not called: %+v", p.idle.rest)
		}
		_, err := p.Board.Claim(t.Context(), 1, board.Claim{Owner: "bob", Role: "coder"}) // bob was faster
		p.must(err)
		began := time.Now()
		if third := p.waits(t.Context()); p.queued() != 0 || <-third != nil || time.Since(began) != passOn {
			t.Errorf("back in the queue after %v", time.Since(began))
		}
		fourth := p.waits(t.Context())
		if p.isOver(fourth) || p.queued() != 1 || p.idle.rest.called {
			t.Errorf("after a second: %+v", p.idle.rest)
		}
		p.create(board.Draft{})
		if !p.isOver(fourth) || !p.idle.rest.called {
			t.Error("not called again")
		}
	})
}

// A member with a task stands in no queue, and hears when its task changes.
func TestAnIdleOwnerHearsOfItsTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t, "alice")
		task := p.claim()
		p.must(p.idle.begin(t.Context()))
		done := p.waits(t.Context())
		if p.isOver(done) || p.queued() > 0 {
			t.Fatal("she does not wait, or waits in the queue")
		}
		p.revoke(task, true)
		if !p.isOver(done) {
			t.Fatal("she has not heard that her task was taken")
		}
		if f, err := p.idle.facts(t.Context()); err != nil || f.Claim != LostClaim {
			t.Errorf("%+v: %v", f, err)
		}
	})
}

// The idle timeout passes once after a rest has begun, however often the member is woken for nothing; 0 is never.
func TestTheIdleTimeout(t *testing.T) {
	for _, timeout := range []time.Duration{0, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			p := newParts(t, "alice")
			p.idle.Limits.IdleTimeout = timeout
			ctx, stop := context.WithCancelCause(t.Context())
			p.must(p.idle.begin(ctx))
			began, done := time.Now(), p.waits(ctx)
			time.Sleep(timeout / 2)
			p.send(muster.MailIdle, "bob", "alice", "idle")
			if !p.isOver(done) || p.idle.rest.timedOut || p.idle.rest.called || p.idle.rest.triedTask {
				t.Errorf("woken for nothing: %+v", p.idle.rest)
			}
			p.idle.rest.triedTask = true
			done = p.waits(ctx)
			if timeout == 0 {
				time.Sleep(time.Hour)
				if p.isOver(done) {
					t.Error("timed out, though it never is")
				}
				stop(muster.CauseShutdown)
				p.wants("stopped", <-done, muster.CauseShutdown)
				return
			}
			if p.must(<-done); time.Since(began) != timeout || !p.idle.rest.timedOut || p.idle.rest.triedTask {
				t.Errorf("after %v: %+v", time.Since(began), p.idle.rest)
			}
			began = time.Now() // it keeps its claim: the time begins anew
			if p.must(<-p.waits(ctx)); time.Since(began) != timeout {
				t.Errorf("again after %v", time.Since(began))
			}
			stop(nil)
		})
	}
}

// A member that is timed out gives its task back, which is no attempt, before the lead is told of it.
func TestATimedOutMemberGivesItsTaskBack(t *testing.T) {
	for _, busy := range []bool{false, true} {
		p := newParts(t, "alice")
		want := "alice found nothing to do for 1m0s"
		if busy {
			p.claim()
			want = "alice was idle for 1m0s with task #1 in hand"
		}
		p.must(p.idle.timeOut(t.Context()))
		mail := p.leadMail()
		if len(mail) != 1 || mail[0].Type != muster.MailIdle || !strings.HasPrefix(mail[0].Content, want) {
			t.Errorf("the lead got %+v", mail)
		}
		if m := p.me(); m.Status != muster.Idle || m.IdleReason != muster.IdleTimeout || m.Task != 0 {
			t.Errorf("she is %s (%s) with task %d", m.Status, m.IdleReason, m.Task)
		}
		if busy && (p.task(1).Owner != "" || p.task(1).Attempts != 0) {
			t.Errorf("the task is %+v", p.task(1))
		}
	}
}

// The facts of an idle member: its task and whether it was read, a landing that was cut off, its jobs, and who asks it
// to shut down.
func TestTheFactsOfAnIdleMember(t *testing.T) {
	p := newParts(t, "alice")
	expect := func(what string, want IdleFacts) {
		t.Helper()
		if f, err := p.idle.facts(t.Context()); err != nil || f != want {
			t.Errorf("%s: %+v, %v", what, f, err)
		}
	}
	expect("nothing", IdleFacts{})
	p.claimOnBoard("alice")
	p.must(p.claims.find(t.Context()))
	expect("a task that was not read", IdleFacts{Claim: NotYetRead})
	p.claims.held.change(func(h *claim) { h.presented = true })
	expect("a task", IdleFacts{Claim: Presented})
	p.beginLanding(p.current())
	expect("a landing that was cut off", IdleFacts{Claim: Presented, Landing: true})
	p.startJob()
	expect("a job runs that could write into the lane", IdleFacts{Claim: Presented})
	p.jobs.Stop()
	expect("the job is over", IdleFacts{Claim: Presented, Landing: true, JobsFinished: true})
	p.jobs.Finished()
	p.claims.held.change(func(h *claim) { h.landingResumed = true })
	expect("it was resumed once", IdleFacts{Claim: Presented})
	p.idle.rest.triedTask, p.idle.rest.timedOut = true, true
	p.presence.Asked(muster.Lead, "Shall I?")
	expect("timed out, with a question", IdleFacts{Claim: Presented, TriedTask: true, TimedOut: true, KeepsClaim: true})
	p.idle.rest.timedOut = false
	p.ask("", muster.AskPermission, "bob", "alice")
	p.ask("", muster.AskShutdown, muster.User, "bob")
	expect("nobody asks her to shut down", IdleFacts{Claim: Presented, TriedTask: true})
	p.ask("0000beef", muster.AskShutdown, muster.User, "alice")
	expect("she is asked to", IdleFacts{Claim: Presented, TriedTask: true, Shutdown: "0000beef"})
}

// An idle owner keeps its task until the idle timeout, and while it waits for an answer. Status news is none, and wakes
// nobody.
func TestAnIdleOwnerIsTimedOut(t *testing.T) {
	live(t, "alice", func(l *life) {
		l.claimOnBoard("alice") // by a process that died before it had read it
		l.start(calls("send_message", map[string]any{"to": "lead", "content": "Is the parser done?"}), says("I wait."))
		if !strings.Contains(l.heard(), "Task #1: the parser") || l.task(1).Worktree == "" {
			l.Errorf("she was not told of her task, or it has no lane: %s", l.heard())
		}
		asked := len(l.asked)
		l.send(muster.MailIdle, muster.Lead, "alice", "lead is idle.")
		time.Sleep(10 * time.Minute)
		if m := l.me(); l.hasEnded() || len(l.asked) != asked || m.Status != muster.Idle || m.Task != 1 || l.task(1).Owner != "alice" {
			l.Fatalf("asked %d times, she is %+v: %v", len(l.asked), m, l.err)
		}
		l.send(muster.MailMessage, muster.Lead, "alice", "It is done.")
		time.Sleep(59 * time.Second)
		if l.hasEnded() {
			l.Fatal("timed out too early")
		}
		time.Sleep(2 * time.Second)
		if m := l.me(); !l.hasEnded() || l.err != nil || m.Status != muster.Shutdown || m.IdleReason != muster.IdleTimeout {
			l.Errorf("she is %+v: %v", m, l.err)
		}
		if task := l.task(1); task.Status != muster.Pending || task.Attempts != 0 {
			l.Errorf("the task is %+v", task)
		}
	})
}
