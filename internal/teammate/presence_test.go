package teammate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"muster"
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
		_, err := p.Roster.Add(t.Context(), muster.Member{Name: "alice", Role: "coder", Prompt: "Work."})
		p.must(err)
		p.must(p.presence.rejoin(t.Context()))
		if m = p.me(); m.Host != "" || p.presence.hasLeft(m) {
			t.Errorf("she was spawned again, and her record is %+v", m)
		}
	}
}
