package teammate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/view"
	"muster/llm"
)

// Whatever changes in what a member does is written; what only counts turns is not worth a write.
func TestTheStatusIsWrittenWhenItChanges(t *testing.T) {
	for _, c := range []struct {
		status muster.MemberStatus
		reason muster.IdleReason
		doing  string
		task   muster.TaskID
		asks   string
	}{
		{muster.Idle, "", "works", 0, ""}, {muster.Working, muster.IdleTasks, "works", 0, ""}, {muster.Working, "", "rests", 0, ""},
		{muster.Working, "", "works", 7, ""}, {muster.Working, "", "works", 0, "Is it done?"}, {muster.Working, "", "works", 0, ""},
	} {
		p := newParts(t, "alice")
		p.must(p.presence.setStatus(t.Context(), muster.Working, "", "works"))
		p.presence.turns.Store(9)
		p.claims.setTask(muster.Task{ID: c.task})
		p.presence.Asked("bob", c.asks)
		p.must(p.presence.setStatus(t.Context(), c.status, c.reason, c.doing))
		m, isSame := p.me(), c.status == muster.Working && c.reason+muster.IdleReason(c.asks) == "" && c.doing == "works" && c.task == 0
		if (m.Turns == 9) == isSame || m.Status != c.status || m.IdleReason != c.reason || m.Doing != c.doing || m.Task != c.task ||
			(len(m.Extra) > 0) != (c.asks != "") {
			t.Errorf("%+v: her record is %+v", c, m)
		}
		if me := p.presence.Me(); me.Turns != m.Turns || me.Status != m.Status {
			t.Errorf("%+v: she knows herself as %+v", c, me)
		}
	}
}

// The record of another host is neither written nor taken for one's own.
func TestTheRecordOfAnotherHost(t *testing.T) {
	p := newParts(t, "alice")
	own := p.me().Host
	p.rehost()
	p.wants("the status", p.presence.setStatus(t.Context(), muster.Idle, muster.IdleTasks, ""), muster.ErrFenced)
	p.presence.onModelWait(time.Now(), errTest)
	p.must(p.presence.leave(t.Context()))
	if m := p.me(); m.Doing != "" || m.Status != muster.Working || m.Host != "host-8.1" || p.presence.Me().Host != own {
		t.Errorf("it is %+v, and she knows it as %+v", m, p.presence.Me())
	}
}

// The record names each member who owes an answer once, until the answer comes; a member that starts again reads it.
func TestTheRecordNamesWhoIsAsked(t *testing.T) {
	p := newParts(t, "alice")
	write := func() []muster.Name {
		t.Helper()
		p.must(p.presence.setStatus(t.Context(), muster.Working, "", ""))
		return askedOf(p.me())
	}
	p.presence.Asked("bob", "It is done.")
	p.presence.Asked("carl", "See http://example.com/?id=7 for it.")
	p.presence.Asked(muster.Lead, "Is it done?")
	p.presence.Asked("bob", "Is it done?")
	p.presence.Asked(muster.Lead, "Is it really done?")
	want := []muster.Name{"bob", muster.Lead}
	if got := write(); !slices.Equal(got, want) || !slices.Equal(p.presence.openQuestions(), want) {
		t.Errorf("asked are %v, and %v", got, p.presence.openQuestions())
	}
	if p.reopen(p.world.Store); !slices.Equal(p.presence.openQuestions(), want) {
		t.Errorf("after a restart asked are %v", p.presence.openQuestions())
	}
	p.presence.noteAnswers([]muster.Message{{From: "bob", Type: muster.MailIdle}})
	if got := write(); !slices.Equal(got, want) {
		t.Errorf("bob is only idle, and asked are %v", got)
	}
	p.presence.noteAnswers([]muster.Message{{From: "bob", Type: muster.MailMessage}})
	if got := write(); !slices.Equal(got, want[1:]) {
		t.Errorf("bob has answered, and asked are %v", got)
	}
	p.presence.noteAnswers([]muster.Message{{From: muster.Lead, Type: muster.MailMessage}})
	if got := write(); len(got) > 0 || len(p.me().Extra) > 0 {
		t.Errorf("all have answered, and asked are %v", got)
	}
}

// A member that waits for its model shows until when, and that it goes on; the log says what failed. What it waits for
// otherwise is shown until it is over, even if the member is stopped.
func TestWhatAMemberWaitsForIsShown(t *testing.T) {
	p := newParts(t, "alice")
	shows := func(what, want string) {
		t.Helper()
		if m := p.me(); m.Doing != want || m.Status != muster.Working {
			t.Errorf("%s: she is %s and %q", what, m.Status, m.Doing)
		}
	}
	p.presence.show(t.Context(), "works")
	p.presence.onModelReply(t.Context())
	shows("it was not parked", "works")
	until := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	p.presence.onModelWait(until, &llm.Error{Kind: llm.Overloaded, Status: 529, Err: errors.New("too many")})
	shows("it waits", "parked until 03:04:05")
	if s := p.logged.String(); !strings.Contains(s, "status=529") || strings.Contains(s, "too many") {
		t.Errorf("logged is %s", s)
	}
	p.presence.onModelReply(t.Context())
	shows("the model has answered", "")
	p.presence.show(t.Context(), "works")
	p.presence.onModelReply(t.Context())
	shows("it has answered again", "works")
	ctx, stop := context.WithCancel(t.Context())
	done := p.presence.showActivity(ctx, "lands 1")
	shows("it lands", "lands 1")
	stop()
	done()
	shows("it is over", "")
}

// A member that has shut down has no host, no task and no open question; that it was timed out is kept. It can come
// back as long as nobody has spawned it again.
func TestAMemberLeavesAndComesBack(t *testing.T) {
	for reason, want := range map[muster.IdleReason]muster.IdleReason{
		muster.IdleTasks: "", muster.IdleTimeout: muster.IdleTimeout,
	} {
		p := newParts(t, "alice")
		host := p.me().Host
		p.presence.Asked("bob", "Is it done?")
		p.claims.setTask(muster.Task{ID: 7})
		p.must(p.presence.setStatus(t.Context(), muster.Idle, reason, "rests"))
		if p.presence.hasLeft(p.me()) {
			t.Error("she is still there")
		}
		p.presence.turns.Store(9)
		p.must(p.presence.leave(t.Context()))
		m := p.me()
		if m.Status != muster.Shutdown || m.Host != "" || m.Task != 0 || m.Doing != "" || m.IdleReason != want ||
			len(m.Extra) > 0 || m.Turns != 9 || !p.presence.hasLeft(m) {
			t.Errorf("her record is %+v", m)
		}
		p.must(p.presence.rejoin(t.Context()))
		if m = p.me(); m.Status != muster.Working || m.Host != host || m.IdleReason != "" {
			t.Errorf("she is back, and her record is %+v", m)
		}
		p.must(p.presence.rejoin(t.Context()))
		p.must(p.presence.leave(t.Context()))
		_, err := p.config.Roster.Add(t.Context(), muster.Member{Name: "alice", Role: "coder", Prompt: "Work."})
		p.must(err)
		p.must(p.presence.rejoin(t.Context()))
		if m = p.me(); m.Host != "" || p.presence.hasLeft(m) {
			t.Errorf("she was spawned again, and her record is %+v", m)
		}
	}
}

// waits begins one wait of a resting member, and returns what it has returned once it has.
func (l *life) waits(ctx context.Context) <-chan error {
	done := make(chan error, 1)
	go func() { done <- l.waitForWork(ctx) }()
	synctest.Wait()
	return done
}

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
	if err := l.beginIdle(ctx); err != nil {
		return err
	}
	l.send(muster.MailIdle, muster.User, l.Member.record.Name, "idle")
	return l.waitForWork(ctx)
}

// The last words of a phase are mailed to the lead, once. A model that was cut off has none, and the lead is told why.
func TestTheLastMessageOfAPhase(t *testing.T) {
	for _, c := range []struct {
		name, words string
		stop        llm.Stop
		want        string // the mail; "" for none
	}{
		{"words", "All is well.", llm.StopEnd, "result alice All is well."},
		{"very many words", strings.Repeat("ä", maxQuote), llm.StopEnd, "result alice " + strings.Repeat("ä", maxQuote/2-2) + " ..."},
		{"none", "", llm.StopEnd, ""},
		{"a tool has ended the phase", "I complete it.", llm.StopTools, ""},
		{"refused", "no", llm.StopRefused, "error system alice's model refused: no"},
		{"refused without a word", "", llm.StopRefused, "error system alice's model refused:"},
		{"cut", "", llm.StopMax, "error system alice's reply was cut at its length limit again and again"},
	} {
		p := newParts(t, "alice")
		p.phase.change(func(n *counters) { n.words, n.stop = c.words, c.stop })
		p.must(p.beginIdle(t.Context()))
		p.must(p.beginIdle(t.Context()))
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
		p.toolbox.get(p.Context())
		p.phase.change(func(c *counters) { c.calls = []llm.Call{{ID: "1"}} })
		set(p)
		p.must(p.rests(t.Context()))
		if m := p.me(); m.Status != muster.Idle || m.IdleReason != want {
			t.Errorf("she is %s (%s), want %s", m.Status, m.IdleReason, want)
		}
		p.must(p.markIdle(t.Context(), muster.IdleMessages))
		mail := p.leadMail()
		if len(mail) != 1 || mail[0].Type != muster.MailIdle || mail[0].Content != "alice is idle: "+view.IdleReason("alice", string(want))+"." {
			t.Errorf("the lead got %+v", mail)
		}
		if p.toolbox.made.Load() != nil || p.phase.get().calls != nil {
			t.Errorf("tools: %v, calls: %v", p.toolbox.made.Load() != nil, p.phase.get().calls != nil)
		}
	}
}

// A member with a task whose job runs, or has ended unheard, is at work on it.
func TestAMemberWaitsForItsJob(t *testing.T) {
	p := newParts(t, "alice")
	expect := func(what string, want muster.MemberStatus, doing string) {
		t.Helper()
		p.must(p.presence.setStatus(t.Context(), muster.Working, "", "works"))
		p.must(p.markIdle(t.Context(), muster.IdleNoToolUse))
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

// A member with a task hears when its task changes.
func TestAnIdleOwnerHearsOfItsTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t, "alice")
		task := p.claim()
		p.must(p.beginIdle(t.Context()))
		done := p.waits(t.Context())
		if p.isOver(done) {
			t.Fatal("she does not wait")
		}
		p.revoke(task, true)
		if !p.isOver(done) {
			t.Fatal("she has not heard that her task was taken")
		}
		if f, err := p.idleFacts(t.Context()); err != nil || f.Claim != LostClaim {
			t.Errorf("%+v: %v", f, err)
		}
	})
}

// The idle timeout passes once after a rest has begun, however often the member is woken for nothing; 0 is never.
func TestTheIdleTimeout(t *testing.T) {
	for _, timeout := range []time.Duration{0, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			p := newParts(t, "alice")
			p.limits.IdleTimeout = timeout
			ctx, stop := context.WithCancelCause(t.Context())
			p.must(p.beginIdle(ctx))
			began, done := time.Now(), p.waits(ctx)
			time.Sleep(timeout / 2)
			p.send(muster.MailIdle, "bob", "alice", "idle")
			if !p.isOver(done) || p.rest.timedOut || p.rest.triedTask {
				t.Errorf("woken for nothing: %+v", p.rest)
			}
			p.rest.triedTask = true
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
			if p.must(<-done); time.Since(began) != timeout || !p.rest.timedOut || p.rest.triedTask {
				t.Errorf("after %v: %+v", time.Since(began), p.rest)
			}
			began = time.Now() // it keeps its claim: the time begins anew
			if p.must(<-p.waits(ctx)); time.Since(began) != timeout {
				t.Errorf("again after %v", time.Since(began))
			}
			stop(nil)
		})
	}
}

// The facts of an idle member: its task and whether it was read, a landing that was cut off, its jobs, and who asks it
// to shut down.
func TestTheFactsOfAnIdleMember(t *testing.T) {
	p := newParts(t, "alice")
	expect := func(what string, want IdleFacts) {
		t.Helper()
		if f, err := p.idleFacts(t.Context()); err != nil || f != want {
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
	p.rest.triedTask, p.rest.timedOut = true, true
	p.presence.Asked(muster.Lead, "Shall I?")
	expect("timed out, with a question", IdleFacts{Claim: Presented, TriedTask: true, TimedOut: true, KeepsClaim: true})
	p.rest.timedOut = false
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
		mail := l.mail(muster.Lead)
		if last := mail[len(mail)-1].Content; !strings.HasPrefix(last, "alice was idle for 1m0s with task #1 in hand") {
			l.Errorf("the lead reads %q", last)
		}
	})
}
