package web

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/chromedp/chromedp"

	"muster/internal/testing/require"
	"muster/internal/transcript"
	"muster/llm"
)

// Below the call of a file tool stands what it changes, and what has failed has changed nothing. Results of calls that run
// side by side stand below their calls, whichever ends first.
func testConversation(t *testing.T, browser context.Context) {
	w := newWorld(t)
	scene(w)
	p := w.open(browser, 1200, 800)
	value[bool](p, `(location.hash = "member/alice", true)`)
	p.until(`document.querySelectorAll("#detail-body > .edit").length === 2`)
	// edited reads the rows below a call as they are seen.
	edited := func(file string) string {
		return value[string](p, `((e) => e.querySelector("summary").innerText + "\n" + e.nextSibling.innerText)([...document.querySelectorAll(".said.call")].find((e) => e.innerText.includes(" `+file+` ")))`)
	}
	const routes = "edit_file routes.go +2 -1\n-\tmux.Handle(\"/v1/users\", users)\n+\tmux.Handle(\"/v1/users\", old)\n+\tmux.Handle(\"/v2/users\", users)\nall 6 lines"
	if got := edited("routes.go"); got != routes {
		t.Errorf("the edit is %q", got)
	}
	if got := value[string](p, `[...document.querySelectorAll(".edit")][1].innerText.split("\n").length + " " + document.querySelector(".said.call.failed .edit").textContent`); got != "9 -gone+new" {
		t.Errorf("the others are %q", got)
	}
	p.picture("conversation-edits")
	value[bool](p, `(document.querySelector(".edit button").click(), true)`)
	if got := value[string](p, `document.querySelector(".edit").innerText`); got != " func routes(mux *http.ServeMux) {\n-\tmux.Handle(\"/v1/users\", users)\n+\tmux.Handle(\"/v1/users\", old)\n"+
		"+\tmux.Handle(\"/v2/users\", users)\n \tmux.Handle(\"/v1/export\", export)\n }\nfewer lines" {
		t.Errorf("all of it is %q", got)
	}
	p.do(chromedp.EmulateViewport(390, 844))
	p.picture("conversation-edits-390")
	if over := value[int](p, `((e) => e.scrollWidth - e.clientWidth)(document.querySelector("#detail-body"))`); over > 0 {
		t.Errorf("the conversation is %d pixels too wide", over)
	}
	// Two calls run side by side, and the second one ends first.
	words := require.Value(transcript.Open(t.Context(), w.store.Log(), "alice"))(t)
	parts := llm.Parts{}
	for _, id := range []string{"slow", "fast"} {
		parts = append(parts, llm.Call{ID: id, Name: "bash", Input: json.RawMessage(`{"command":"run ` + id + `"}`)})
	}
	require.NoError(t, words.Reply(t.Context(), llm.Reply{Message: llm.Message{Role: llm.Assistant, Parts: parts}}))
	answer := func(id string) {
		require.NoError(t, words.Result(t.Context(), llm.Result{ID: id, Parts: llm.Parts{llm.Text{Text: "output of " + id}}}))
		w.emit(int(id[0]), int(id[0])) // the page reads again
	}
	calls := `[...document.querySelectorAll(".said.call")].slice(-2).map((e) => e.querySelector("summary").textContent + "|" + (e.querySelector("pre")?.textContent ?? "")).join(";")`
	answer("fast")
	p.until(calls + ` === "bash run slow ...|;bash run fast|output of fast"`)
	answer("slow")
	p.until(calls + ` === "bash run slow|output of slow;bash run fast|output of fast"`)
	p.picture("conversation-parallel")
}
