package teammate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/landing"
	"muster/internal/mailbox"
	"muster/internal/paths"
	"muster/internal/proc"
	"muster/internal/requests"
	"muster/internal/roster"
	"muster/internal/teammate"
	"muster/internal/worktree"
	"muster/journal"
	"muster/llm"
	"muster/loop"
	"muster/store/mem"
)

// living is one living member, alice, on a state in memory: without git, with a launcher that starts nothing real, and
// with a model that says what the test has written down for each turn.
type living struct {
	*testing.T
	services teammate.Services
	started  *launcher
	turns    []func(llm.Request) llm.Message
	onWait   func(until time.Time, why error)
	cancel   context.CancelFunc
	ended    chan struct{}
	err      error
}

// live runs the test in a bubble with alice and bob in the roster. Alice lives once start is called.
func live(t *testing.T, f func(l *living)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := mem.New()
		j := journal.New(s.Log())
		l := &living{T: t, started: &launcher{}, ended: make(chan struct{})}
		l.services = teammate.Services{Team: "demo", Home: paths.Dir(dir), Store: s, Journal: j,
			Board: board.New(s, j), Roster: roster.New(s, j, "demo"),
			Lanes: &lanes{dir: dir, all: map[muster.Name]muster.Lane{}}, Lander: lander{}, Launcher: l.started,
			Log: slog.New(slog.DiscardHandler),
			Run: func(context.Context) (muster.Run, error) { return muster.Run{Cap: 4}, nil }}
		l.services.Post = mailbox.New(s, j, l.services.Roster.Known)
		l.services.Requests = requests.New(s, l.services.Post, j)
		l.services.Queue = teammate.NewQueue(l.services.Board)
		for _, name := range []muster.Name{"alice", "bob"} {
			_, err := l.services.Roster.Add(t.Context(), muster.Member{Name: name, Role: "coder", Prompt: "Work."})
			l.must(err)
			l.change(name, func(m *muster.Member) { m.Status, m.Host = muster.Working, "here" })
		}
		f(l)
	})
}

func (l *living) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *living) change(name muster.Name, f func(*muster.Member)) {
	l.Helper()
	_, err := l.services.Roster.Update(l.Context(), name, f)
	l.must(err)
}

func (l *living) alice() muster.Member {
	l.Helper()
	m, err := l.services.Roster.Get(l.Context(), "alice")
	l.must(err)
	return m
}

func (l *living) send(kind muster.MessageType, from muster.Name, text string) {
	l.Helper()
	_, err := l.services.Post.Send(l.Context(), muster.Message{Type: kind, From: from, To: "alice", Content: text})
	l.must(err)
}

// newMember makes alice; it does not live yet.
func (l *living) newMember() *teammate.Member {
	l.Helper()
	m, err := teammate.New(teammate.Config{Services: l.services, Record: l.alice(),
		Limits: teammate.Limits{Turns: 20, IdleTimeout: time.Minute, BashTimeout: time.Minute,
			BackgroundTimeout: time.Hour},
		Emit: func(loop.Event) {},
		Model: func(_ func() (muster.TaskID, int), onWait func(time.Time, error)) (llm.Model, error) {
			l.onWait = onWait
			return l, nil
		}})
	l.must(err)
	return m
}

// start lets alice live until the test ends, and returns when she has nothing more to do.
func (l *living) start(turns ...func(llm.Request) llm.Message) {
	l.Helper()
	l.turns = turns
	m := l.newMember()
	ctx, cancel := context.WithCancel(l.Context())
	l.cancel = cancel
	l.Cleanup(cancel)
	go func() {
		defer close(l.ended)
		_, l.err = m.Live(ctx)
	}()
	synctest.Wait()
}

// hasEnded reports whether alice's life is over.
func (l *living) hasEnded() bool {
	synctest.Wait()
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

// Reply is the model's: the next turn that the test has written, then closing words.
func (l *living) Reply(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Reply, error) {
	m := words("Nothing more.")(r)
	if len(l.turns) > 0 {
		m, l.turns = l.turns[0](r), l.turns[1:]
	}
	stop := llm.StopEnd
	if len(m.Calls()) > 0 {
		stop = llm.StopTools
	}
	return llm.Reply{Message: m, Stop: stop, Model: "test"}, nil
}

// words is a turn in which the model only says something.
func words(text string) func(llm.Request) llm.Message {
	return func(llm.Request) llm.Message {
		return llm.Message{Role: llm.Assistant, Parts: []llm.Part{llm.Text{Text: text}}}
	}
}

// calls is a turn in which the model calls a tool.
func calls(name string, input map[string]any) func(llm.Request) llm.Message {
	return func(r llm.Request) llm.Message {
		data, _ := json.Marshal(input)
		call := llm.Call{ID: fmt.Sprintf("call-%d", len(r.Messages)), Name: name, Input: data}
		return llm.Message{Role: llm.Assistant, Parts: []llm.Part{call}}
	}
}

// launcher starts commands that run until they are stopped, but for those that begin with "echo".
type launcher struct {
	mu  sync.Mutex
	all []*command
}

type command struct {
	ctx  context.Context
	long bool
}

func (l *launcher) Start(ctx context.Context, s proc.Spec) (proc.Process, error) {
	c := &command{ctx, !strings.Contains(strings.Join(s.Argv, " "), "echo")}
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.long {
		l.all = append(l.all, c)
	}
	return c, nil
}

func (*launcher) Close() error { return nil }

func (c *command) Wait() (int, error) {
	if !c.long {
		return 0, nil
	}
	<-c.ctx.Done()
	return 137, context.Cause(c.ctx)
}

func (*command) Kill() error { return nil }
func (*command) PID() int    { return 1 }

// lanes are rows without git, all in one directory. Only what the tests need is there.
type lanes struct {
	teammate.Lanes
	dir string
	all map[muster.Name]muster.Lane
}

func (l *lanes) List(context.Context) ([]muster.Lane, error) { return nil, nil }

func (l *lanes) Create(_ context.Context, name muster.Name, task muster.TaskID, base string) (muster.Lane, error) {
	l.all[name] = muster.Lane{Name: name, Path: l.dir, TaskID: task, Base: base, Status: muster.LaneActive}
	return l.all[name], nil
}

func (l *lanes) Get(_ context.Context, name muster.Name) (muster.Lane, error) {
	return l.all[name], nil
}

func (l *lanes) Occupy(context.Context, muster.Name, worktree.Occupant, worktree.Occupant) error {
	return nil
}

func (l *lanes) Enter(context.Context, muster.Name) (string, error)   { return l.dir, nil }
func (l *lanes) Workdir(context.Context, muster.Name) (string, error) { return l.dir, nil }
func (l *lanes) ScratchChanges(context.Context, muster.Name, []string) ([]string, error) {
	return nil, nil
}

func (l *lanes) Scratch(context.Context, muster.Name, string) (string, error) { return l.dir, nil }
func (l *lanes) Changed(context.Context, muster.Name) (bool, error)           { return true, nil }
func (l *lanes) Fingerprint(context.Context, muster.Name) (string, error)     { return "", nil }
func (l *lanes) Status(context.Context, muster.Name) (string, error)          { return "", nil }
func (l *lanes) Release(context.Context, muster.Name) error                   { return nil }
func (l *lanes) Archive(context.Context, muster.Name) (string, error)         { return "", nil }

// lander has a target to make lanes from; nothing lands on it.
type lander struct{ teammate.Lander }

func (lander) Target(context.Context) (string, error) { return "base", nil }

func (lander) Land(context.Context, muster.TaskID, int, string, muster.Name) (landing.Verdict, error) {
	return landing.Verdict{}, errors.New("nothing lands here")
}

// Whoever hosts a member no longer writes nothing of its status: the record is the new host's. It ends as fenced.
func TestAMemberWithANewHostWritesNoStatus(t *testing.T) {
	t.Run("at work", func(t *testing.T) {
		live(t, func(l *living) {
			l.start(func(r llm.Request) llm.Message {
				l.change("alice", func(m *muster.Member) {
					m.Host, m.Status, m.Doing = "elsewhere", muster.Working, "goes on"
				})
				return words("Done.")(r)
			})
			if !l.hasEnded() || !errors.Is(l.err, muster.ErrFenced) {
				l.Errorf("it ended: %v, with %v", l.hasEnded(), l.err)
			}
			if m := l.alice(); m.Host != "elsewhere" || m.Status != muster.Working || m.Doing != "goes on" {
				l.Errorf("the new host's record is %+v", m)
			}
		})
	})
	t.Run("parked for its model", func(t *testing.T) {
		live(t, func(l *living) {
			l.newMember()
			l.change("alice", func(m *muster.Member) { m.Host, m.Status = "elsewhere", muster.Idle })
			l.onWait(time.Now().Add(time.Minute), errors.New("overloaded"))
			if m := l.alice(); m.Host != "elsewhere" || m.Status != muster.Idle || m.Doing != "" {
				l.Errorf("the new host's record is %+v", m)
			}
		})
	})
}

// A member that has asked somebody is not timed out before the answer has come, and status news of the one who was
// asked is no answer.
func TestNewsIsNotAnAnswer(t *testing.T) {
	live(t, func(l *living) {
		l.start(
			calls("send_message", map[string]any{"to": "bob", "content": "Is the parser done?"}),
			words("I wait for bob."))
		l.send(muster.MailIdle, "bob", "bob is idle (no_tool_use).")
		l.send(muster.MailMessage, muster.Lead, "Go on.") // wakes alice, and the news enters with it
		time.Sleep(10 * time.Minute)
		if l.hasEnded() {
			l.Fatalf("timed out while it waits for an answer: %v", l.err)
		}
		l.send(muster.MailMessage, "bob", "It is done.")
		time.Sleep(10 * time.Minute)
		if !l.hasEnded() || l.err != nil {
			l.Errorf("still there after the answer, or %v", l.err)
		}
	})
}

// A member that has lost its claim stops the background jobs that it has started for the task. They would go on writing
// in a lane that may be the next owner's.
func TestALostClaimStopsItsJobs(t *testing.T) {
	live(t, func(l *living) {
		task, err := l.services.Board.Create(l.Context(), board.Draft{Subject: "one", CreatedBy: muster.Lead})
		l.must(err)
		l.start(
			calls("bash", map[string]any{"command": "make watch", "background": true}),
			func(r llm.Request) llm.Message {
				if len(l.started.all) != 1 || l.started.all[0].ctx.Err() != nil {
					l.Errorf("the job does not run: %d were started", len(l.started.all))
				}
				_, err := l.services.Board.Revoke(l.Context(), task.ID, task.Fence+1, muster.User, "too slow")
				l.must(err)
				_, err = l.services.Board.Claim(l.Context(), task.ID, board.Claim{Owner: "bob"})
				l.must(err)
				return calls("bash", map[string]any{"command": "echo on"})(r)
			})
		if l.hasEnded() || len(l.turns) != 0 {
			l.Fatalf("it ended with %v, with %d turns left", l.err, len(l.turns))
		}
		if len(l.started.all) == 1 && l.started.all[0].ctx.Err() == nil {
			l.Error("the job runs on")
		}
	})
}

// An idle member with a task keeps it until the idle timeout; then the task goes back, and the lead is told.
func TestIdleTimeoutReleasesTheTask(t *testing.T) {
	live(t, func(l *living) {
		task, err := l.services.Board.Create(l.Context(), board.Draft{Subject: "one", CreatedBy: muster.Lead})
		l.must(err)
		l.start(words("I cannot go on."), words("I still cannot."))
		if now, err := l.services.Board.Get(l.Context(), task.ID); err != nil || now.Owner != "alice" {
			l.Fatalf("the task is %q's: %v", now.Owner, err)
		}
		if m := l.alice(); m.Status != muster.Idle || m.Task != task.ID {
			l.Errorf("she is shown as %s with task %d", m.Status, m.Task)
		}
		time.Sleep(50 * time.Second)
		if l.hasEnded() {
			l.Fatal("timed out too early")
		}
		time.Sleep(20 * time.Second)
		if !l.hasEnded() || l.err != nil {
			l.Fatalf("she has not ended: %v", l.err)
		}
		if now, err := l.services.Board.Get(l.Context(), task.ID); err != nil || now.Status != muster.Pending {
			l.Errorf("the task is %s: %v", now.Status, err)
		}
		if m := l.alice(); m.Status != muster.Shutdown || m.IdleReason != muster.IdleTimeout || m.Host != "" {
			l.Errorf("her record is %+v", m)
		}
	})
}

// Mail wakes an idle member once, enters its conversation, and leaves the inbox.
func TestMailWakesAnIdleMember(t *testing.T) {
	live(t, func(l *living) {
		heard := 0
		hears := func(r llm.Request) llm.Message {
			last := fmt.Sprint(r.Messages[len(r.Messages)-1])
			if strings.Contains(last, "Look at the parser.") {
				heard++
			}
			return words("Noted.")(r)
		}
		l.start(words("Ready."))
		l.turns = append(l.turns, hears, hears)
		l.send(muster.MailIdle, "bob", "bob is idle (no_tool_use).") // news wakes nobody
		synctest.Wait()
		if len(l.turns) != 2 {
			l.Fatal("status news has woken her")
		}
		l.send(muster.MailMessage, muster.Lead, "Look at the parser.")
		synctest.Wait()
		if heard != 1 || len(l.turns) != 1 {
			l.Errorf("heard %d times, %d turns left", heard, len(l.turns))
		}
		if msgs, _, _, err := l.services.Post.Peek(l.Context(), "alice", 0, 0); err != nil || len(msgs) > 0 {
			l.Errorf("%d mails are left: %v", len(msgs), err)
		}
	})
}

// An idle member grants a shutdown without asking its model.
func TestShutdownOfAnIdleMemberAsksNoModel(t *testing.T) {
	live(t, func(l *living) {
		l.start(words("Ready."))
		l.turns = append(l.turns, func(r llm.Request) llm.Message {
			l.Error("the model was asked")
			return words("No.")(r)
		})
		q, err := l.services.Requests.Ask(l.Context(), muster.Request{Kind: muster.AskShutdown, From: muster.User,
			To: "alice", Reason: "enough"})
		l.must(err)
		if !l.hasEnded() || l.err != nil {
			l.Fatalf("she has not ended: %v", l.err)
		}
		if q, err = l.services.Requests.Get(l.Context(), q.ID); err != nil || q.Status != muster.RequestApproved {
			l.Errorf("the request is %s: %v", q.Status, err)
		}
		if m := l.alice(); m.Status != muster.Shutdown {
			l.Errorf("she is %s", m.Status)
		}
	})
}

// A member whose claim was made by a process that died before it read the task reads it when it starts.
func TestAClaimOfADeadProcessIsRead(t *testing.T) {
	live(t, func(l *living) {
		task, err := l.services.Board.Create(l.Context(), board.Draft{Subject: "the parser", CreatedBy: muster.Lead})
		l.must(err)
		_, err = l.services.Board.Claim(l.Context(), task.ID, board.Claim{Owner: "alice", Role: "coder"})
		l.must(err)
		read := 0
		l.start(func(r llm.Request) llm.Message {
			read = strings.Count(fmt.Sprint(r.Messages), "the parser")
			return words("I see.")(r)
		})
		if read == 0 {
			l.Error("she was not told of her task")
		}
		if now, err := l.services.Board.Get(l.Context(), task.ID); err != nil || now.Worktree == "" {
			l.Errorf("the task has no lane: %v", err)
		}
	})
}
