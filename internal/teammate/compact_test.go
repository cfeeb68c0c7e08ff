package teammate

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster"
	"muster/internal/board"
	"muster/internal/compact"
	"muster/internal/testing/gittest"
	"muster/internal/transcript"
	"muster/journal"
	"muster/llm"
)

// A model may have its conversation compressed: the summary is asked for before the next request, with the same
// prefix, and no call of its reply is run.
func TestTheModelAsksForAShorterConversation(t *testing.T) {
	live(t, "alice", func(l *life) {
		l.create(board.Draft{})
		l.start(calls("task_list", nil), calls("read_inbox", nil), calls("compact", map[string]any{"focus": "the <grammar>"}),
			calls("release_task", map[string]any{"task_id": 1, "reason": "none"}), says("I looked at the grammar."), says("Ready."))
		ask := l.asked[3]
		last := ask.Messages[len(ask.Messages)-1].Parts.Text()
		if !strings.Contains(last, summaryWords) || !strings.Contains(last, "Keep above all: the <grammar>") {
			l.Errorf("it is asked for the summary by %s", last)
		}
		if d := cmp.Diff(l.asked[2].System, ask.System); d != "" || len(ask.Tools) != len(l.asked[2].Tools) {
			l.Errorf("the prefix is another: %s", d)
		}
		if again := fmt.Sprint(l.asked[4].Messages); !strings.Contains(again, "You have called a tool") {
			l.Errorf("it is asked once more by %s", again)
		}
		heard := l.asked[5].Messages
		if text := heard[0].Parts.Text(); !strings.Contains(text, "[Conversation compressed]\nI looked at the grammar.") {
			l.Errorf("she goes on with %s", text)
		}
		if l.task(1).Owner != "alice" {
			t.Error("a call of the reply was run")
		}
		if n := len(l.events(journal.ContextCompacted)); n != 1 {
			l.Errorf("%d events tell of it", n)
		}
	})
}

// What the user asks for is done at once where the lead rests, and is no mail to its model.
func TestTheUserAsksForAShorterConversation(t *testing.T) {
	live(t, muster.Lead, func(l *life) {
		l.config.Talk = newTalk()
		l.restart(muster.Lead)
		l.start(calls("task_list", nil), calls("list_teammates", nil), says("Here I am."), says("We looked around."), says("Yes?"))
		l.send(muster.MailCompact, muster.User, muster.Lead, "the names")
		l.hasEnded()
		if n := len(l.asked); n != 4 || !strings.Contains(l.heard(), "Keep above all: the names") {
			l.Fatalf("asked %d times, last %s", n, l.heard())
		}
		l.send(muster.MailMessage, muster.User, muster.Lead, "Go on.")
		l.hasEnded()
		if heard := l.heard(); !strings.Contains(heard, "We looked around.") || strings.Contains(heard, "compact\"") ||
			!strings.Contains(heard, "Here I am.") || len(l.asked) != 5 {
			l.Errorf("after %d requests the lead hears %s", len(l.asked), heard)
		}
	})
}

// A process that dies around a compaction leaves the conversation before it or behind it, and whoever goes on sends the
// same bytes. Every operation of the store fails in turn.
func TestACrashAroundACompaction(t *testing.T) {
	asks := func(l *life) error {
		p := l.toolbox.get()
		_, err := l.compaction.compress(l.Context(), p, l.compaction.budget(p, 0), l.conversation.script.Messages(), 2, "a test", "")
		return err
	}
	prepare := func(l *life) {
		l.create(board.Draft{})
		l.open()
		for i := range 4 {
			reply, _ := calls("look", nil)(llm.Request{Messages: l.conversation.script.Messages()})
			l.must(l.conversation.script.Reply(l.Context(), reply))
			l.must(l.conversation.script.Result(l.Context(), llm.Result{ID: reply.Message.Calls()[0].ID,
				Parts: llm.Parts{llm.Text{Text: strings.Repeat(fmt.Sprint(i), 1000)}}}))
		}
	}
	failEachOp(t, "alice", prepare, func(l *life) error {
		l.turns = []turn{says("What was.")}
		before := l.conversation.script.Messages()
		err := asks(l)
		again, openErr := transcript.Open(l.Context(), l.world.Store.Log(), "alice")
		l.must(openErr)
		if got := again.Messages(); !cmp.Equal(got, before) && !cmp.Equal(got, l.conversation.script.Messages()) {
			l.Errorf("after %v neither the old conversation nor the new one is left: %v", err, got)
		}
		if err == nil && !strings.Contains(fmt.Sprint(again.Messages()), "[Conversation compressed]\nWhat was.") {
			l.Errorf("it is not compressed: %v", again.Messages())
		}
		return err
	})
	live(t, "alice", func(l *life) {
		prepare(l)
		l.turns = []turn{fails(llm.Overloaded)}
		if err := asks(l); llm.KindOf(err) != llm.Overloaded {
			l.Errorf("without an answer: %v", err)
		}
		l.runErr = errTest
		l.turns = []turn{says("What was.")}
		if err := asks(l); !errors.Is(err, errTest) {
			l.Errorf("without a run: %v", err)
		}
	})
}

// Old results are cleared until the request fits: those before the newest few, then all that the model has read, and at
// last the newest are cut. Many old messages are worth a summary.
func TestWhatIsClearedBeforeASummary(t *testing.T) {
	live(t, "alice", func(l *life) {
		h := llm.NewHistory(nil)
		h.Say(llm.Text{Text: "go"})
		for i := range 6 {
			h.Reply(llm.Call{ID: fmt.Sprint(i), Name: "glob", Input: []byte("{}")})
			h.Answer(llm.Result{ID: fmt.Sprint(i), Parts: llm.Parts{llm.Text{Text: strings.Repeat("line\n", 800)}}})
		}
		messages := h.Messages()
		size := compact.Estimate(messages)
		for _, c := range []struct {
			most, old int // tokens: of the request, of old messages
			want      int // results that change
			isOld     bool
		}{
			{size - 2500, size, 3, false}, {size - 4000, size, 5, false}, {size - 5300, size, 6, false}, {1, size, 3, false},
			{size - 4000, 1, 3, true},
		} {
			b := compact.Budget{Limit: c.most, Old: c.old, Kept: 400, Step: 100}
			changes, saved, isOld := l.compaction.cleared(l.toolbox.get(), b, messages, size)
			won := size - compact.Estimate(compact.Apply(messages, changes))
			if len(changes) != c.want || isOld != c.isOld || won != saved {
				l.Errorf("%+v: %d changes, old %v; %d tokens are said to be won, and %d are", c, len(changes), isOld, saved, won)
			}
		}
	})
}

// The todo list outlives a conversation that was replaced, also in another process. The instructions of a directory are
// told once more.
func TestTheTodoListOutlivesACompaction(t *testing.T) {
	live(t, "alice", func(l *life) {
		gittest.Write(t, l.rows.dir, map[string]string{"sub/AGENTS.md": "Never touch this.", "sub/a": "a"})
		todo := map[string]any{"items": []map[string]any{{"id": "1", "text": "one", "status": "pending"}}}
		read := calls("read_file", map[string]any{"path": "sub/a"})
		told := func(want bool, next turn) turn {
			return func(r llm.Request) (llm.Reply, error) {
				if strings.Contains(l.heard(), "Never touch this.") != want {
					l.Errorf("request %d: %s", len(l.asked), l.heard())
				}
				return next(r)
			}
		}
		l.create(board.Draft{})
		l.start(append(append([]turn{calls("todo", todo), read}, reads(6)...), calls("compact", nil), says("What was."),
			told(false, read), told(true, says("Ready.")))...)
		l.stop(muster.CauseUser)
		l.hasEnded()
		l.restart("alice")
		l.send(muster.MailMessage, muster.Lead, "alice", "Go on.")
		l.start(says("Yes."))
		if text := l.todo.Text(); !strings.Contains(text, "[ ] 1 one") {
			l.Errorf("her list is %q", text)
		}
	})
}
