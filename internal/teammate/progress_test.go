package teammate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"muster"
	"muster/internal/board"
)

// watched is a store that tells each look into an inbox before it happens.
type watched struct {
	muster.Store
	look *func(muster.Name)
}

type watchedInbox struct {
	muster.Inbox
	look *func(muster.Name)
}

func (w watched) Inbox() muster.Inbox { return watchedInbox{w.Store.Inbox(), w.look} }

func (w watchedInbox) Peek(ctx context.Context, box muster.Name, after muster.Pos, most int) ([]muster.Message, muster.Pos, error) {
	if *w.look != nil {
		(*w.look)(box)
	}
	return w.Inbox.Peek(ctx, box, after, most)
}

func TestProgressLooksIntoTheInboxes(t *testing.T) {
	l := newParts(t, "alice")
	var look func(muster.Name)
	s := l.on(watched{l.world.Store, &look})
	l.Cleanup(func() { look = nil })
	be := func(name muster.Name, is muster.MemberStatus) {
		l.change(name, func(m *muster.Member) { m.Status = is })
	}
	var looked []muster.Name
	expect := func(what string, talking ...muster.Name) {
		t.Helper()
		looked = nil
		o, err := s.Progress(t.Context())
		if err != nil || !slices.Equal(o.Working, talking) || o.Done() != (len(talking) == 0) {
			t.Errorf("%s: %v are talking, done is %v, want %v: %v", what, o.Working, o.Done(), talking, err)
		}
	}
	be("alice", muster.Idle)
	be("bob", muster.Idle)
	look = func(box muster.Name) { looked = append(looked, box) }
	if expect("all are idle"); len(looked) != 2 {
		t.Errorf("looked into the inboxes of %v", looked)
	}
	l.send(muster.MailIdle, muster.User, "bob", "hello")
	expect("news wakes nobody")
	l.send(muster.MailMessage, muster.User, "bob", "hello")
	expect("mail waits for bob", "bob")
	be("alice", muster.Working)
	if expect("alice works", "alice"); len(looked) != 0 {
		t.Errorf("somebody works, and it looked into the inboxes of %v", looked)
	}
	be("alice", muster.Idle)
	look = func(box muster.Name) {
		if box == "bob" { // at this very moment
			look = nil
			be("bob", muster.Working)
			_, end, _, err := l.world.Post.Peek(t.Context(), "bob", 0, 0)
			l.must(err)
			l.must(l.world.Post.Drop(t.Context(), "bob", end))
		}
	}
	expect("bob takes its mail while it is looked for", "bob")
	be("bob", muster.Shutdown)
	expect("bob is gone")
}

// The progress of a run: what is open, what needs attention, what has landed in it, and what nobody may claim.
func TestProgressOfARun(t *testing.T) {
	members := []muster.Member{idleMember("alice", "coder")}
	landed := &muster.Landed{Commit: "c"}
	run := muster.Run{First: 10, Open: []muster.TaskID{2}, StartedAt: 100}
	for _, c := range []struct {
		name string
		task muster.Task
		want TeamProgress // how many of each
	}{
		{"open", muster.Task{ID: 1, Status: muster.Pending}, TeamProgress{HadTasks: true, Open: make([]muster.Task, 1)}},
		{"for a role that nobody has", muster.Task{ID: 10, Status: muster.Pending, ClaimRole: "tester"},
			TeamProgress{HadTasks: true, Open: make([]muster.Task, 1), Unclaimable: make([]muster.Task, 1)}},
		{"claimed", muster.Task{ID: 10, Status: muster.InProgress, ClaimRole: "tester", Owner: muster.Lead},
			TeamProgress{HadTasks: true, Open: make([]muster.Task, 1)}},
		{"held from outside", muster.Task{ID: 10, Status: muster.InProgress, Owner: "script"},
			TeamProgress{HadTasks: true, Open: make([]muster.Task, 1), HeldOutside: make([]muster.Task, 1)}},
		{"held by a member", muster.Task{ID: 10, Status: muster.InProgress, Owner: "alice"},
			TeamProgress{HadTasks: true, Open: make([]muster.Task, 1)}},
		{"landed", muster.Task{ID: 2, Status: muster.Completed, Landed: landed}, TeamProgress{HadTasks: true, Landed: 1}},
		{"without a change", muster.Task{ID: 10, Status: muster.Completed}, TeamProgress{HadTasks: true}},
		{"needs attention", muster.Task{ID: 10, Status: muster.NeedsAttention},
			TeamProgress{HadTasks: true, NeedsAttention: make([]muster.Task, 1)}},
		{"landed in an earlier run", muster.Task{ID: 1, Status: muster.Completed, Landed: landed}, TeamProgress{}},
		{"needs attention since an earlier run", muster.Task{ID: 1, Status: muster.NeedsAttention}, TeamProgress{}},
	} {
		var p TeamProgress
		p.addTasks(run, []muster.Task{c.task}, members)
		p.addTasks(run, nil, members)
		if p.HadTasks != c.want.HadTasks || len(p.Open) != len(c.want.Open) || p.Landed != c.want.Landed ||
			len(p.NeedsAttention) != len(c.want.NeedsAttention) || len(p.Unclaimable) != len(c.want.Unclaimable) ||
			len(p.HeldOutside) != len(c.want.HeldOutside) {
			t.Errorf("%s: %+v", c.name, p)
		}
	}
	had := TeamProgress{HadTasks: true}
	if had.addTasks(run, []muster.Task{{ID: 1, Status: muster.Completed}}, nil); !had.HadTasks {
		t.Error("that there were tasks is forgotten")
	}
	if (TeamProgress{Unreadable: []muster.UnreadableTask{{ID: 1}}}).Done() || (TeamProgress{Open: make([]muster.Task, 1)}).Done() {
		t.Error("open work is done")
	}
}

// Progress reads what waits for the lead, what cannot be read, and whether anybody is ever timed out.
func TestProgressReadsAllRecords(t *testing.T) {
	live(t, muster.Lead, func(l *life) {
		ctx := l.Context()
		progress := func() TeamProgress {
			t.Helper()
			p, err := l.config.Progress(ctx)
			l.must(err)
			return p
		}
		if p := progress(); p.Patient || len(p.Requests) != 0 || p.Stuck != "" || !p.Done() {
			l.Errorf("at first: %+v", p)
		}
		for _, to := range []muster.Name{muster.Lead, muster.User} {
			l.ask("", muster.AskPermission, "alice", to)
		}
		if p := progress(); len(p.Requests) != 1 || p.Requests[0].To != muster.Lead {
			l.Errorf("the requests for the lead are %+v", p.Requests)
		}
		l.must(l.world.Requests.Withdraw(ctx, "alice", "no", func(muster.Request) bool { return true }))
		_, err := l.world.Store.Table(muster.TableTasks).Put(ctx, "7", []byte(`{"id":"torn"}`), muster.None)
		l.must(err)
		if p := progress(); len(p.Unreadable) != 1 || p.Done() || !strings.HasPrefix(p.Stuck, "task #7 cannot be read (") {
			l.Errorf("with a torn record: %+v", p)
		}
		l.run.First = 8
		if p := progress(); len(p.Unreadable) != 0 || p.Stuck != "" {
			l.Errorf("the torn record is of an earlier run: %+v", p)
		}
		l.create(board.Draft{Role: "tester"})
		if p := progress(); !p.HadTasks || len(p.Open) != 1 || p.Stuck == "" || p.Done() {
			l.Errorf("with a task for nobody: %+v", p)
		}
		l.config.Patient = true
		if !progress().Patient {
			l.Error("the team is patient")
		}
		l.config.Patient = false
		lease, err := l.world.Store.Leases().Acquire(ctx, TalkLease)
		l.must(err)
		if !progress().Patient {
			l.Error("the user talks with the lead in another process")
		}
		l.must(lease.Release())
		talk := newTalk()
		if l.config.Talk = talk; !progress().Patient {
			l.Error("the user talks with the lead here")
		}
		if close(talk.closed); progress().Patient {
			l.Error("the conversation is closed")
		}
	})
}

// Where nothing can move, mail that waits for an idle teammate still can: it counts as at work. Mail of a shutdown that
// was decided already wakes nobody, and the lead's own does not count.
func TestProgressCountsWaitingMail(t *testing.T) {
	live(t, muster.Lead, func(l *life) {
		ctx := l.Context()
		l.change(muster.Lead, func(m *muster.Member) { m.Status = muster.Idle })
		l.send(muster.MailMessage, "alice", muster.Lead, "hello")
		expect := func(what string, working bool) {
			t.Helper()
			if p, err := l.config.Progress(ctx); err != nil || (len(p.Working) > 0) != working ||
				p.Stuck != "" && working {
				l.Errorf("%s: %+v, %v", what, p, err)
			}
		}
		expect("mail for the lead", false)
		q := l.ask("", muster.AskShutdown, muster.User, "alice")
		expect("a request to shut down", true)
		l.decide(q, "alice", false, "no")
		expect("one that was decided", false)
		l.create(board.Draft{Role: "tester"})
		expect("a task for nobody", false)
		l.send(muster.MailMessage, muster.Lead, "alice", "hello")
		expect("mail for alice", true)
	})
	live(t, muster.Lead, func(l *life) {
		l.runErr = muster.Errorf(muster.Unavailable, "no run")
		if _, err := l.config.Progress(l.Context()); !errors.Is(err, muster.ErrUnavailable) {
			l.Errorf("without a run: %v", err)
		}
	})
}

// Who keeps its claim though the idle timeout has passed.
func TestWhoKeepsItsClaim(t *testing.T) {
	live(t, "alice", func(l *life) {
		ctx := l.Context()
		l.open()
		l.create(board.Draft{})
		_, err := l.world.Roster.Add(ctx, muster.Member{Name: "bob", Role: "coder"})
		l.must(err)
		expect := func(what string, want bool) {
			t.Helper()
			if got, err := l.idle.keepsClaim(ctx); err != nil || got != want {
				l.Errorf("%s: %v, %v", what, got, err)
			}
		}
		asks := func(whom ...muster.Name) {
			l.presence.known.change(func(k *knownRecord) { k.asked = whom })
		}
		expect("nothing could change", false)
		asks(muster.User)
		expect("the user may answer", true)
		asks(muster.Lead)
		expect("the lead may answer", true)
		asks("carol")
		expect("nobody of that name could answer", false)
		asks("bob")
		expect("bob may answer", true)
		l.change("bob", func(m *muster.Member) { m.Status = muster.Shutdown })
		expect("bob has shut down", false)
		asks()
		talk := newTalk()
		l.Talk = talk
		expect("the user is in a conversation", true)
		close(talk.closed)
		expect("the conversation is over", false)
		l.startJob()
		expect("a job runs", true)
		l.jobs.Stop()
	})
}
