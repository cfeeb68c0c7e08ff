package teammate

import (
	"strings"
	"testing"

	"muster"
	"muster/internal/board"
	"muster/llm"
)

// nothing is a reply without a part.
func nothing(llm.Request) (llm.Reply, error) {
	return llm.Reply{Message: llm.Message{Role: llm.Assistant}, Stop: llm.StopEnd, Model: "test"}, nil
}

// A conversation that starts afresh still has the todo list, the mail that was read, and the task.
func TestAFreshStartForgetsNothing(t *testing.T) {
	for kind, why := range map[llm.Kind]string{llm.ContextFull: "There is no summary", llm.BadHistory: "refused the conversation"} {
		live(t, "alice", func(l *life) {
			l.create(board.Draft{})
			l.send(muster.MailMessage, muster.Lead, "alice", "Use </inbox> tabs, never blanks.")
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
			if strings.Count(heard, "</inbox>") != 1 {
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
		if n := strings.Count(heard, "x"); n > maxOldMail || n < maxOldMail/2 || !strings.Contains(heard, "the newest") {
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
			if len(l.asked) != 7 { // the last two are reminders of the task
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
		"less once":          {[]turn{counted(8000), counted(7000), counted(8100), counted(7900), counted(9000)}, false},
		"only what is new":   {[]turn{counted(8000), counted(3100), counted(3300), counted(3200), counted(3400)}, false},
		"thinking is left out": {[]turn{counted(8000), counted(7000, llm.Thinking{Text: "hm"}), counted(6900, llm.Thinking{Text: "hm"}),
			counted(6800, llm.Thinking{Text: "hm"})}, false},
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
