package teammate

import (
	"context"
	"errors"
	"strings"
	"testing"

	"muster"
	"muster/internal/board"
	"muster/llm"
	"muster/loop"
	"muster/tool"
)

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
			if script, err := l.openTranscript(l.Context()); (err == nil) != isTaken || (script != nil) != isTaken ||
				!isTaken && !errors.Is(err, muster.ErrFenced) {
				l.Errorf("%d left: %v", left, err)
			}
		})
	}
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

// A task whose text is said in a fresh conversation counts as read.
func TestWhatWasSaidAfreshIsNoted(t *testing.T) {
	live(t, "alice", func(l *life) {
		ctx := l.Context()
		l.open()
		l.create(board.Draft{})
		task, _, err := l.Board.ClaimNext(ctx, board.Claim{Owner: "alice", Role: "coder"})
		l.must(err)
		l.claims.setTask(task)
		l.must(RestartConversation{Harder: maxRestarts}.do(ctx, l.Member))
		if !l.conversation.script.Delivered(claimKey(l.claims.held.get().task)) {
			l.Error("her task is said to her once more")
		}
	})
}

// No error is lost when a conversation goes on, or begins a phase; a tool's error that no model can mend ends the life.
func TestNoErrorIsLostOnTheWayToThePhase(t *testing.T) {
	for _, a := range []Action{ContinueConversation{}, RunPhase{}} {
		failEachOp(t, "alice", func(l *life) {
			l.open()
			l.change("alice", func(m *muster.Member) { m.Status = muster.Idle })
			l.presence.known.change(func(k *knownRecord) { k.latest.Status = muster.Idle })
			l.send(muster.MailMessage, muster.Lead, "alice", "hello")
		}, func(l *life) error { return errors.Join(a.do(l.Context(), l.Member), l.Member.err) })
	}
	live(t, "alice", func(l *life) {
		l.config.Extra = []llm.Tool{tool.Func("broken", "", func(context.Context, struct{}) (string, error) {
			return "", tool.Fatal(errTest)
		})}
		l.restart("alice")
		if l.start(calls("broken", nil)); !l.hasEnded() || !errors.Is(l.err, errTest) {
			l.Errorf("it ended with %v", l.err)
		}
	})
}
