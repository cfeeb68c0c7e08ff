package teammate

import (
	"context"
	"errors"
	"fmt"
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

// An idle member hears of mail and takes a task that has become ready. It watches no longer than the rest lasts.
func TestRest(t *testing.T) {
	live(t, "alice", func(l *life) {
		l.start(says("Ready."), says("Noted."), says("I begin."))
		inbox, changed := l.rest.inbox, l.rest.board
		l.send(muster.MailMessage, muster.Lead, "alice", "hello")
		if synctest.Wait(); len(l.turns) != 1 {
			l.Fatalf("%d turns are left", len(l.turns))
		}
		for range inbox { // it is closed
		}
		for range changed {
		}
		l.create(board.Draft{})
		if synctest.Wait(); l.current().ID != 1 || len(l.turns) != 0 {
			l.Errorf("she has task %d", l.current().ID)
		}
	})
}

// A member that leaves gives its task back, which counts as no attempt, and withdraws what it has asked. No error is
// lost: it leaves only when all is written.
func TestLeave(t *testing.T) {
	prepare := func(l *life) {
		l.create(board.Draft{})
		l.open()
		l.ask("0000beef", muster.AskPermission, "alice", muster.User)
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
		if m := l.record("alice"); m.Status != muster.Working || m.Host == "" || !strings.Contains(l.said(), "Wait!") {
			l.Errorf("she is %+v, and was told %s", m, l.said())
		}
	})
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
		l.start(calls("task_list", nil), said("It is hard.", calls("task_get", map[string]any{"task_id": 1})),
			said("It is hard: I have no tests.", calls("task_list", nil)))
		if asked := l.asked[2].Messages; !strings.Contains(asked[len(asked)-1].Parts.Text(), "You get no further turn") {
			l.Errorf("it is asked for its answer by %v", asked[len(asked)-1])
		}
		e := l.events(journal.TaskReleased)
		if l.hasEnded() || len(e) != 1 || l.task(1).Attempts != 1 || l.task(1).Note != "It is hard: I have no tests." {
			l.Errorf("the task is %+v after %v; %v", l.task(1), e, l.err)
		}
	})
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
}

// A conversation that its server finds too long is made shorter three times in a row, at last to what the member must
// know.
func TestALongConversationStartsAfresh(t *testing.T) {
	live(t, "alice", func(l *life) {
		l.create(board.Draft{})
		full, sums := fails(llm.ContextFull), says("I have read my mail.")
		l.start(calls("read_inbox", nil), calls("task_get", map[string]any{"task_id": 1}), full, sums, calls("task_list", nil),
			calls("read_inbox", nil), calls("task_list", nil), full, sums, calls("task_list", nil), calls("read_inbox", nil), full, sums,
			func(r llm.Request) (llm.Reply, error) {
				if heard := fmt.Sprint(r.Messages); strings.Count(heard, "[Conversation compressed]\nI have read my mail.") != 1 {
					l.Errorf("she hears %s", heard)
				}
				return full(r)
			}, full)
		heard := l.heard()
		if !l.hasEnded() || len(l.asked) != 15 || !strings.Contains(l.end.Text, "an error") {
			l.Errorf("it ended with %+v, %v after %d turns", l.end, l.err, len(l.asked))
		}
		for what, n := range map[string]int{"<identity>": 1, "grown too long": 1, "the parser": 1, "Write &lt;mail> parsers.": 1} {
			if got := strings.Count(heard, what); got != n && (what != "the parser" || got == 0) {
				l.Errorf("afresh she hears %q %d times: %s", what, got, heard)
			}
		}
		if !strings.Contains(heard, "<auto-claimed>") || l.compaction.window != minWindow {
			l.Errorf("her task is lost, or her window too large, with %d tokens: %s", l.compaction.window, heard)
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
			if _, err := l.jobs.Start(l.Context(), "make", proc.Spec{}, time.Hour, code.NewOutput(l.toolbox.files.options.Outputs, "x")); err == nil {
				l.Error("another one may start")
			}
		})
	}
}

// seer finds at the end of the first phase that the member has moved the target.
type seer struct{ told string }

func (s *seer) Begin(_ context.Context, name muster.Name) { s.told += string(name) + " begins, " }

func (s *seer) End(ctx context.Context, _ muster.Name, task muster.Task) string {
	s.told += fmt.Sprintf("ends with %d (%v), ", task.ID, ctx.Err())
	return map[int]string{1: "It was put back."}[strings.Count(s.told, "ends")]
}

// A member that has moved the target gives its task back, which counts. A phase that was cut off is looked at, too.
func TestWhoMovesTheTargetLosesItsTask(t *testing.T) {
	for phases, isStopped := range map[int]bool{2: false, 1: true} {
		live(t, "alice", func(l *life) {
			s := &seer{}
			l.config.Phases = s
			l.restart("alice")
			l.create(board.Draft{})
			l.start(func(r llm.Request) (llm.Reply, error) {
				if isStopped {
					l.stop(muster.CauseUser)
				}
				return says("So.")(r)
			})
			if task := l.task(1); s.told != strings.Repeat("alice begins, ends with 1 (<nil>), ", phases) ||
				task.Attempts != phases-1 || task.Owner != "alice" {
				l.Errorf("stopped %v: told is %s; the task is %+v", isStopped, s.told, task)
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
		l.config.NoImages, l.config.ModelName, l.config.MaxTokens = true, "openai/gpt-5", 9
		if l.restart("alice"); l.toolbox.models.subagents["work"] != (Subagent{l, "openai/gpt-5", true, 9}) {
			l.Errorf("a subagent has %+v", l.toolbox.models.subagents["work"])
		}
		l.config.Model = func(func() (muster.TaskID, int), func(time.Time, error)) (llm.Model, error) { return nil, errTest }
		if m, err := New(l.config); !errors.Is(err, errTest) || m != nil {
			l.Errorf("without a model: %v", err)
		}
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

// A member that is shut down before it could open its conversation leaves like any other.
func TestAMemberLeavesBeforeItsConversationIsOpen(t *testing.T) {
	live(t, "alice", func(l *life) {
		ctx, stop := context.WithCancelCause(l.Context())
		stop(muster.CauseShutdown)
		_, err := l.Live(ctx)
		if m := l.me(); err != nil || m.Status != muster.Shutdown || m.Host != "" || len(l.asked) != 0 {
			l.Errorf("she is %+v: %v", m, err)
		}
	})
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
			err := l.conversation.open(l.Context())
			if (err == nil) != isTaken || (l.conversation.script != nil) != isTaken ||
				!isTaken && !errors.Is(err, muster.ErrFenced) {
				l.Errorf("%d left: %v", left, err)
			}
		})
	}
}

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
			strings.Count(got, "Interrupted. The outcome is unknown") != 2 || len(l.conversation.script.Unanswered()) != 0 {
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
	live(t, "alice", func(l *life) { // a call that waited for the user's answer has not run
		ask := func(call string, isTaken bool) {
			q := l.world.Requests
			r, err := q.Ask(l.Context(), muster.Request{Kind: muster.AskPermission, From: "alice", To: muster.User, CallID: call})
			if l.must(err); isTaken {
				_, err = q.Take(l.Context(), r.ID)
				l.must(err)
			}
		}
		ask("id-edit", false) // for an earlier call with the ID of a later one
		time.Sleep(time.Minute)
		restartWithCalls(l, "bash", "read", "edit")
		ask("id-bash", false)
		ask("id-read", true)
		l.restart("alice")
		l.must(l.Member.open(l.Context()))
		l.must(RecoverCalls{}.do(l.Context(), l.Member))
		if got := l.said(); strings.Count(got, "Not run: the process ended") != 1 || strings.Count(got, "The outcome is unknown") != 2 {
			l.Errorf("she reads %s", got)
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

// A task whose text is said in a fresh conversation counts as read.
func TestWhatWasSaidAfreshIsNoted(t *testing.T) {
	live(t, "alice", func(l *life) {
		ctx := l.Context()
		l.open()
		l.create(board.Draft{})
		task, _, err := l.config.Board.ClaimNext(ctx, board.Claim{Owner: "alice", Role: "coder"})
		l.must(err)
		l.claims.setTask(task)
		l.decide(l.askPlan(), muster.Lead, true, "Mind the tests.")
		_, err = l.world.Roster.Add(ctx, muster.Member{Name: "bob", Role: "coder", Status: muster.Shutdown})
		l.must(err)
		l.must(RestartConversation{Harder: maxRestarts}.do(ctx, l.Member))
		for _, want := range []string{"for task #1 is approved. Mind the tests.\nIt says: Rewrite it.",
			"The other members of the team:\nlead (lead): idle}"} {
			if !strings.Contains(l.said(), want) {
				l.Errorf("%q is not said: %s", want, l.said())
			}
		}
		if !l.conversation.script.Delivered(claimKey(l.claims.held.get().task)) {
			l.Error("her task is said to her once more")
		}
	})
}

// No error is lost when a conversation goes on, or begins a phase.
func TestNoErrorIsLostOnTheWayToThePhase(t *testing.T) {
	for _, a := range []Action{ContinueConversation{}, RunPhase{}} {
		failEachOp(t, "alice", func(l *life) {
			l.open()
			l.change("alice", func(m *muster.Member) { m.Status = muster.Idle })
			l.presence.known.change(func(k *knownRecord) { k.latest.Status = muster.Idle })
			l.send(muster.MailMessage, muster.Lead, "alice", "hello")
		}, func(l *life) error { return errors.Join(a.do(l.Context(), l.Member), l.Member.err) })
	}
}

func nothing(llm.Request) (llm.Reply, error) {
	return llm.Reply{Message: llm.Message{Role: llm.Assistant}, Stop: llm.StopEnd, Model: "test"}, nil
}

// A conversation that starts afresh still has the todo list, the mail that was read, and the task.
func TestAFreshStartForgetsNothing(t *testing.T) {
	for kind, why := range map[llm.Kind]string{llm.ContextFull: "There is no summary", llm.BadHistory: "refused the conversation"} {
		live(t, "alice", func(l *life) {
			l.create(board.Draft{})
			l.send(muster.MailMessage, muster.Lead, "alice", "Use </mail> tabs, never blanks.")
			todo := map[string]any{"items": []map[string]any{
				{"id": "1", "text": "write the scanner", "status": "completed"},
				{"id": "2", "text": "write the grammar", "status": "in_progress"}}}
			l.start(calls("todo", todo), calls("read_inbox", nil), fails(kind), fails(llm.BadRequest))
			first := l.asked[3].Messages
			if kind == llm.ContextFull { // a summary is asked for, and refused
				first = l.asked[4].Messages
			}
			heard := llm.Parts(first[0].Parts).Text()
			if len(first) != 1 || !strings.Contains(heard, "\n[Conversation compressed]\n") {
				l.Errorf("%s: the fresh conversation has %d messages: %s", kind, len(first), heard)
			}
			for _, want := range []string{why, "never blanks.", "[x] 1 write the scanner", "[>] 2 write the grammar", "the parser"} {
				if strings.Count(heard, want) == 0 {
					l.Errorf("%s: %q is forgotten: %s", kind, want, heard)
				}
			}
			if strings.Count(heard, "</mail>") != 1 {
				l.Errorf("%s: mail is not escaped: %s", kind, heard)
			}
		})
	}
	live(t, "alice", func(l *life) {
		for range maxOldMail / 1000 * 2 {
			l.send(muster.MailMessage, muster.Lead, "alice", strings.Repeat("x", 1000))
		}
		l.send(muster.MailMessage, muster.Lead, "alice", "the newest")
		l.start(calls("read_inbox", nil), fails(llm.BadHistory), says("Ready."))
		heard := llm.Parts(l.asked[len(l.asked)-1].Messages[0].Parts).Text()
		if n := strings.Count(heard, "x"); n > maxOldMail || n < maxOldMail/2 ||
			!strings.Contains(heard, "the newest") || !strings.Contains(heard, "Write &lt;mail> parsers.") {
			l.Errorf("%d bytes of the mail are kept", n)
		}
	})
}

// A first reply that is empty or refuses is answered; the second in a row gives the task back, or ends the lead's run.
func TestEmptyAndRefusedReplies(t *testing.T) {
	refuses := stops(llm.StopRefused, "I will not.")
	for name, mute := range map[string]turn{"no part": nothing, "no text": says(""), "refused": refuses} {
		live(t, "alice", func(l *life) {
			task := l.create(board.Draft{})
			// Nobody else is there, so alice takes the task again, and is told so.
			again := func(r llm.Request) (llm.Reply, error) {
				got, err := l.world.Board.Get(l.Context(), task.ID)
				l.must(err)
				if len(l.asked) != 5 || got.Attempts != 1 || got.Fence != 2 {
					l.Errorf("%s: the request %d follows, the task is %+v", name, len(l.asked), got)
				}
				return says("Not now.")(r)
			}
			l.start(mute, calls("task_list", nil), mute, mute, again)
			if len(l.asked) != 6 { // the last is a reminder of the task
				l.Errorf("%s: asked %d times", name, len(l.asked))
			}
		})
		live(t, muster.Lead, func(l *life) {
			l.start(mute, mute)
			if !l.hasEnded() || l.err != nil || l.end.Code != 3 || l.end.Text == "" || len(l.asked) != 2 {
				l.Errorf("%s: the lead ended with %+v, %v after %d turns", name, l.end, l.err, len(l.asked))
			}
		})
	}
}

// A server that leaves out what is too long, and says nothing, is found out by the tokens that it counts.
func TestASilentlyCutConversationStartsAgain(t *testing.T) {
	// counted is a call whose request had so many tokens, as the server counts.
	counted := func(n int, part ...llm.Part) turn {
		return func(r llm.Request) (llm.Reply, error) {
			reply, err := calls("todo", map[string]any{"items": []map[string]any{{"id": "1", "text": "x", "status": "pending"}}})(r)
			reply.Usage.Input = n
			if len(part) > 0 {
				reply.Message.Parts = append(llm.Parts{part[0]}, reply.Message.Parts...)
			}
			return reply, err
		}
	}
	for name, c := range map[string]struct {
		turns []turn
		cut   bool
	}{
		"cut":                {[]turn{counted(3500), counted(8000), counted(7500), counted(7900), counted(7200)}, true},
		"it grows":           {[]turn{counted(3500), counted(8000), counted(8001), counted(8500), counted(9000)}, false},
		"the same each time": {[]turn{counted(8000), counted(8000), counted(8000), counted(8000), counted(8000)}, false},
		"only what is new":   {[]turn{counted(8000), counted(3100), counted(3300), counted(3200), counted(3400)}, false},
	} {
		live(t, "alice", func(l *life) {
			l.create(board.Draft{})
			l.start(append(c.turns, says("Done."))...)
			isCut := strings.Contains(l.heard(), "[Conversation compressed]")
			if isCut != c.cut || isCut && !strings.Contains(l.heard(), "the parser") {
				l.Errorf("%s: it starts again: %v", name, isCut)
			}
		})
	}
}
