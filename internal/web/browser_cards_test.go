package web

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"muster"
	"muster/internal/mailbox"
	"muster/internal/roster"
	"muster/internal/testing/rawnames"
	"muster/internal/testing/require"
)

// What waits for the user is whole at each width, whatever was written without a space.
func testCards(t *testing.T, browser context.Context) {
	w := newWorld(t)
	scene(w)
	long := strings.Repeat("services/export/cursor_", 12)
	for _, r := range []muster.Request{
		{Kind: muster.AskPlan, From: "bob", To: muster.Lead, TaskID: 6, Plan: "# " + long + "\n\n- " + long + "\n\n`" + long + "`\n\n```go\n" + long +
			"\n```\n\n| " + long + " | b |\n|---|---|\n| 1 | " + long + " |"},
		{Kind: muster.AskPermission, From: "dave", To: muster.Lead, Plan: "rm -rf " + long, Asks: []string{"bash(rm -rf " + long + ")"}},
	} {
		require.Value(w.requests().Ask(t.Context(), r))(t)
	}
	w.change(13, func(x *muster.Task) { x.Subject, x.Result = long, long })
	p := w.open(browser, 1200, 800)
	for _, width := range []int64{1200, 800, 400, 390} {
		p.do(chromedp.EmulateViewport(width, 844))
		p.until(`document.querySelectorAll(".need").length === 5`)
		p.picture("cards-" + map[int64]string{1200: "1200", 800: "800", 400: "400", 390: "390"}[width])
		// What scrolls to the side in a box of its own is within it.
		const over = `((zone) => [...zone.querySelectorAll("*")].filter((e) => !e.closest(".wide, pre") && e.getBoundingClientRect().right > zone.getBoundingClientRect().right + 0.5)
			.map((e) => e.tagName + " " + e.textContent.slice(0, 30)).concat(zone.scrollWidth > zone.clientWidth ? ["it scrolls to the side"] : []).join("; "))(document.querySelector("#needs"))`
		if got := value[string](p, over); got != "" {
			t.Errorf("at %d pixels is cut: %s", width, got)
		}
	}
}

// An answer keeps the focus where n leads on from, also when its box has gone, and no key answers the next question.
func testFocus(t *testing.T, browser context.Context) {
	w := newWorld(t)
	scene(w)
	p := w.open(browser, 1280, 800)
	p.until(`document.querySelectorAll(".need").length === 3`)
	p.keys("n")
	p.until(`document.activeElement.textContent === "Approve"`)
	p.keys(kb.Enter)
	p.until(`document.activeElement.matches(".need.answered") && document.activeElement === document.querySelector("#needs").firstChild`)
	p.keys(kb.Enter, "n")
	p.until(`document.activeElement.textContent === "Try it again"`)
	p.keys(kb.Enter)
	p.until(`document.querySelectorAll(".need:not(.answered)").length === 1 && document.activeElement.matches("#needs .need")`)
	// In the panel of a task the answer stands where the question was.
	require.Value(w.requests().Ask(t.Context(), muster.Request{Kind: muster.AskPlan, From: "bob", To: muster.Lead, TaskID: 6, Plan: "a plan"}))(t)
	value[bool](p, `(location.hash = "task/6", true)`)
	p.until(`document.querySelector("#detail .need .yes")`)
	p.keys("n")
	p.until(`document.activeElement.matches("#detail .need .yes")`)
	p.keys(kb.Enter)
	p.until(`document.querySelector("#detail h3")?.textContent.includes("approved by user") && document.querySelector("#detail").contains(document.activeElement)`)
}

// Spending is read from its beginning, also after a conversation, which is read from its end; its sums are dollars. Mail
// offers to answer its sender.
func testPanels(t *testing.T, browser context.Context) {
	w := newWorld(t)
	scene(w)
	require.Value(mailbox.New(w.store, w.journal, roster.New(w.store, w.journal, "api-v2").Known).Send(t.Context(), muster.Message{
		Type: muster.MailMessage, From: "bob", To: muster.User, Content: "May I drop the old cursor?"}))(t)
	p := w.open(browser, 800, 600)
	for range 2 {
		value[bool](p, `(location.hash = "member/alice", true)`)
		p.until(`((e) => e.scrollTop > 100 && e.scrollHeight - e.scrollTop - e.clientHeight < 24)(document.querySelector("#detail-body"))`)
		value[bool](p, `(location.hash = "spending", true)`)
		p.until(`document.querySelectorAll("#detail-body table").length > 3`)
		// What a change of the size does is done in the next picture.
		p.do(chromedp.EmulateViewport(800, 620), chromedp.EmulateViewport(800, 600))
		value[bool](p, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
		if at := value[float64](p, `document.querySelector("#detail-body").scrollTop`); at != 0 {
			t.Errorf("spending begins at %v", at)
		}
	}
	p.picture("panels-spending")
	if got := value[string](p, `[...document.querySelectorAll("#detail-body tbody tr")].map((e) => e.innerText.replace(/\s+/g, " ")).find((s) => /^alice 37 /.test(s))`); !strings.HasSuffix(got, " $0.97") {
		t.Errorf("the sum of alice is %q", got)
	}
	value[bool](p, `(location.hash = "inbox", true)`)
	p.until(`[...document.querySelectorAll("#detail-body .mail a.button")].map((e) => e.textContent).join() === "Answer the lead,Answer bob"`)
	p.picture("panels-inbox")
	value[bool](p, `([...document.querySelectorAll("#detail-body .mail a.button")].at(-1).click(), true)`)
	p.until(`document.querySelector("#mail-label").textContent.startsWith("Mail to bob") && document.activeElement.id === "mail-text"`)
}

// The page has words for everything, and no names of the runtime.
func testPlainWords(t *testing.T, browser context.Context) {
	w := newWorld(t)
	scene(w)
	for _, r := range []muster.Request{
		{Kind: muster.AskPermission, From: "dave", To: muster.User, TaskID: 5, Plan: "touch x"},
		{Kind: muster.AskShutdown, From: muster.Lead, To: "erin"},
	} {
		require.Value(w.requests().Ask(t.Context(), r))(t)
	}
	box := mailbox.New(w.store, w.journal, roster.New(w.store, w.journal, "api-v2").Known)
	for _, kind := range []muster.MessageType{muster.MailBroadcast, muster.MailResult, muster.MailIdle, muster.MailLanded,
		muster.MailReturned, muster.MailShutdown, muster.MailShutdownAnswer, muster.MailPlan, muster.MailPlanAnswer, muster.MailError} {
		for _, to := range []muster.Name{muster.User, muster.Lead} {
			require.Value(box.Send(t.Context(), muster.Message{Type: kind, From: "alice", To: to, Content: "The text."}))(t)
		}
	}
	p := w.open(browser, 1280, 800)
	p.until(`document.querySelectorAll(".need").length === 4`)
	value[bool](p, `(document.querySelectorAll(".filter input, #details, #landed").forEach((e) => { if (!e.checked) e.click(); }), true)`)
	for hash, text := range map[string]string{"": "dave asks to run", "task/4": "Diff", "task/13": "needs you", "task/5": "permission",
		"member/alice": "Steps", "inbox": "asks about a plan", "spending": "carol"} {
		value[bool](p, fmt.Sprintf(`(location.hash = %q, true)`, hash))
		p.until(fmt.Sprintf(`document.body.innerText.includes(%q)`, text))
		for _, found := range rawnames.Find(p.text("body")) {
			t.Errorf("%s: %s", hash, found)
		}
	}
}
