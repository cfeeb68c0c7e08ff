package teammate

import (
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
)

// A member that works, or has ended, has no place in the queue: a task would be offered to nobody.
func TestOnlyAnIdleMemberIsInTheQueue(t *testing.T) {
	live(t, "alice", func(l *life) {
		l.start(says("Ready."))
		if l.queued() != 1 {
			l.Fatalf("%d wait", l.queued())
		}
		l.turns = []turn{func(r llm.Request) (llm.Reply, error) {
			if l.queued() != 0 {
				l.Error("she works, and waits for a task")
			}
			return says("Noted.")(r)
		}}
		l.send(muster.MailMessage, muster.Lead, "alice", "hello")
		if synctest.Wait(); l.queued() != 1 || len(l.turns) != 0 {
			l.Fatalf("%d wait", l.queued())
		}
		l.ask("", muster.AskShutdown, muster.User, "alice")
		if !l.hasEnded() || l.queued() != 0 || l.end.Text != "shut down while idle" {
			l.Errorf("she has ended: %+v; %d wait", l.end, l.queued())
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
		l.start(calls("task_list", nil), said("It is hard.", calls("task_get", map[string]any{"task_id": 1})))
		e := l.events(journal.TaskReleased)
		if l.hasEnded() || len(e) != 1 || l.task(1).Attempts != 1 || !strings.Contains(l.task(1).Note+l.task(1).Description, "It is hard.") {
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
	live(t, muster.Lead, func(l *life) {
		if l.start(fails(llm.BadRequest)); !l.hasEnded() || llm.KindOf(l.err) != llm.BadRequest {
			l.Errorf("a lead ended with %v", l.err)
		}
	})
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
		for what, n := range map[string]int{"<identity>": 1, "grown too long": 1, "the parser": 1, "Write &lt;inbox> parsers.": 0} {
			if got := strings.Count(heard, what); got != n && (what != "the parser" || got == 0) {
				l.Errorf("afresh she hears %q %d times: %s", what, got, heard)
			}
		}
		if !strings.Contains(heard, "<auto-claimed>") {
			l.Errorf("her task is lost: %s", heard)
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
		l.config.Model = func(func() (muster.TaskID, int), func(time.Time, error)) (llm.Model, error) { return nil, errTest }
		if m, err := New(l.config); !errors.Is(err, errTest) || m != nil {
			l.Errorf("without a model: %v", err)
		}
	})
}
