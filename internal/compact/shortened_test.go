package compact

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster/llm"
)

// drawText draws a text of some script, of 0 to so many characters.
func drawText(t *rapid.T, most int) string {
	of := rapid.SampledFrom([]string{"a word ", "слово ", "会话压缩", "🙂", "</mail>", "\n", "\xff"}).Draw(t, "script")
	return strings.Repeat(of, rapid.IntRange(0, most).Draw(t, "length")/len(of))
}

// drawHistory draws a conversation with everything that one may have.
func drawHistory(t *rapid.T) []llm.Message {
	var h llm.History
	h.Say(say("The goal."))
	for i := range rapid.IntRange(1, 30).Draw(t, "rounds") {
		var parts llm.Parts
		if rapid.Bool().Draw(t, "thinks") {
			parts = append(parts, llm.Thinking{Text: drawText(t, 400), Provider: "p", Opaque: json.RawMessage(`"sealed"`)})
		}
		if text := drawText(t, 3000); text != "" {
			parts = append(parts, say(text))
		}
		calls := rapid.IntRange(0, 4).Draw(t, "calls")
		for j := range calls {
			input, _ := json.Marshal(map[string]string{"path": fmt.Sprint("f", j), "content": drawText(t, 6000)})
			parts = append(parts, llm.Call{ID: fmt.Sprintf("%d-%d", i, j), Name: "write_file", Input: input})
		}
		h.Reply(parts...)
		for j := range calls {
			r := llm.Result{ID: fmt.Sprintf("%d-%d", i, j), IsError: rapid.Bool().Draw(t, "fails"),
				Parts: llm.Parts{say("r" + drawText(t, 60_000))}}
			if rapid.IntRange(0, 5).Draw(t, "image") == 0 {
				r.Parts = append(r.Parts, llm.Image{Media: "image/png", Data: make([]byte, 100)})
			}
			h.Answer(r)
		}
		if calls == 0 || rapid.Bool().Draw(t, "mail") {
			h.Say(say("mail" + drawText(t, 2000)))
		}
	}
	return h.Messages()
}

// check fails unless messages are a conversation that a provider takes: the roles alternate, and each call is answered
// in the next message, in order and before anything else.
func check(t *rapid.T, messages []llm.Message) {
	var calls []llm.Call
	for i, m := range messages {
		if want := []llm.Role{llm.User, llm.Assistant}[i%2]; m.Role != want || len(m.Parts) == 0 {
			t.Fatalf("message %d is %s's with %d parts, want %s's", i, m.Role, len(m.Parts), want)
		}
		for j, p := range m.Parts {
			r, isResult := p.(llm.Result)
			if isResult != (j < len(calls)) || isResult && r.ID != calls[j].ID {
				t.Fatalf("part %d of message %d: %T answers not one of %d calls", j, i, p, len(calls))
			}
		}
		if calls = m.Calls(); len(calls) > 0 && i == len(messages)-1 {
			t.Fatal("the last calls have no results")
		}
	}
}

// TestWhateverIsShortened: whatever was said, what is sent after clearing, or behind a summary, is a conversation that a
// provider takes. Behind a summary it fits, and the task and the last instruction are in it, word for word.
func TestWhateverIsShortened(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		messages := drawHistory(t)
		check(t, messages)
		rules := Rules{Kept: rapid.IntRange(0, 500).Draw(t, "kept"), Tools: []llm.Spec{{Name: "write_file"}}}
		changes, saved := rules.Clear(messages)
		cleared := Apply(messages, changes)
		check(t, cleared)
		if before, after := Estimate(messages), Estimate(cleared); after != before-saved {
			t.Fatalf("clearing was to win %d of %d tokens, and %d are left", saved, before, after)
		}
		const prefix = 4000
		b := NewBudget(rapid.IntRange(16_000, 300_000).Draw(t, "window"), rapid.IntRange(0, 64_000).Draw(t, "reply"), prefix,
			rapid.IntRange(0, 2).Draw(t, "harder"))
		task, instruction := "Task #1: the parser\nIt reads chapter seven.", "Use blanks only."
		tail, before := Tail(cleared, b.Kept)
		opening := Fit([]string{"[Conversation compressed]\n" + drawText(t, 40_000), task, instruction}, b.Opening)
		short := Behind(opening, tail)
		check(t, short)
		if size := prefix + Estimate(short); size > b.Limit {
			t.Fatalf("%d tokens of at most %d: %d in the opening, %d in the tail", size, b.Limit,
				TextTokens(strings.Join(opening, "")), Estimate(tail))
		}
		if text := short[0].Parts.Text(); !strings.Contains(text, task) || !strings.Contains(text, instruction) {
			t.Fatalf("the task or the instruction is lost: %.300s", text)
		}
		if before < 0 || before > len(messages) {
			t.Fatalf("%d messages of %d stand before", before, len(messages))
		}
	})
}
