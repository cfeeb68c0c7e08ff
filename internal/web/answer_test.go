package web

import (
	"context"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"muster"
	"muster/team"
)

// A question is answered beside the diff of its task, too. Whoever waits is seen to wait longer without any event, and
// the key n leads from one question to the next.
func testAnswers(t *testing.T, browser context.Context) {
	w := newWorld(t)
	scene(w)
	p := w.open(browser, 1440, 900)
	p.until(`document.querySelectorAll(".need").length === 3`)
	if hidden := value[int](p, `[...document.querySelectorAll(".member")].filter((m) => m.getBoundingClientRect().bottom > innerHeight).length`); hidden > 2 {
		t.Errorf("%d of 6 members are below the edge of the page", hidden)
	}
	p.keys("n")
	p.until(`document.activeElement.textContent === "Approve"`)
	p.keys("n")
	p.until(`document.activeElement.textContent === "Try it again"`)
	p.keys("n", "n")
	p.until(`document.activeElement.textContent === "Approve"`)
	p.until(`/waits ([4-9]|\d\d)s$/.test(document.querySelector(".need strong").textContent)`)
	value[bool](p, `(location.hash = "task/5", true)`)
	p.until(`document.querySelector("#detail .need .text-box li")`)
	p.keys("n")
	p.until(`document.activeElement.matches("#detail .yes")`)
	p.picture("answer")
	p.keys(kb.Enter)
	p.until(`document.querySelector("#detail-body").innerText.includes("plan of carol, approved by user")`)
	if all, err := w.team.Requests().List(t.Context()); err != nil || len(all) != 1 || all[0].Status != muster.RequestApproved {
		t.Errorf("the request is %+v, %v", all, err)
	}
	// What a member asks to run is allowed for longer with a button of its own. A plan has none.
	if plain := value[int](p, `[...document.querySelectorAll("button")].filter((b) => b.textContent === "For good").length`); plain != 0 {
		t.Errorf("%d questions can be approved for longer", plain)
	}
	r, err := w.requests().Ask(t.Context(), muster.Request{Kind: muster.AskPermission, From: "bob", To: muster.Lead, Plan: "docker build .",
		Asks: []string{"bash(docker build .)"}})
	if err != nil {
		t.Fatal(err)
	}
	const forRun = `[...document.querySelectorAll(".need button")].find((b) => b.textContent === "For this run")`
	p.until(forRun + ` !== undefined`)
	value[bool](p, `(`+forRun+`.click(), true)`)
	p.until(`document.body.innerText.includes("You: approved for this run")`)
	if r, err = w.team.Requests().Get(t.Context(), r.ID); err != nil || r.Status != muster.RequestApproved || r.Scope != muster.ScopeRun {
		t.Errorf("the permission is %+v, %v", r, err)
	}
	// Mail goes off with Ctrl-Enter.
	value[bool](p, `(location.hash = "member/bob", true)`)
	p.until(`!document.querySelector("#mail").hidden`)
	value[bool](p, `(document.querySelector("#mail-text").focus(), true)`)
	p.keys("keep the order")
	p.do(chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(kb.ModifierCtrl)))
	p.until(`document.querySelector("#mail-label").textContent === "sent to bob"`)
	if mail, err := w.team.Mail().Pending(t.Context(), "bob"); err != nil || len(mail) != 1 || mail[0].Content != "keep the order" {
		t.Errorf("the mail of bob is %+v, %v", mail, err)
	}
	// A page that gets narrower still shows the newest event.
	p.keys(kb.Escape, kb.Escape)
	p.do(chromedp.EmulateViewport(390, 844))
	p.until(`((e) => e.scrollHeight > e.clientHeight && e.scrollHeight - e.scrollTop - e.clientHeight < 2)(document.querySelector("#events"))`)
}

// No line from a task to another one touches a third one, and what came back says to whom.
func testLines(t *testing.T, browser context.Context) {
	w := newWorld(t)
	all := make([]muster.Task, 9)
	for i := range all {
		all[i] = muster.Task{ID: muster.TaskID(i + 1), Subject: "a task", Status: muster.Pending}
	}
	for id, after := range map[muster.TaskID][]muster.TaskID{4: {1}, 5: {2}, 6: {4, 3}, 7: {6, 1, 2}, 8: {5, 7, 9}} {
		all[id-1].DependsOn, all[id-1].BlockedBy = after, after
	}
	all[8].Status, all[8].Owner, all[8].Fence, all[8].Returned = muster.InProgress, "alice", 1, "TestCount fails"
	if err := team.PutTasks(t.Context(), w.team, all); err != nil {
		t.Fatal(err)
	}
	w.members("alice")
	p := w.open(browser, 1440, 900)
	p.until(`document.querySelectorAll("#edges path").length === 10`)
	p.picture("lines")
	const touched = `(() => {
		const nodes = [...document.querySelectorAll(".node")].map((n) => [n.dataset.task, n.offsetLeft, n.offsetTop, n.offsetWidth, n.offsetHeight]);
		return [...document.querySelectorAll("#edges path")].flatMap((path) => Array.from({ length: 400 }, (_, i) => path.getPointAtLength(path.getTotalLength() * i / 399))
			.flatMap((at) => nodes.filter(([id, x, y, w, h]) => at.x > x + 1 && at.x < x + w - 1 && at.y > y + 1 && at.y < y + h - 1).map((n) => path.dataset.of + " touches " + n[0])))[0] || "";
	})()`
	if got := value[string](p, touched); got != "" {
		t.Error(got)
	}
	if got := value[string](p, `document.querySelector(".node[data-task='9'] .state").textContent`); got != "came back to alice" {
		t.Errorf("the task says %q", got)
	}
}
