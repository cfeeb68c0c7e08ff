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
	"muster/internal/proc"
	"muster/internal/tool/code"
	"muster/journal"
	"muster/llm"
	"muster/loop"
	"muster/tool"
)

// task is a task as the board has it.
func (l *life) task(id muster.TaskID) muster.Task {
	l.Helper()
	t, err := l.world.Board.Get(l.Context(), id)
	l.must(err)
	return t
}

// waiting is how many members wait in the queue.
func (l *life) waiting() int {
	q := l.config.Queue
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting["coder"])
}

// A member that works, or has ended, has no place in the queue: a task would be offered to nobody.
func TestOnlyAnIdleMemberIsInTheQueue(t *testing.T) {
	live(t, "alice", func(l *life) {
		l.start(says("Ready."))
		if l.waiting() != 1 {
			l.Fatalf("%d wait", l.waiting())
		}
		l.turns = []turn{func(r llm.Request) (llm.Reply, error) {
			if l.waiting() != 0 {
				l.Error("she works, and waits for a task")
			}
			return says("Noted.")(r)
		}}
		l.send(muster.MailMessage, muster.Lead, "alice", "hello")
		if synctest.Wait(); l.waiting() != 1 || len(l.turns) != 0 {
			l.Fatalf("%d wait", l.waiting())
		}
		_, err := l.world.Requests.Ask(l.Context(), muster.Request{Kind: muster.AskShutdown, From: muster.User, To: "alice"})
		l.must(err)
		if !l.hasEnded() || l.waiting() != 0 || l.end.Text != "shut down while idle" {
			l.Errorf("she has ended: %+v; %d wait", l.end, l.waiting())
		}
	})
	failEachOp(t, "alice", func(l *life) {
		_, err := l.world.Requests.Ask(l.Context(), muster.Request{ID: "0000beef", Kind: muster.AskShutdown,
			From: muster.User, To: "alice"})
		l.must(err)
	}, func(l *life) error {
		return GrantShutdown{ID: "0000beef"}.do(l.Context(), l.Member)
	})
}

// A process that no longer hosts a member begins nothing, though it can still write.
func TestAFormerHostBeginsNothing(t *testing.T) {
	for what, change := range map[string]func(*muster.Member){
		"another host": func(m *muster.Member) { m.Host = "elsewhere" },
		"another life": func(m *muster.Member) { m.Epoch++ },
	} {
		live(t, "alice", func(l *life) {
			l.open()
			l.restart("alice")
			l.change("alice", change)
			if l.start(); !l.hasEnded() || !errors.Is(l.err, muster.ErrFenced) || len(l.asked) != 0 {
				l.Errorf("%s: it ended with %v after %d turns", what, l.err, len(l.asked))
			}
		})
	}
}

// crowded is a store in which another process writes into a transcript just before this one, for some times.
type crowded struct {
	muster.Store
	left *int
}

type crowdedLog struct {
	muster.Log
	left *int
}

func (c crowded) Log() muster.Log { return crowdedLog{c.Store.Log(), c.left} }

func (c crowdedLog) Append(ctx context.Context, stream string, at muster.Pos, recs ...[]byte) (muster.Pos, error) {
	if *c.left > 0 && strings.HasPrefix(stream, muster.StreamTranscripts) {
		*c.left--
		if _, err := c.Log.Append(ctx, stream, at, []byte(`{"kind":"mark","text":"another"}`)); err != nil {
			return 0, err
		}
	}
	return c.Log.Append(ctx, stream, at, recs...)
}

// A transcript is taken over from a process that still writes, unless it goes on for too long.
func TestATranscriptIsTakenOver(t *testing.T) {
	for left, isTaken := range map[int]bool{0: true, 9: true, 10: false} {
		live(t, "alice", func(l *life) {
			l.open()
			l.config.Store = crowded{l.config.Store, &left}
			l.restart("alice")
			if script, err := l.openTranscript(l.Context()); (err == nil) != isTaken || (script != nil) != isTaken ||
				!isTaken && !errors.Is(err, muster.ErrFenced) {
				l.Errorf("%d left: %v", left, err)
			}
		})
	}
}

// A member that leaves gives its task back, which counts as no attempt, and withdraws what it has asked. No error is
// lost: it leaves only when all is written.
func TestLeave(t *testing.T) {
	prepare := func(l *life) {
		l.create(board.Draft{})
		l.open()
		_, err := l.world.Requests.Ask(l.Context(), muster.Request{ID: "0000beef", Kind: muster.AskPermission, From: "alice",
			To: muster.User})
		l.must(err)
	}
	leave := func(l *life) error {
		err := Leave{}.do(l.Context(), l.Member)
		if isGone := l.record("alice").Status == muster.Shutdown; isGone && err != nil {
			l.Errorf("she has left, with %v", err)
		}
		return err
	}
	live(t, "alice", func(l *life) {
		prepare(l)
		l.must(leave(l))
		if task := l.task(1); task.Status != muster.Pending || task.Attempts != 0 {
			l.Errorf("the task is %+v", task)
		}
		if q, err := l.world.Requests.Get(l.Context(), "0000beef"); err != nil || q.Status == muster.RequestPending {
			l.Errorf("the request is %+v, %v", q, err)
		}
	})
	failEachOp(t, "alice", prepare, leave)
}

// Mail that came just before a member was timed out is read: it takes its shutdown back.
func TestMailThatCameBeforeTheShutdownIsRead(t *testing.T) {
	live(t, "alice", func(l *life) {
		ctx := l.Context()
		l.open()
		l.must(Leave{}.do(ctx, l.Member))
		l.send(muster.MailMessage, muster.Lead, "alice", "Wait!")
		for _, want := range []Action{Rejoin{}, ReadMail{}} {
			f, err := l.facts(ctx)
			l.must(err)
			if got := Next(f); got != want {
				l.Fatalf("%T, not %T", got, want)
			}
			l.must(Next(f).do(ctx, l.Member))
		}
		if m := l.record("alice"); m.Status != muster.Working || m.Host != "here" || !strings.Contains(l.said(), "Wait!") {
			l.Errorf("she is %+v, and was told %s", m, l.said())
		}
	})
}

// restartWithCalls restarts a member whose last reply made calls that have no result.
func restartWithCalls(l *life, names ...string) {
	ctx := l.Context()
	l.open()
	var parts llm.Parts
	for _, name := range names {
		parts = append(parts, llm.Call{ID: "id-" + name, Name: name, Input: []byte("{}")})
	}
	l.must(l.conversation.script.Reply(ctx, llm.Reply{Stop: llm.StopTools, Message: llm.Message{Parts: parts}}))
	l.restart("alice")
	l.must(l.Member.open(ctx))
}

// recorded is a tool whose outcome is in records.
func recorded(name string, known bool, err error) llm.Tool {
	t := tool.Func(name, "", func(context.Context, struct{}) (string, error) { return "", errTest })
	return tool.Recoverable(t, func(_ context.Context, _ struct{}, resume bool) (llm.Result, bool, error) {
		if resume {
			return tool.Text("resumed " + name), known, err
		}
		return tool.Text("found " + name), known, err
	})
}

// Calls that were cut off are answered from records where these know, and no call is run again.
func TestCallsThatWereCutOffAreAnswered(t *testing.T) {
	live(t, "alice", func(l *life) {
		l.config.Extra = []llm.Tool{recorded("sure", true, nil), recorded("unsure", false, nil)}
		restartWithCalls(l, "sure", "unsure", "bash")
		l.must(RecoverCalls{}.do(l.Context(), l.Member))
		if got := l.said(); strings.Count(got, "resumed sure") != 1 || strings.Contains(got, "resumed unsure") ||
			strings.Count(got, "Interrupted; the outcome is unknown") != 2 || len(l.conversation.script.Unanswered()) != 0 {
			l.Errorf("she reads %s", got)
		}
	})
	live(t, "alice", func(l *life) { // a turn that the user stopped waits for nothing, and fails for nothing
		l.config.Extra = []llm.Tool{recorded("sure", true, nil), recorded("broken", true, errTest)}
		restartWithCalls(l, "sure", "broken")
		l.phase.change(func(c *counters) { c.words, c.stop = "and so", llm.StopTools })
		l.must(AnswerStopped{}.do(l.Context(), l.Member))
		if got := l.said(); strings.Count(got, "found sure") != 1 || strings.Contains(got, "broken") != true ||
			strings.Contains(got, "found broken") || strings.Count(got, "The user stopped this turn") != 1 {
			l.Errorf("she reads %s", got)
		}
		if len(l.emitted) != 1 || l.emitted[0] != (loop.ReplyDiscarded{}) {
			l.Errorf("the user sees %v", l.emitted)
		}
	})
	live(t, "alice", func(l *life) { // what cannot be read now is read by the next process
		l.config.Extra = []llm.Tool{recorded("broken", true, errTest)}
		restartWithCalls(l, "broken")
		if err := (RecoverCalls{}).do(l.Context(), l.Member); !errors.Is(err, errTest) ||
			len(l.conversation.script.Unanswered()) != 1 {
			l.Errorf("%v; she reads %s", err, l.said())
		}
	})
	for _, a := range []Action{RecoverCalls{}, AnswerStopped{}} {
		failEachOp(t, "alice", func(l *life) { restartWithCalls(l, "bash") },
			func(l *life) error { return a.do(l.Context(), l.Member) })
	}
}

// A call whose outcome is in records stays open when the end of the process cuts it off; what came in time is kept, and
// any other call is answered.
func TestACallThatIsCutOffStaysOpen(t *testing.T) {
	for _, c := range []struct {
		name   string
		input  map[string]any
		isOpen bool
	}{{"fails", nil, true}, {"succeeds", nil, false}, {"bash", map[string]any{"command": "sleep"}, false}} {
		live(t, "alice", func(l *life) {
			l.create(board.Draft{})
			stopping := func(name string, err error) llm.Tool {
				t := tool.Func(name, "", func(context.Context, struct{}) (string, error) {
					l.stop(muster.CauseUser)
					return "in time", err
				})
				return tool.Recoverable(t, func(context.Context, struct{}, bool) (llm.Result, bool, error) {
					return tool.Text("on record"), true, nil
				})
			}
			l.config.Extra = []llm.Tool{stopping("fails", tool.Fatal(errTest)), stopping("succeeds", nil)}
			l.restart("alice")
			l.start(calls(c.name, c.input))
			l.stop(muster.CauseUser)
			if !l.hasEnded() || !errors.Is(l.err, muster.CauseUser) {
				l.Fatalf("%s: it ended with %v", c.name, l.err)
			}
			if n := len(l.conversation.script.Unanswered()); (n == 1) != c.isOpen {
				l.Errorf("%s: %d calls are open", c.name, n)
			}
			l.restart("alice")
			l.start()
			if got := l.heard(); strings.Contains(got, "on record") != c.isOpen || strings.Contains(got, "in time") != (c.name == "succeeds") {
				l.Errorf("%s: she hears %s", c.name, got)
			}
		})
	}
}

// A limit gives the task back as an attempt, with what the model said last as the note; the member lives on.
func TestALimitReleasesTheTask(t *testing.T) {
	live(t, "alice", func(l *life) {
		l.create(board.Draft{})
		l.config.Limits.Turns = 1
		l.restart("alice")
		said := func(words string, next turn) turn {
			return func(r llm.Request) (llm.Reply, error) {
				reply, err := next(r)
				reply.Message.Parts = append(llm.Parts{llm.Text{Text: words}}, reply.Message.Parts...)
				return reply, err
			}
		}
		l.start(calls("task_list", nil), said("It is hard.", calls("task_get", map[string]any{"task_id": 1})))
		e := l.events(journal.TaskReleased)
		if l.hasEnded() || len(e) != 1 || l.task(1).Attempts != 1 || !strings.Contains(l.task(1).Note+l.task(1).Description, "It is hard.") {
			l.Errorf("the task is %+v after %v; %v", l.task(1), e, l.err)
		}
	})
	failEachOp(t, "alice", func(l *life) {
		l.create(board.Draft{})
		l.open()
		l.Member.err = errTurns
	}, func(l *life) error { return ReleaseTask{}.do(l.Context(), l.Member) })
}

// A model that cannot go on ends its member: the task goes back as an attempt, and the lead is told.
func TestAFailingModelEndsItsMember(t *testing.T) {
	for _, hasTask := range []bool{true, false} {
		live(t, "alice", func(l *life) {
			if hasTask {
				l.create(board.Draft{})
			}
			l.start(fails(llm.BadRequest))
			if !l.hasEnded() || l.err != nil || !strings.Contains(l.end.Text, "an error") || l.record("alice").Status != muster.Shutdown {
				l.Fatalf("it ended with %+v, %v", l.end, l.err)
			}
			mail := l.mail(muster.Lead)
			if n := len(mail); n != 1 || mail[0].Type != muster.MailError || strings.Contains(mail[0].Content, "task #1") != hasTask {
				l.Errorf("the lead is told %+v", mail)
			}
			if hasTask && (l.task(1).Attempts != 1 || l.task(1).Status != muster.Pending) {
				l.Errorf("the task is %+v", l.task(1))
			}
		})
	}
	failEachOp(t, "alice", func(l *life) {
		l.create(board.Draft{})
		l.open()
		l.Member.err = errModel(llm.BadRequest)
	}, func(l *life) error { return GiveUp{}.do(l.Context(), l.Member) })
	live(t, muster.Lead, func(l *life) {
		if l.start(fails(llm.BadRequest)); !l.hasEnded() || llm.KindOf(l.err) != llm.BadRequest {
			l.Errorf("a lead ended with %v", l.err)
		}
	})
}

// A member whose model stays overloaded is parked for longer each time, and shows it; then it goes on with its phase.
func TestAnOverloadedModelIsWaitedFor(t *testing.T) {
	live(t, "alice", func(l *life) {
		began := time.Now()
		var parked []string
		note := func(next turn) turn {
			return func(r llm.Request) (llm.Reply, error) {
				parked = append(parked, time.Since(began).String()+" "+l.record("alice").Doing)
				return next(r)
			}
		}
		l.start(calls("read_inbox", nil), note(fails(llm.Overloaded)), note(fails(llm.Overloaded)), note(says("At last.")))
		if m := l.record("alice"); !strings.HasPrefix(m.Doing, "parked until ") || m.Status != muster.Working {
			l.Errorf("parked she is %+v", m)
		}
		time.Sleep(3*time.Minute + time.Second)
		synctest.Wait()
		if got := strings.Join(parked, ","); got != "0s ,1m0s ,3m0s " {
			l.Errorf("she was asked after %s", got)
		}
		if e := l.events(journal.ModelRetry); len(e) != 2 {
			l.Errorf("people see %v", e)
		}
		e := l.events(journal.TurnStarted)
		if last := e[len(e)-1]; last.Fields["turn"] != 4.0 {
			l.Errorf("the phase goes on with %+v", last)
		}
		l.send(muster.MailMessage, muster.Lead, "alice", "more")
		l.turns = []turn{fails(llm.Overloaded)}
		synctest.Wait()
		l.stop(muster.CauseUser)
		if !l.hasEnded() || !errors.Is(l.err, muster.CauseUser) {
			l.Errorf("stopped while parked it ended with %v", l.err)
		}
	})
}

// A conversation that has grown too long starts again with all that its member must know, once in a few replies.
func TestALongConversationStartsAfresh(t *testing.T) {
	live(t, "alice", func(l *life) {
		l.create(board.Draft{})
		l.start(calls("read_inbox", nil), fails(llm.ContextFull), calls("task_list", nil), calls("read_inbox", nil),
			calls("task_list", nil), fails(llm.ContextFull), calls("task_list", nil), calls("read_inbox", nil), fails(llm.ContextFull))
		heard := l.heard()
		if !l.hasEnded() || len(l.asked) != 9 || !strings.Contains(l.end.Text, "an error") {
			l.Errorf("it ended with %+v, %v after %d turns", l.end, l.err, len(l.asked))
		}
		for what, n := range map[string]int{"<identity>": 1, "grown too long": 1, "the parser": 1, "Write &lt;inbox> parsers.": 0} {
			if got := strings.Count(heard, what); got != n && (what != "the parser" || got == 0) {
				l.Errorf("afresh she hears %q %d times: %s", what, got, heard)
			}
		}
		if !strings.Contains(heard, "<auto-claimed>") {
			l.Errorf("her task is lost: %s", heard)
		}
	})
	live(t, "alice", func(l *life) {
		l.start(fails(llm.ContextFull), says("Ready."))
		if strings.Count(l.heard(), "Write &lt;inbox> parsers.") != 1 || len(l.asked) != 2 {
			l.Errorf("without a task she hears %s", l.heard())
		}
	})
	for _, subject := range []string{"", "the lexer"} {
		live(t, muster.Lead, func(l *life) {
			if subject != "" {
				l.create(board.Draft{Subject: subject})
				l.change("alice", func(m *muster.Member) { m.Status = muster.Working })
			}
			l.start(fails(llm.ContextFull), says("On it."))
			if got := l.heard(); strings.Count(got, "The goal: a parser.") != 1 || len(l.asked) != 2 ||
				strings.Contains(got, "These tasks are on the board:") != (subject != "") || !strings.Contains(got, subject) {
				l.Errorf("the lead hears %s", got)
			}
		})
	}
	failEachOp(t, muster.Lead, func(l *life) { l.open() }, func(l *life) error {
		return RestartConversation{}.do(l.Context(), l.Member)
	})
	live(t, "alice", func(l *life) {
		l.create(board.Draft{})
		l.open()
		l.runErr = errTest
		if err := (RestartConversation{}).do(l.Context(), l.Member); !errors.Is(err, errTest) {
			l.Errorf("without a run: %v", err)
		}
	})
}

// A task whose text is said in a fresh conversation counts as read, and the todo list outlives a restart.
func TestWhatWasSaidAfreshIsNoted(t *testing.T) {
	live(t, "alice", func(l *life) {
		ctx := l.Context()
		l.open()
		l.create(board.Draft{})
		task, _, err := l.Board.ClaimNext(ctx, board.Claim{Owner: "alice", Role: "coder"})
		l.must(err)
		l.claims.setTask(task)
		l.must(RestartConversation{}.do(ctx, l.Member))
		if !l.conversation.script.Delivered(claimKey(l.claims.held.get().task)) {
			l.Error("her task is said to her once more")
		}
	})
	live(t, "alice", func(l *life) {
		l.start(calls("todo", map[string]any{"items": []map[string]any{{"id": "1", "text": "one", "status": "pending"}}}), says("Ready."))
		l.stop(muster.CauseUser)
		l.hasEnded()
		l.restart("alice")
		l.send(muster.MailMessage, muster.Lead, "alice", "Go on.")
		l.start(calls("task_list", nil), calls("list_none", nil), calls("read_inbox", nil), says("Done."))
		if !strings.Contains(l.heard(), "Your todo list has open items (1)") {
			l.Errorf("she hears %s", l.heard())
		}
	})
}

// No command of a member runs on when its life is over, and its task is free only then.
func TestNoCommandOutlivesItsMember(t *testing.T) {
	for _, cause := range []error{muster.CauseShutdown, muster.CauseUser} {
		live(t, "alice", func(l *life) {
			l.create(board.Draft{})
			l.start(calls("bash", map[string]any{"command": "make", "background": true}), says("I wait."))
			l.stop(cause)
			if !l.hasEnded() || l.commands.running[0].ctx.Err() == nil {
				l.Errorf("%v: the job runs on", cause)
			}
			if isBack := l.task(1).Status == muster.Pending; isBack != errors.Is(cause, muster.CauseShutdown) {
				l.Errorf("%v: the task is %s", cause, l.task(1).Status)
			}
			if _, err := l.jobs.Start(l.Context(), "make", proc.Spec{}, time.Hour, code.NewOutput(l.outputs(), "x")); err == nil {
				l.Error("another one may start")
			}
		})
	}
}

// A member is made only with its model, and goes on with what its record says.
func TestNewMember(t *testing.T) {
	live(t, "alice", func(l *life) {
		l.change("alice", func(m *muster.Member) {
			m.Turns = 5
			setAsked(m, []muster.Name{"bob"})
		})
		l.restart("alice")
		if l.TurnCount() != 5 || len(l.presence.openQuestions()) != 1 || l.presence.Me().Name != "alice" {
			l.Errorf("%d turns, asked %v", l.TurnCount(), l.presence.openQuestions())
		}
		l.Config.Log.Warn("something")
		if !strings.Contains(l.logged.String(), "member=alice") {
			l.Errorf("the log says %q", l.logged.String())
		}
		l.config.Model = func(func(time.Time, error)) (llm.Model, error) { return nil, errTest }
		if m, err := New(l.config); !errors.Is(err, errTest) || m != nil {
			l.Errorf("without a model: %v", err)
		}
	})
}

// What stops nobody is logged, but not that the member was stopped.
func TestWhatIsLogged(t *testing.T) {
	live(t, "alice", func(l *life) {
		ctx, stop := context.WithCancelCause(l.Context())
		expect := func(err error, isLogged bool) {
			t.Helper()
			l.logged.Reset()
			if l.logDropped(ctx, "a thing", err); (l.logged.Len() > 0) != isLogged {
				l.Errorf("%v: %q", err, l.logged.String())
			}
		}
		expect(nil, false)
		expect(errTest, true)
		expect(context.Canceled, true)
		stop(muster.CauseUser)
		expect(muster.CauseUser, false)
		expect(errTest, true)
		expect(nil, false)
	})
}
