package web

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
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
	"muster/internal/testing/wait"
)

// tab is a page in a real browser.
type tab struct {
	testing.TB
	ctx context.Context
}

// chromium starts a browser without a window. Without one the test is skipped, and fails where CI is "true".
func chromium(t testing.TB) context.Context {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("Chromium is missing, and nothing else tests the page: apt-get install chromium")
		}
		t.Skip("CHROMIUM IS MISSING: THE PAGE IS NOT TESTED HERE (Debian: apt-get install chromium)")
	}
	// The programs of a system have their own ideas of where a home is, and tests have none of their own.
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()),
		chromedp.DisableGPU, chromedp.Flag("disable-dev-shm-usage", true))
	if os.Getuid() == 0 { // as in most containers, where the sandbox cannot be made
		options = append(options, chromedp.NoSandbox)
	}
	alloc, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, end := chromedp.NewContext(alloc)
	t.Cleanup(func() { end(); cancel() })
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// open opens the page of a world in a tab of its own, as wide and high as given.
func (w *world) open(browser context.Context, width, height int64) *tab {
	w.Helper()
	// A tab ends with the context of the first thing that is done in it, and with the browser. To close it before would
	// take seconds.
	ctx, _ := chromedp.NewContext(browser) //nolint:govet // The browser's end ends it.
	p := &tab{w.TB, ctx}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(width, height)); err != nil {
		w.Fatal(err)
	}
	p.do(chromedp.Navigate("http://" + w.addr + "/?token=" + w.server.token))
	p.until(`document.querySelector("#none:not([hidden]), #board-zone:not([hidden])") !== null`)
	return p
}

// do does things in the page.
func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 30*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.picture("failed")
		p.Fatal(err)
	}
}

// keys types keys, wherever the focus is.
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
	if _, ok := wait.Poll(20*time.Second, func() bool {
		is, err := evaluate[bool](p, 3*time.Second, "Boolean("+expression+")")
		return is && err == nil
	}); !ok {
		p.picture("failed")
		p.Fatalf("waiting for %s, and the page says:\n%.1500s", expression, p.text("body"))
	}
}

// value returns what an expression is in the page.
func value[T any](p *tab, expression string) T {
	p.Helper()
	v, err := evaluate[T](p, 30*time.Second, expression)
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

// text returns the text that is seen of an element.
func (p *tab) text(selector string) string {
	p.Helper()
	return value[string](p, `document.querySelector("`+selector+`")?.innerText ?? ""`)
}

// theme shows the page in a theme: light or dark.
func (p *tab) theme(name string) {
	p.Helper()
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
		return err
	}))
}

// picture keeps a picture of the page for people: go test -artifacts -outputdir DIR ./internal/web.
func (p *tab) picture(name string) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 20*time.Second)
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
func TestBrowser(t *testing.T) {
	browser := chromium(t)
	t.Run("looks", func(t *testing.T) { testLooks(t, browser) })
	t.Run("keys", func(t *testing.T) { testKeys(t, browser) })
	t.Run("contrast", func(t *testing.T) { testContrast(t, browser) })
	t.Run("replay", func(t *testing.T) { testReplay(t, browser) })
	t.Run("only a replay", func(t *testing.T) { testOnlyReplay(t, browser) })
	t.Run("answers", func(t *testing.T) { testAnswers(t, browser) })
	t.Run("lines", func(t *testing.T) { testLines(t, browser) })
	t.Run("words", func(t *testing.T) { testWords(t, browser) })
	t.Run("many", func(t *testing.T) { testMany(t, browser) })
	t.Run("lost", func(t *testing.T) { testLost(t, browser) })
	t.Run("control", func(t *testing.T) { testControl(t, browser) })
	t.Run("hostile", func(t *testing.T) { testHostile(t, browser) })
}

// The slider shows the team as it was, the landings can be stepped through, and the way back leads to the present.
func testReplay(t *testing.T, browser context.Context) {
	w := newWorld(t)
	scene(w)
	p := w.open(browser, 1280, 800)
	p.until(`document.querySelectorAll(".need").length === 3`)
	p.keys("r")
	p.until(`document.querySelector("#replay-time").textContent.match(/^\d\d:\d\d:\d\d, 0 of 3 landed$/) && document.querySelectorAll(".member").length === 0`)
	p.untilFocus(kb.Tab, `document.activeElement.id === "replay-next"`)
	for i, landed := range []string{"1 landed", "2 landed", "3 landed"} {
		p.keys(kb.Enter)
		p.until(fmt.Sprintf(`document.querySelector("#replay-time").textContent.endsWith(", %d of 3 landed") && document.querySelector("#counts").textContent.includes(%q)`, i+1, landed))
	}
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
	p.until(`document.querySelector("#replay-time").textContent.endsWith(", 3 of 3 landed") && document.querySelectorAll(".member").length === 6`)
	p.until(`document.querySelectorAll(".node.landed").length === 3 && document.querySelector("#replay-close").hidden && document.querySelector("#link").textContent === "replay"`)
	p.keys("r", kb.Escape)
	value[bool](p, `(location.hash = "member/alice", true)`)
	p.until(`document.querySelectorAll("#detail .said").length > 3 && document.querySelector("#steps summary")?.textContent === "Steps: 2 of 5 done"`)
	const writes = `[...document.querySelectorAll("form, #control, .need button, .diff button, #detail-body button")].filter((e) => e.checkVisibility()).map((e) => e.outerHTML).join()`
	if got := value[string](p, writes); got != "" {
		t.Errorf("it offers %s", got)
	}
	value[bool](p, `(location.hash = "task/2", true)`)
	p.until(`document.querySelectorAll("#detail h3").length > 0`)
	if got := value[string](p, writes); got != "" {
		t.Errorf("at a task it offers %s", got)
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
	p.until(`document.querySelectorAll(".markdown .plus").length === 1 && document.querySelectorAll(".markdown ul ul li").length === 1`)
	p.until(`document.querySelector("#steps summary")?.textContent === "Steps: 2 of 5 done"`)
	p.until(`document.querySelector(".said.call.failed .outcome")?.textContent.includes("FAIL")`)
	said := live.NewWriter(paths.Dir(w.dir).Live())
	defer func() { _ = said.Close() }()
	wait.For(t, "words in the page", func() bool {
		if err := said.Write([]live.Piece{{Member: "alice", Kind: live.Text, Text: "I **see** "}}); err != nil {
			t.Fatal(err)
		}
		return value[bool](p, `document.querySelector("#words strong")?.textContent === "see"`)
	})
	w.aliceSays("The reply is whole now.")
	if err := said.Write([]live.Piece{{Member: "alice", Kind: live.End}}); err != nil {
		t.Fatal(err)
	}
	p.until(`!document.querySelector("#words") && document.querySelector("#detail-body").innerText.includes("The reply is whole now.")`)
}

// A thousand tasks and thirty members are drawn, the landed ones are left out, and what waits in the inbox can be read
// and a task be tried again.
func testMany(t *testing.T, browser context.Context) {
	w := newWorld(t)
	bigScene(w)
	w.change(995, func(t *muster.Task) { t.Status, t.Result = muster.NeedsAttention, "three attempts have failed" })
	p := w.open(browser, 1440, 900)
	p.until(`document.querySelectorAll(".node").length > 200 && document.querySelectorAll(".member").length === 30`)
	p.picture("thousand")
	if all := value[string](p, `document.querySelector("#nodes").textContent`); strings.Contains(all, "landed") {
		t.Error("landed tasks are shown")
	}
	p.keys("n")
	p.until(`document.activeElement.textContent === "Try it again"`)
	p.keys(kb.Enter)
	p.until(`document.querySelectorAll(".need").length === 0`)
	if task, err := w.team.Tasks().Get(t.Context(), 995); err != nil || task.Status != muster.Pending {
		t.Errorf("the task is %s, %v", task.Status, err)
	}
}

// What a member says is text, whatever it looks like: nothing of it runs or becomes a link.
func testHostile(t *testing.T, browser context.Context) {
	w := newWorld(t)
	w.add(1)
	w.members("alice")
	w.aliceSays("<img src=x onerror=\"document.title='run'\">\n\n[click](javascript:document.title='run') **<b>bold</b>**\n\n```html\n<script>document.title='run'</script>\n```\n\n| <i>a</i> | b |\n|---|---|\n| <u>c</u> | d |")
	p := w.open(browser, 1280, 800)
	value[bool](p, `(location.hash = "member/alice", true)`)
	p.until(`document.querySelector(".markdown table")`)
	if got := value[string](p, `[...document.querySelectorAll(".markdown *")].map((e) => e.tagName).filter((n) => !["P", "PRE", "CODE", "STRONG", "SPAN", "DIV", "TABLE", "THEAD", "TBODY", "TR", "TH", "TD"].includes(n)).join() + document.title`); got != "repo - muster" {
		t.Errorf("there is %q", got)
	}
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
	p.until(`document.activeElement === document.body`)
	// A task is opened, and a line of its diff is commented on.
	p.untilFocus("j", `document.activeElement.dataset.task === "4"`)
	p.keys(kb.Enter)
	p.until(`document.querySelectorAll(".diff .plus").length === 4`)
	p.picture("keys-task")
	p.untilFocus(kb.Tab, `document.activeElement.ariaLabel === "Comment on line 5 of routes.go"`)
	p.keys(kb.Enter)
	p.until(`document.activeElement.matches(".diff textarea")`)
	p.keys("why no slash?", kb.Tab, kb.Enter)
	p.until(`document.querySelector(".diff .good")?.innerText === "sent to alice: why no slash?"`)
	mail, err := w.team.Mail().Pending(t.Context(), "alice")
	if err != nil || len(mail) == 0 || !strings.Contains(mail[len(mail)-1].Content, "routes.go:5") {
		t.Errorf("the mail of alice is %+v, %v", mail, err)
	}
	p.keys(kb.Escape)
	p.until(`document.querySelector("#detail").hidden && document.activeElement.dataset.task === "4"`)
	p.keys("?")
	p.until(`document.querySelector("#keys").open`)
	p.keys(kb.Escape)
	p.until(`!document.querySelector("#keys").open`)
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

// The page shows the team: wide and narrow, light and dark.
func testLooks(t *testing.T, browser context.Context) {
	w := newWorld(t)
	scene(w)
	// The picture in the README: MUSTER_IMAGE=$PWD/docs/images/web.png go test ./internal/web -run TestBrowser/looks
	if path := os.Getenv("MUSTER_IMAGE"); path != "" {
		p := w.open(browser, 1200, 800)
		p.until(`document.querySelectorAll("#events li").length > 10`)
		png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
		if err == nil {
			err = os.WriteFile(path, png, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, size := range []struct {
		name          string
		width, height int64
	}{{"wide", 1440, 900}, {"phone", 390, 844}} {
		p := w.open(browser, size.width, size.height)
		for _, theme := range []string{"light", "dark"} {
			p.theme(theme)
			p.picture(size.name + "-" + theme)
		}
		if over := value[int](p, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
			t.Errorf("%s: the page is %d pixels too wide", size.name, over)
		}
	}
}
