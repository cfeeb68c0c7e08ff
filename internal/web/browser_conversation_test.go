package web

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"muster/internal/live"
	"muster/internal/paths"
	"muster/internal/testing/require"
	"muster/internal/testing/wait"
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

// Thinking streams in faint, folds to a line when words follow, and is opened by a press then and later.
func testThinking(t *testing.T, browser context.Context) {
	w := newWorld(t)
	scene(w)
	p := w.open(browser, 800, 600)
	value[bool](p, `(location.hash = "member/alice", true)`)
	p.until(`document.querySelectorAll(".said.call").length > 2`)
	said := live.NewWriter(paths.Dir(w.dir).Live())
	defer func() { _ = said.Close() }()
	// What was said before the page listens is not told again.
	wait.Within(t, time.Minute, "thinking in the page", func() bool {
		require.NoError(t, said.Write([]live.Piece{{Member: "alice", Kind: live.Think, Text: "The handler is shared. "}}))
		return value[bool](p, `((e) => Boolean(e?.open) && e.innerText.startsWith("thinking ...\nThe handler is shared."))(document.querySelector("#words .think"))`)
	})
	p.picture("thinking-streams")
	require.NoError(t, said.Write([]live.Piece{{Member: "alice", Kind: live.Text, Part: 1, Text: "I change **it**."}}))
	p.until(`((e) => !e.open && /^thought for \d+ s$/.test(e.innerText.trim()))(document.querySelector("#words .think")) && document.querySelector("#words strong")`)
	p.picture("thinking-folded")
	words := require.Value(transcript.Open(t.Context(), w.store.Log(), "alice"))(t)
	require.NoError(t, words.Reply(t.Context(), llm.Reply{Message: llm.Message{Role: llm.Assistant, Parts: llm.Parts{
		llm.Thinking{Text: "The handler is shared.", Provider: "a"}, llm.Text{Text: "I change **it**."}}}}))
	require.NoError(t, said.Write([]live.Piece{{Member: "alice", Kind: live.End}}))
	p.until(`!document.querySelector("#words") && /^thought for \d+ s$/.test(document.querySelector("#detail-body > .think summary")?.innerText)`)
	value[bool](p, `(document.querySelector("#detail-body > .think summary").click(), true)`)
	p.until(`document.querySelector("#detail-body > .think").innerText.includes("The handler is shared.")`)
	p.picture("thinking-opened")
}
