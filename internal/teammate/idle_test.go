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
func (p *life) waits(ctx context.Context) <-chan error {
	done := make(chan error, 1)
	go func() { done <- p.idle.wait(ctx) }()
	synctest.Wait()
	return done
}

// isOver reports whether a wait has returned, and fails the test if it has with an error.
func (p *life) isOver(done <-chan error) bool {
	p.Helper()
	synctest.Wait()
	select {
	case err := <-done:
		p.must(err)
		return true
	default:
		return false
	}
}

// rests lets the member rest until it is woken for nothing.
func (p *life) rests(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if err := p.idle.begin(ctx); err != nil {
		return err
	}
	p.must(p.world.Store.Inbox().Put(ctx, p.name(), muster.Message{ID: "news", Type: muster.MailIdle, From: "bob", Content: "idle"}))
	return p.idle.wait(ctx)
}

// The last words of a phase are mailed to the lead, once. A model that was cut off has none, and the lead is told why.
func TestTheLastMessageOfAPhase(t *testing.T) {
	for _, c := range []struct {
		name  string
		words string
		stop  llm.Stop
		want  muster.MessageType // "" for no mail
		from  muster.Name
		says  string
	}{
		{"words", "All is well.", llm.StopEnd, muster.MailResult, "alice", "All is well."},
		{"very many words", strings.Repeat("x", maxQuote+1), llm.StopEnd, muster.MailResult, "alice", "x ..."},
		{"none", "", llm.StopEnd, "", "", ""},
		{"a tool has ended the phase", "I complete it.", llm.StopTools, "", "", ""},
		{"refused", "no", llm.StopRefused, muster.MailError, muster.System, "alice's model refused: no"},
		{"cut", "", llm.StopMax, muster.MailError, muster.System, "cut at its length limit"},
	} {
		p := newParts(t, "alice")
		p.phase.change(func(c2 *counters) { c2.words, c2.stop = c.words, c.stop })
		ctx, stop := context.WithCancel(t.Context())
		p.must(p.idle.begin(ctx))
		mail := p.leadMail()
		if (len(mail) == 1) != (c.want != "") || len(mail) > 1 ||
			len(mail) == 1 && (mail[0].Type != c.want || mail[0].From != c.from || !strings.Contains(mail[0].Content, c.says)) {
			t.Errorf("%s: the lead got %+v", c.name, mail)
		}
		p.must(p.idle.begin(ctx))
		if mail = p.leadMail(); len(mail) > 0 {
			t.Errorf("%s: the lead was told again: %+v", c.name, mail)
		}
		stop()
	}
}

// The record of an idle member says why its phase has ended, and the lead is told once that it is idle.
func TestAnIdleMemberSaysWhy(t *testing.T) {
	for want, set := range map[muster.IdleReason]func(p *life){
		muster.IdleNoToolUse: func(*life) {},
		muster.IdleTasks:     func(p *life) { p.phase.change(func(c *counters) { c.over = true }) },
		muster.IdleMessages:  func(p *life) { p.presence.Asked("bob", "Is it done?") },
	} {
		p := newParts(t, "alice")
		set(p)
		p.must(p.rests(t.Context()))
		if m := p.me(); m.Status != muster.Idle || m.IdleReason != want {
			t.Errorf("she is %s (%s), want %s", m.Status, m.IdleReason, want)
		}
		text := fmt.Sprintf("alice is idle (%s).", want)
		if mail := p.leadMail(); len(mail) != 1 || mail[0].Type != muster.MailIdle || mail[0].Content != text {
			t.Errorf("the lead got %+v", mail)
		}
		p.must(p.idle.markIdle(t.Context(), muster.IdleMessages))
		if mail := p.leadMail(); len(mail) > 0 || p.me().IdleReason != muster.IdleMessages {
			t.Errorf("the lead was told again: %+v", mail)
		}
	}
}

// A member with a task whose job runs, or has ended unheard, is at work on it.
func TestAMemberWaitsForItsJob(t *testing.T) {
	p := newParts(t, "alice")
	p.claim()
	p.startJob()
	for _, what := range []string{"it runs", "it has ended"} {
		p.must(p.presence.setStatus(t.Context(), muster.Working, "", "works"))
		p.must(p.idle.markIdle(t.Context(), muster.IdleNoToolUse))
		if m := p.me(); m.Status != muster.Working || m.Doing != "waits for its background job" ||
			len(p.leadMail()) > 0 {
			t.Errorf("%s: she is %s and %q", what, m.Status, m.Doing)
		}
		p.jobs.Stop()
	}
	p.jobs.Finished()
	p.must(p.idle.markIdle(t.Context(), muster.IdleNoToolUse))
	if m := p.me(); m.Status != muster.Idle {
		t.Errorf("the job is over, and she is %s", m.Status)
	}
	p.startJob()
	p.claims.clearTask()
	p.must(p.idle.markIdle(t.Context(), muster.IdleNoToolUse))
	if m := p.me(); m.Status != muster.Idle {
		t.Errorf("she has no task, and is %s", m.Status)
	}
}

// Thousands of idle members hold no conversation in memory, and no tools.
func TestAnIdleMemberIsSmall(t *testing.T) {
	p := newParts(t, "alice")
	p.must(p.conversation.say(t.Context(), nil, "Hello."))
	p.toolbox.get()
	p.phase.change(func(c *counters) { c.calls = []llm.Call{{ID: "1"}} })
	p.must(p.rests(t.Context()))
	if n := len(p.conversation.script.Messages()); n != 0 || p.toolbox.made.Load() != nil || p.phase.get().calls != nil {
		t.Errorf("%d messages, tools: %v, calls: %v", n, p.toolbox.made.Load() != nil, p.phase.get().calls != nil)
	}
}

// No error of the stores is lost when a rest begins, waits, or looks around.
func TestARestHidesNoError(t *testing.T) {
	facts := func(p *life) error {
		p.idle.rest.timedOut = true
		_, err := p.idle.facts(p.Context())
		return err
	}
	for _, act := range []func(p *life) error{facts, func(p *life) error { return p.idle.timeOut(p.Context()) },
		func(p *life) error { p.startJob(); return p.idle.markIdle(p.Context(), muster.IdleNoToolUse) }} {
		failEach(t, func(p *life) { p.claim() }, act)
	}
	failEach(t, func(*life) {}, facts)
	failEach(t, func(*life) {}, func(p *life) error {
		p.phase.change(func(c *counters) { c.words, c.stop = "Done.", llm.StopEnd })
		return p.rests(p.Context())
	})
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
		if p.isOver(done) || len(p.Queue.waiting["coder"]) > 0 {
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
	for _, timeout := range []time.Duration{0, 1, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			p := newParts(t, "alice")
			p.idle.Limits.IdleTimeout = timeout
			ctx, stop := context.WithCancelCause(t.Context())
			p.must(p.idle.begin(ctx))
			began, done := time.Now(), p.waits(ctx)
			time.Sleep(timeout / 2)
			if timeout > 1 { // woken for nothing
				p.send(muster.MailIdle, "bob", "alice", "idle")
				if !p.isOver(done) || p.idle.rest.timedOut || p.idle.rest.called || p.idle.rest.triedTask {
					t.Errorf("%+v", p.idle.rest)
				}
				p.idle.rest.triedTask = true
				done = p.waits(ctx)
			}
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
	facts := func(p *life) IdleFacts {
		t.Helper()
		f, err := p.idle.facts(t.Context())
		p.must(err)
		return f
	}
	p := newParts(t, "alice")
	if f := facts(p); f != (IdleFacts{}) {
		t.Errorf("nothing: %+v", f)
	}
	p.claimOnBoard("alice")
	p.must(p.claims.find(t.Context()))
	if f := facts(p); f.Claim != NotYetRead {
		t.Errorf("a task that was not read: %+v", f)
	}
	p.claims.held.change(func(h *claim) { h.presented = true })
	if f := facts(p); f.Claim != Presented || f.Landing {
		t.Errorf("a task: %+v", f)
	}
	p.beginLanding(p.current())
	if f := facts(p); f.Claim != Presented || !f.Landing {
		t.Errorf("a landing that was cut off: %+v", f)
	}
	p.startJob()
	if f := facts(p); f.Landing || f.JobsFinished {
		t.Errorf("a job runs that could write into the lane: %+v", f)
	}
	p.jobs.Stop()
	if f := facts(p); !f.Landing || !f.JobsFinished {
		t.Errorf("the job is over: %+v", f)
	}
	p.claims.held.change(func(h *claim) { h.landingResumed = true })
	if f := facts(p); f.Landing {
		t.Errorf("it was resumed once: %+v", f)
	}
	p.idle.rest.triedTask, p.idle.rest.timedOut = true, true
	p.presence.Asked(muster.Lead, "Shall I?")
	if f := facts(p); !f.TriedTask || !f.TimedOut || !f.KeepsClaim {
		t.Errorf("timed out, with a question: %+v", f)
	}
	if p.idle.rest.timedOut = false; facts(p).KeepsClaim {
		t.Error("whether it keeps its claim is asked when it is timed out")
	}
	p.ask("", muster.AskPermission, "bob", "alice")
	p.ask("", muster.AskShutdown, muster.User, "bob")
	if f := facts(p); f.Shutdown != "" {
		t.Errorf("nobody asks her to shut down: %+v", f)
	}
	if id := p.ask("", muster.AskShutdown, muster.User, "alice"); facts(p).Shutdown != id {
		t.Error("she is not asked to shut down")
	}
}
