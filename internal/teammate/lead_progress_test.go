package teammate

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/board"
)

func idleMember(name, role string) muster.Member {
	return muster.Member{Name: muster.Name(name), Role: role, Status: muster.Idle}
}

func TestStuck(t *testing.T) {
	idle := idleMember
	asks := func(name string, whom ...muster.Name) muster.Member {
		m := idle(name, "coder")
		setAsked(&m, whom)
		return m
	}
	task := func(id muster.TaskID, change func(*muster.Task)) muster.Task {
		t := muster.Task{ID: id, Status: muster.Pending}
		if change != nil {
			change(&t)
		}
		return t
	}
	claimed := func(id muster.TaskID, owner muster.Name) muster.Task {
		return task(id, func(t *muster.Task) { t.Owner, t.Status = owner, muster.InProgress })
	}
	gone := muster.Member{Name: "alice", Role: "coder", Status: muster.Shutdown}
	for _, c := range []struct {
		name    string
		open    []muster.Task
		talking []muster.Name
		members []muster.Member
		pending []muster.Request
		patient bool
		want    string // "" when something can move
	}{
		{name: "nobody there", open: []muster.Task{task(1, nil)}, want: "no teammate to take it"},
		{name: "an idle teammate may take it",
			open: []muster.Task{task(1, nil)}, members: []muster.Member{idle("alice", "coder")}},
		{name: "a shut down one may not", open: []muster.Task{task(1, nil)},
			members: []muster.Member{gone}, want: "no teammate"},
		{name: "the role is missing", open: []muster.Task{task(1, func(t *muster.Task) { t.ClaimRole = "tester" })},
			members: []muster.Member{idle("alice", "coder")}, want: "is for a tester and there is none"},
		{name: "somebody works", open: []muster.Task{task(1, nil)}, talking: []muster.Name{"alice"}},
		{name: "blocked by what needs attention",
			open:    []muster.Task{task(2, func(t *muster.Task) { t.BlockedBy = []muster.TaskID{1, 3} })},
			members: []muster.Member{idle("alice", "coder")}, want: "waits for #1, #3"},
		{name: "at work without an owner", open: []muster.Task{claimed(1, "")},
			members: []muster.Member{idle("alice", "coder")}, want: "task #1 is in progress and nobody's"},
		{name: "an idle owner waits for an answer", open: []muster.Task{claimed(1, "alice")},
			members: []muster.Member{idle("alice", "coder")}},
		{name: "an idle owner who is never timed out", open: []muster.Task{claimed(1, "alice")},
			members: []muster.Member{idle("alice", "coder")}, patient: true,
			want: "held by alice, who is idle"},
		{name: "one that claimed just now, and has not said yet that it works",
			open: []muster.Task{task(1, func(t *muster.Task) {
				t.Owner, t.Status, t.ClaimedAt = "alice", muster.InProgress, muster.UnixTime(time.Now())
			})}, members: []muster.Member{idle("alice", "coder")}, patient: true},
		{name: "one that claimed it just now, and rests with it already",
			open: []muster.Task{task(1, func(t *muster.Task) {
				t.Owner, t.Status, t.ClaimedAt = "alice", muster.InProgress, muster.UnixTime(time.Now())
			})}, members: []muster.Member{{Name: "alice", Role: "coder", Status: muster.Idle, Task: 1}}, patient: true,
			want: "who is idle"},
		{name: "an idle owner takes no other task either", open: []muster.Task{claimed(1, "alice"), task(2, nil)},
			members: []muster.Member{idle("alice", "coder")}, patient: true,
			want: "task #2 is ready and there is no teammate to take it"},
		{name: "it waits for the lead", open: []muster.Task{claimed(1, "alice")},
			members: []muster.Member{asks("alice", muster.Lead)}, want: "waits for an answer of lead"},
		{name: "it waits for others", open: []muster.Task{claimed(1, "alice")},
			members: []muster.Member{asks("alice", "bob", "carl")}, want: "waits for an answer of bob"},
		{name: "it waits for others and the lead", open: []muster.Task{claimed(1, "alice")},
			members: []muster.Member{asks("alice", "bob", muster.Lead)}, want: "waits for an answer of lead"},
		{name: "it waits for the user", open: []muster.Task{claimed(1, "alice")},
			members: []muster.Member{asks("alice", muster.Lead, muster.User)}},
		{name: "its owner has shut down", open: []muster.Task{claimed(1, "alice")},
			members: []muster.Member{gone}, want: "who has shut down"},
		{name: "claimed from outside", open: []muster.Task{claimed(1, "script")}},
		{name: "in the lead's own hand", open: []muster.Task{claimed(1, muster.Lead)},
			want: "held by the lead"},
		{name: "the user is asked",
			open: []muster.Task{task(1, nil)}, pending: []muster.Request{{To: muster.User}}},
		{name: "only the lead is asked",
			open: []muster.Task{task(1, nil)}, pending: []muster.Request{{To: muster.Lead}}, want: "no teammate"},
	} {
		got := stuckReason(TeamProgress{Open: c.open, Working: c.talking, Patient: c.patient}, c.members, c.pending)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// An idle member stays while a task waits for it and somebody else is at work.
func TestMayGetWork(t *testing.T) {
	on := func(id muster.TaskID, ids ...muster.TaskID) muster.Task {
		return muster.Task{ID: id, Status: muster.Pending, BlockedBy: ids, ClaimRole: "tester"}
	}
	of := func(owner muster.Name, claimedAt float64) muster.Task {
		return muster.Task{ID: 1, Status: muster.InProgress, Owner: owner, ClaimedAt: claimedAt}
	}
	for _, c := range []struct {
		name  string
		bob   muster.MemberStatus
		tasks []muster.Task
		want  bool
	}{
		{"bob is at work", muster.Working, []muster.Task{on(2, 1)}, true},
		{"somebody outside of the team is", muster.Idle, []muster.Task{of("stranger", 0), on(2, 1)}, true},
		{"bob has claimed it this moment", muster.Idle, []muster.Task{of("bob", muster.UnixTime(time.Now())), on(2, 1)}, true},
		{"bob rests with it", muster.Idle, []muster.Task{of("bob", 0), on(2, 1)}, false},
		{"it is its own", muster.Idle, []muster.Task{of("tess", 0), on(2, 1)}, false},
		{"one has become ready", muster.Idle, []muster.Task{on(2)}, true},
		{"bob may claim what is ready", muster.Idle, []muster.Task{{ID: 1, Status: muster.Pending, ClaimRole: "coder"},
			on(2, 1)}, true},
		{"it rests with a task of its own", muster.Idle, []muster.Task{of("tess", 0), on(2)}, false},
		{"bob rests with one of his", muster.Idle, []muster.Task{of("bob", 0), {ID: 3, Status: muster.Pending,
			ClaimRole: "coder"}, on(2, 3)}, false},
		{"nobody can claim what is ready", muster.Idle, []muster.Task{{ID: 1, Status: muster.Pending, ClaimRole: "writer"},
			on(2, 1)}, false},
		{"what is blocked is not for it", muster.Working, []muster.Task{{ID: 2, Status: muster.Pending, ClaimRole: "writer",
			BlockedBy: []muster.TaskID{1}}}, false},
	} {
		bob, tess := idleMember("bob", "coder"), idleMember("tess", "tester")
		bob.Status = c.bob
		if got := mayGetWork(c.tasks, []muster.Member{bob, tess}, tess, nil); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// A claim counts as just made for ten seconds, to the moment, whichever clock is ahead.
func TestClaimGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bob := idleMember("bob", "coder")
		for ago, want := range map[time.Duration]bool{claimGrace - time.Millisecond: false, claimGrace: true,
			-claimGrace + time.Millisecond: false, -claimGrace: true} {
			task := muster.Task{ID: 1, ClaimedAt: muster.UnixTime(time.Now().Add(-ago))}
			if isIdleWith(&bob, task) != want {
				t.Errorf("claimed %v ago", ago)
			}
		}
	})
}

// What wakes the lead, from the most to the least urgent; a lead that nothing needs sleeps on.
func TestWakeReason(t *testing.T) {
	request := muster.Request{ID: "0000beef", From: "alice", Kind: muster.AskPlan, TaskID: 3}
	forTester := muster.Task{ID: 4, Status: muster.Pending, ClaimRole: "tester"}
	for _, c := range []struct {
		name string
		f    wakeFacts
		want string
	}{
		{"all goes on", wakeFacts{progress: canGoOn}, ""},
		{"mail", wakeFacts{mail: true, landing: "landed"}, mailWaits},
		{"all done", wakeFacts{progress: TeamProgress{HadTasks: true, Landed: 2}},
			"All done: 2 tasks landed, nothing is open."},
		{"all done but one",
			wakeFacts{progress: TeamProgress{Landed: 1, NeedsAttention: []muster.Task{{ID: 2, Subject: "b",
				Result: "red"}}}}, "All done: 1 task landed, nothing is open. Task #2 (b) needs attention: red."},
		{"a landing that it waits for", wakeFacts{progress: canGoOn, landing: "Task #1 landed."}, "Task #1 landed."},
		{"nothing can move", wakeFacts{progress: isStuck}, "Nothing can wake you: " + isStuck.Stuck + "."},
		{"a request waits", wakeFacts{progress: canGoOn, requests: []muster.Request{request}},
			"Request 0000beef of alice (plan for 3) waits for your decision."},
		{"nobody may take a task", wakeFacts{progress: canGoOn, unclaimable: []muster.Task{forTester}},
			"No teammate can claim the tasks that are ready: task #4 is for a tester and there is none"},
	} {
		got, about := wakeReason(c.f)
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if len(about) != len(c.f.requests)+len(c.f.unclaimable) {
			t.Errorf("%s: told of %q", c.name, about)
		}
	}
}

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
		l.runErr = errTest
		_, err = l.config.Progress(ctx)
		l.wants("without a run", err, errTest)
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
}

// Who keeps its claim though the idle timeout has passed.
func TestWhoKeepsItsClaim(t *testing.T) {
	live(t, "alice", func(l *life) {
		ctx := l.Context()
		l.open()
		l.create(board.Draft{Role: "tester"})
		_, err := l.world.Roster.Add(ctx, muster.Member{Name: "bob", Role: "coder"})
		l.must(err)
		expect := func(what string, want bool) {
			t.Helper()
			if got, err := l.keepsClaim(ctx); err != nil || got != want {
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
		l.team.Talk = talk
		expect("the user is in a conversation", true)
		close(talk.closed)
		expect("the conversation is over", false)
		l.startJob()
		expect("a job runs", true)
		l.jobs.Stop()
	})
}
