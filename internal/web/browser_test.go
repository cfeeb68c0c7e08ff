package web

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"muster"
	"muster/internal/live"
	"muster/internal/paths"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
	"muster/internal/testing/wait"
)

// tab is a page in a real browser.
type tab struct {
	testing.TB
	ctx context.Context
}

func chromium(t testing.TB) context.Context {
	t.Helper()
	path := tier.Needs(t, "chromium", "chromium-browser", "google-chrome")
	// The programs of a system have their own ideas of where a home is, and tests have none of their own.
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()),
		chromedp.DisableGPU, chromedp.Flag("disable-dev-shm-usage", true))
	if os.Getuid() == 0 { // as in most containers, where the sandbox cannot be made
		options = append(options, chromedp.NoSandbox)
	}
	alloc, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, end := chromedp.NewContext(alloc)
	t.Cleanup(func() { end(); cancel() })
	require.NoError(t, chromedp.Do(ctx))
	return ctx
}

func (w *world) open(browser context.Context, width, height int64) *tab {
	w.Helper()
	// A tab ends with the context of the first thing that is done in it, and with the browser. To close it before would
	// take seconds.
	ctx, _ := chromedp.NewContext(browser) //nolint:govet // The browser's end ends it.
	p := &tab{w.TB, ctx}
	require.NoError(w, chromedp.Do(ctx, chromedp.EmulateViewport(width, height)))
	p.do(chromedp.Navigate("http://" + w.addr + "/?token=" + w.server.token))
	p.until(`document.querySelector("#none:not([hidden]), #board-zone:not([hidden])") !== null`)
	return p
}

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, time.Minute)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.picture("failed")
		p.Fatal(err)
	}
}

func (p *tab) keys(all ...string) {
	p.Helper()
	for _, k := range all {
		p.do(chromedp.KeyEvent(k))
	}
}

// until waits until an expression is true in the page. It asks again and again: chromedp.Poll needs eval, which the
// page's policy forbids.
func (p *tab) until(expression string) {
	p.Helper()
	if _, ok := wait.Poll(time.Minute, func() bool {
		is, err := evaluate[bool](p, 10*time.Second, "Boolean("+expression+")")
		return is && err == nil
	}); !ok {
		p.picture("failed")
		p.Fatalf("waiting for %s, and the page says:\n%.1500s", expression, p.text("body"))
	}
}

func value[T any](p *tab, expression string) T {
	p.Helper()
	v, err := evaluate[T](p, time.Minute, expression)
	if err != nil {
		p.Fatalf("%s: %v", expression, err)
	}
	return v
}

// evaluate asks the page, which may take so long to answer.
func evaluate[T any](p *tab, limit time.Duration, expression string) (v T, err error) {
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	return chromedp.Run(ctx, func(ctx context.Context, t *chromedp.Target) (v T, err error) {
		r, err := cdp.Call(ctx, t, runtime.Evaluate, runtime.EvaluateParams{Expression: expression, ReturnByValue: new(true), AwaitPromise: new(true)})
		if err == nil && r.ExceptionDetails != nil {
			err = fmt.Errorf("%s: %s", r.ExceptionDetails.Text, r.ExceptionDetails.Exception.Description)
		}
		if err == nil {
			err = json.Unmarshal(r.Result.Value, &v)
		}
		return v, err
	})
}

func (p *tab) text(selector string) string {
	p.Helper()
	return value[string](p, `document.querySelector("`+selector+`")?.innerText ?? ""`)
}

func (p *tab) theme(name string) {
	p.Helper()
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
		return err
	}))
}

// picture keeps a picture of the page for people: MUSTER_TESTS=all go test -artifacts -outputdir DIR ./internal/web. That of the
// README is readme-light.png.
func (p *tab) picture(name string) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, time.Minute)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(p.ArtifactDir(), strings.ReplaceAll(name, "/", "-")+".png"), png, 0o600)
	}
	if err != nil {
		p.Error(err)
	}
}

// TestBrowser drives the page in Chromium. The browser is started once, and each part has a tab and a team of its own.
// The first tier has the first part.
func TestBrowser(t *testing.T) {
	t.Parallel()
	browser := chromium(t)
	t.Run("question", func(t *testing.T) { testQuestion(t, browser) })
	for name, test := range map[string]func(*testing.T, context.Context){"looks": testLooks, "keys": testKeys, "replay": testReplay,
		"only a replay": testOnlyReplay, "lines": testLines, "words": testWords, "lost": testLost, "control": testControl,
		"cards": testCards, "phone": testPhone, "share": testShare, "large share": testLargeShare, "focus": testFocus, "panels": testPanels, "conversation": testConversation, "thinking": testThinking, "plain words": testPlainWords} {
		t.Run(name, func(t *testing.T) { tier.All(t); test(t, browser) })
	}
}

// The page opens and shows the board, what a member says is text and nothing of it runs, and a question is answered.
func testQuestion(t *testing.T, browser context.Context) {
	w := newWorld(t)
	w.add(3)
	w.members("alice")
	w.aliceSays("<img src=x onerror=\"document.title='run'\">\n\n[click](javascript:document.title='run') **<b>bold</b>**\n\n" +
		"```html\n<script>document.title='run'</script>\n```\n\n| <i>a</i> | b |\n|---|---|\n| <u>c</u> | d |")
	q := w.aliceAsks("a plan")
	p := w.open(browser, 1280, 800)
	p.until(`document.querySelectorAll(".need").length === 1 && document.querySelectorAll(".node").length === 3 && document.querySelectorAll(".member").length === 2`)
	value[bool](p, `(location.hash = "member/alice", true)`)
	p.until(`document.querySelector(".markdown table")`)
	const unsafe = `[...document.querySelectorAll(".markdown *")].map((e) => e.tagName).filter((n) => !["P", "PRE", "CODE", "STRONG", "SPAN", "DIV", "TABLE", "THEAD", "TBODY", "TR", "TH", "TD"].includes(n)).join() + document.title`
	if got := value[string](p, unsafe); got != "(1) repo - muster" { // a question waits
		t.Errorf("there is %q", got)
	}
	p.keys(kb.Escape, "n")
	p.until(`document.activeElement.textContent === "Approve"`)
	p.keys(kb.Enter)
	p.until(`document.querySelectorAll(".need:not(.answered)").length === 0`) // an answered one goes after a while
	if q, err := w.team.Requests().Get(t.Context(), q.ID); err != nil || q.Status != muster.RequestApproved {
		t.Errorf("the request is %s, %v", q.Status, err)
	}
}

// The slider shows the team as it was, the landings can be stepped through, and the way back leads to the present.
func testReplay(t *testing.T, browser context.Context) {
	w := newWorld(t)
	scene(w)
	p := w.open(browser, 1280, 800)
	p.until(`document.querySelectorAll(".need").length === 3`)
	p.keys("r") // it begins with what is there, at the end
	p.until(`document.querySelector("#replay-time").textContent.endsWith(", 3 of 3 landed") && document.querySelectorAll(".member").length === 6`)
	value[bool](p, `((e) => { e.value = 0; e.dispatchEvent(new Event("input")); return true; })(document.querySelector("#replay-at"))`)
	p.until(`document.querySelector("#replay-time").textContent.match(/^\d\d:\d\d:\d\d, 0 of 3 landed$/) && document.querySelectorAll(".member").length === 0`)
	p.untilFocus(kb.Tab, `document.activeElement.id === "replay-next"`)
	p.keys(kb.Enter, kb.Enter, kb.Enter)
	p.until(`document.querySelector("#replay-time").textContent.endsWith(", 3 of 3 landed") && document.querySelector("#counts").textContent.includes("3 landed")`)
	p.until(`document.querySelectorAll(".member").length === 6 && document.querySelectorAll(".need button").length === 0`)
	p.picture("replay")
	// It plays: at the speed that is chosen, the next second is minutes later.
	at := value[float64](p, `Number(document.querySelector("#replay-at").value)`)
	p.untilFocus(kb.Tab, `document.activeElement.id === "replay-at"`)
	p.keys(" ")
	p.until(fmt.Sprintf(`Number(document.querySelector("#replay-at").value) > %f`, at+30))
	p.keys(kb.Escape)
	p.until(`document.querySelector("#replay").hidden && document.querySelectorAll(".need").length === 3`)
}

// A page of a replay begins at the end, cannot be left, and offers nothing that would change the team.
func testOnlyReplay(t *testing.T, browser context.Context) {
	w := makeWorld(t, true)
	scene(w)
	p := w.open(browser, 1280, 800)
	p.until(`document.querySelector("#replay-time").textContent.endsWith(", 3 of 3 landed") && document.querySelectorAll(".node.landed").length === 3 && document.querySelector("#replay-close").hidden`)
	p.keys("r", kb.Escape)
	for hash, shows := range map[string]string{"member/alice": `#detail .said`, "task/2": `#detail h3`} {
		value[bool](p, `(location.hash = "`+hash+`", true)`)
		p.until(`document.querySelectorAll("` + shows + `").length > 0`)
		const writes = `[...document.querySelectorAll("form, #control, .need button, .diff button, #detail-body button:not([aria-expanded])")].filter((e) => e.checkVisibility()).map((e) => e.outerHTML).join()`
		if got := value[string](p, writes); got != "" {
			t.Errorf("at %s it offers %s", hash, got)
		}
	}
	if value[bool](p, `document.querySelector("#replay").hidden`) {
		t.Error("the replay was left")
	}
}

// Words are seen while they stream in, and the reply takes their place. What the model has written as Markdown is
// drawn.
func testWords(t *testing.T, browser context.Context) {
	w := newWorld(t)
	scene(w)
	p := w.open(browser, 1280, 800)
	value[bool](p, `(location.hash = "member/alice", true)`)
	p.until(`document.querySelector(".markdown table td.figure")?.textContent === "120,331"`)
	p.until(`/^func old[^|]*\n\thttp.Redirect.*\n\}2\|[^|]*0\|plain if0$/s.test([...document.querySelectorAll(".markdown pre")].map((e) => e.innerText.trim() + e.querySelectorAll(".t-keyword, .t-string").length).join("|"))`)
	p.until(`document.querySelectorAll(".markdown .plus").length === 1 && document.querySelectorAll(".markdown ul ul li").length === 1`)
	p.until(`document.querySelector("#steps summary")?.textContent === "Steps: 2 of 5 done"`)
	p.until(`document.querySelector(".said.call.failed .outcome")?.textContent.includes("FAIL")`)
	said := live.NewWriter(paths.Dir(w.dir).Live())
	defer func() { _ = said.Close() }()
	wait.Within(t, time.Minute, "words in the page", func() bool {
		require.NoError(t, said.Write([]live.Piece{{Member: "alice", Kind: live.Text, Text: "I **see** "}}))
		return value[bool](p, `document.querySelector("#words strong")?.textContent === "see"`)
	})
	w.aliceSays("The reply is whole now.")
	require.NoError(t, said.Write([]live.Piece{{Member: "alice", Kind: live.End}}))
	p.until(`!document.querySelector("#words") && document.querySelector("#detail-body").innerText.includes("The reply is whole now.")`)
}

// Everything can be done without a mouse.
func testKeys(t *testing.T, browser context.Context) {
	w := newWorld(t)
	scene(w)
	p := w.open(browser, 1280, 800)
	p.until(`document.querySelectorAll(".need").length === 3`)
	// A question is found, and answered with words.
	p.keys("n")
	p.until(`document.activeElement.textContent === "Approve"`)
	p.do(chromedp.KeyEvent(kb.Tab, chromedp.KeyModifiers(kb.ModifierShift)))
	p.keys("keep 307 for the webhooks", kb.Tab)
	p.until(`document.activeElement.textContent === "Approve with comment"`)
	p.keys(kb.Enter)
	p.until(`document.querySelector(".need.answered")?.innerText.includes("keep 307 for the webhooks")`)
	if all, err := w.team.Requests().List(t.Context()); err != nil || len(all) != 1 || all[0].Status != muster.RequestApproved || all[0].Response != "keep 307 for the webhooks" {
		t.Errorf("the request is %+v, %v", all, err)
	}
	// The board is filtered while typing, and Esc leaves the field with the filter in it.
	// A keyboard types no sign whose key the page has taken; the driver does.
	p.keys("/", kb.Backspace, "redirect")
	p.until(`[...document.querySelectorAll(".node")].map((e) => e.dataset.task).join() === "4"`)
	p.keys(kb.Escape)
	p.until(`document.activeElement === document.body && document.querySelector("#filter").value === "redirect"`)
	// A task is opened, and a line of its diff is commented on.
	p.untilFocus("j", `document.activeElement.dataset.task === "4"`)
	p.keys(kb.Enter)
	p.until(`document.querySelectorAll(".diff .plus").length === 4`)
	if got := value[string](p, `[...document.querySelectorAll(".diff .row:not(.hunk)")].slice(0, 3).map((r) => [...r.children].map((e) => e.textContent).join("|")).join("\n") + document.querySelectorAll(".diff .t-keyword").length`); !strings.HasPrefix(got, "1|1| ") {
		t.Errorf("the lines are\n%s", got)
	}
	p.picture("keys-task")
	p.untilFocus(kb.Tab, `document.activeElement.ariaLabel === "Comment on line 5 of routes.go"`)
	p.keys(kb.Enter)
	p.until(`document.activeElement.matches(".diff textarea")`)
	p.keys("why no slash?", kb.Tab, kb.Enter)
	const isSaid = `document.querySelector(".diff .comment")?.innerText === "you to alice: why no slash?" && document.querySelector(".diff .comment").previousElementSibling.innerText.includes("return")`
	p.until(isSaid + ` && document.activeElement.ariaLabel === "Comment on line 5 of routes.go"`)
	mail, err := w.team.Mail().Pending(t.Context(), "alice")
	if err != nil || len(mail) == 0 || !strings.Contains(mail[len(mail)-1].Content, "routes.go:5") {
		t.Errorf("the mail of alice is %+v, %v", mail, err)
	}
	// It is there for who opens the page anew, and stays when it was read.
	again := w.open(browser, 390, 844)
	value[bool](again, `(location.hash = "task/4", true)`)
	again.until(isSaid)
	again.picture("keys-comment")
	// The focus comes back to the task, also where the board was drawn again meanwhile.
	value[bool](p, `((e) => { e.value = ""; e.dispatchEvent(new Event("input")); return true; })(document.querySelector("#filter"))`)
	p.keys(kb.Escape)
	p.until(`document.querySelector("#detail").hidden && document.activeElement.dataset.task === "4"`)
	p.keys("?")
	p.until(`document.querySelector("#keys").open`)
	p.keys(kb.Escape)
	p.until(`!document.querySelector("#keys").open`)
	// The key n leads from one question to the next. A task is tried again.
	p.untilFocus("n", `document.activeElement.textContent === "Try it again"`)
	p.keys(kb.Enter)
	p.until(`[...document.querySelectorAll("button")].every((b) => b.textContent !== "Try it again")`)
	if task, err := w.team.Tasks().Get(t.Context(), 13); err != nil || task.Status != muster.Pending {
		t.Errorf("the task is %s, %v", task.Status, err)
	}
	// What a member asks to run is allowed for longer with a button of its own.
	r := require.Value(w.requests().Ask(t.Context(), muster.Request{Kind: muster.AskPermission, From: "bob", To: muster.Lead, Plan: "docker build .",
		Asks: []string{"bash(docker build .)"}}))(t)
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
	// A page that gets narrower still shows the newest event, also where the browser scrolls before the page knows of it. The Tabs
	// may have led through the events.
	const isAtEnd = `((e) => e.scrollHeight > e.clientHeight && e.scrollHeight - e.scrollTop - e.clientHeight < 2)(document.querySelector("#events"))`
	p.keys(kb.Escape, kb.Escape, kb.End)
	p.until(`document.querySelector("#follow").hidden && ` + isAtEnd)
	value[bool](p, `((e) => { e.style.width = "200px"; e.dispatchEvent(new Event("scroll")); e.style.width = ""; return true; })(document.querySelector("#events"))`)
	p.do(chromedp.EmulateViewport(390, 844))
	p.until(isAtEnd)
}

// untilFocus presses a key until the focus is where an expression is true.
func (p *tab) untilFocus(key, expression string) {
	p.Helper()
	for range 100 {
		if value[bool](p, expression) {
			return
		}
		p.keys(key)
	}
	p.picture("failed")
	p.Fatalf("the focus never comes to where %s", expression)
}

// The page shows the team: wide and narrow, light and dark. What colours have on each other, TestContrast says.
func testLooks(t *testing.T, browser context.Context) {
	w := newWorld(t)
	scene(w)
	for name, size := range map[string][2]int64{"wide": {1440, 900}, "phone": {390, 844}, "readme": {1200, 800}} {
		p := w.open(browser, size[0], size[1])
		p.until(`document.querySelectorAll("#events li").length > 10`)
		for _, hash := range []string{"", "member/alice", "task/4", "inbox", "spending"} {
			if value[bool](p, `(location.hash = "`+hash+`", true)`); hash != "" {
				p.until(`!document.querySelector("#detail").hidden && document.querySelector("#detail-body").children.length > 0`)
			}
			for _, theme := range []string{"light", "dark"} {
				p.theme(theme)
				p.picture(strings.ReplaceAll(strings.TrimSuffix(name+"-"+hash, "-"), "/", "-") + "-" + theme)
			}
		}
		if over := value[int](p, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
			t.Errorf("%s: the page is %d pixels too wide", name, over)
		}
	}
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
	w.putTasks(all)
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

// A server that goes away is missed, and found again when it is back: the page shows what has happened meanwhile, once.
func testLost(t *testing.T, browser context.Context) {
	w := newWorld(t)
	w.add(3)
	w.members("alice")
	w.emit(1, 5)
	w.aliceAsks("a plan")
	w.stop()
	w.start("127.0.0.7:0", w.server.token) // nothing else takes a port of this address before the server is back
	p := w.open(browser, 1280, 800)
	p.until(`document.querySelectorAll(".need").length === 1 && document.querySelector("#link").textContent === "live"`)
	w.stop()
	p.until(`document.querySelector("#link").classList.contains("lost") && document.querySelector("#link").textContent.startsWith("connection lost")`)
	p.until(`document.querySelectorAll(".need").length === 1 && document.querySelectorAll(".node").length === 3`)
	w.emit(901, 901)
	w.start(w.addr, w.server.token)
	p.until(`document.querySelector("#link").textContent === "live" && document.querySelector("#trouble").hidden`)
	p.until(`document.querySelector("#events li:last-child")?.innerText.includes("901 task 901")`)
	if twice := value[string](p, `[...document.querySelectorAll("#events li")].map((e) => e.innerText).filter((e, i, all) => all.indexOf(e) !== i).join("; ")`); twice != "" {
		t.Errorf("the timeline has twice: %s", twice)
	}
}
