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
	for what, change := range map[string]func(p *life) error{
		"status": func(p *life) error { return p.presence.setStatus(t.Context(), muster.Idle, "", "works") },
		"reason": func(p *life) error {
			return p.presence.setStatus(t.Context(), muster.Working, muster.IdleTasks, "works")
		},
		"doing": func(p *life) error { return p.presence.setStatus(t.Context(), muster.Working, "", "rests") },
		"task": func(p *life) error {
			p.claims.setTask(muster.Task{ID: 7})
			return p.presence.setStatus(t.Context(), muster.Working, "", "works")
		},
		"questions": func(p *life) error {
			p.presence.Asked("bob", "Is it done?")
			return p.presence.setStatus(t.Context(), muster.Working, "", "works")
		},
		"": func(p *life) error { return p.presence.setStatus(t.Context(), muster.Working, "", "works") },
	} {
		p := newParts(t, "alice")
		p.must(p.presence.setStatus(t.Context(), muster.Working, "", "works"))
		p.presence.turns.Store(9)
		p.must(change(p))
		m := p.me()
		if (m.Turns == 9) != (what != "") {
			t.Errorf("%q: her record is %+v", what, m)
		}
		got := map[string]bool{"status": m.Status != muster.Working, "reason": m.IdleReason != "", "doing": m.Doing != "works",
			"task": m.Task != 0, "questions": len(m.Extra) > 0}
		for field, changed := range got {
			if changed != (field == what) {
				t.Errorf("%q: %s changed: %v, in %+v", what, field, changed, m)
			}
		}
		if me := p.presence.Me(); me.Turns != m.Turns || me.Status != m.Status {
			t.Errorf("%q: she knows herself as %+v", what, me)
		}
	}
	failEach(t, func(*life) {}, func(p *life) error {
		return p.presence.setStatus(p.Context(), muster.Idle, muster.IdleTasks, "")
	})
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

// A member that waits for its model shows until when, and that it goes on; the log says what failed.
func TestAParkedMemberShowsIt(t *testing.T) {
	p := newParts(t, "alice")
	p.presence.show(t.Context(), "works")
	if p.presence.onModelReply(t.Context()); p.me().Doing != "works" {
		t.Errorf("it was not parked, and is %q", p.me().Doing)
	}
	until := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	p.presence.onModelWait(until, &llm.Error{Kind: llm.Overloaded, Status: 529, Err: errors.New("too many")})
	if m := p.me(); m.Doing != "parked until 03:04:05" || m.Status != muster.Working {
		t.Errorf("she is %s and %q", m.Status, m.Doing)
	}
	if s := p.logged.String(); !strings.Contains(s, "status=529") || strings.Contains(s, "too many") {
		t.Errorf("logged is %s", s)
	}
	if p.presence.onModelReply(t.Context()); p.me().Doing != "" {
		t.Errorf("the model has answered, and she is %q", p.me().Doing)
	}
	p.presence.show(t.Context(), "works")
	if p.presence.onModelReply(t.Context()); p.me().Doing != "works" {
		t.Errorf("the model has answered again, and she is %q", p.me().Doing)
	}
}

// What a member waits for is shown until it is over, even if the member is stopped; a record that cannot be written
// stops nobody.
func TestAnActivityIsShown(t *testing.T) {
	p := newParts(t, "alice")
	ctx, stop := context.WithCancel(t.Context())
	done := p.presence.showActivity(ctx, "lands 1")
	if p.me().Doing != "lands 1" {
		t.Errorf("she is %q", p.me().Doing)
	}
	stop()
	if done(); p.me().Doing != "" {
		t.Errorf("it is over, and she is %q", p.me().Doing)
	}
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
	failEach(t, func(*life) {}, func(p *life) error {
		return errors.Join(p.presence.leave(p.Context()), p.presence.rejoin(p.Context()))
	})
}
