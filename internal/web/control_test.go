package web

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"muster/internal/testing/gittest"
	"muster/internal/testing/program"
	"muster/internal/testing/require"
	"muster/internal/testing/wait"
)

// controlled are the words of a team whose teammate works until the file go is there.
const controlled = `
speakers:
  lead:
    - do: [{task_create: {subject: greet}}, {spawn_teammate: {name: alice, role: coder, prompt: You write code.}}]
    - say: "alice is at it."
scenes:
  - cue: All done
    who: [lead]
    turns:
      - say: "All of it has landed."
  - cue: 'Interrupted'
    who: [alice]
    turns:
      - do: [{bash: {command: "while [ ! -e \"$BASE/go\" ]; do sleep 0.05; done; echo hello > greeting"}}]
  - cue: '(?m)^Task #(?P<id>\d+): (?P<what>\w+)'
    who: [alice]
    turns:
      - do: [{bash: {command: "while [ ! -e \"$BASE/go\" ]; do sleep 0.05; done; echo hello > greeting"}}]
      - do: [{complete_task: {task_id: "${number:id}", summary: "Says hello."}}]
`

// twice presses a button as the keyboard does, and again when it asks.
func (p *tab) twice(id string) {
	p.Helper()
	p.until(`document.querySelector("#` + id + `").offsetParent !== null && document.querySelector("#` + id + `").getAttribute("aria-disabled") !== "true" && (document.querySelector("#` + id + `").focus(), document.activeElement.id === "` + id + `")`)
	p.keys(kb.Enter)
	p.until(`document.querySelector("#` + id + `").textContent.endsWith("press again") && document.querySelector("#control-said").textContent !== ""`)
	p.picture("control-" + id)
	p.keys(kb.Enter)
}

// The real program: a team is started in the page, seen at work, stopped, started again, and its work is taken.
func testControl(t *testing.T, browser context.Context) {
	muster := program.Path(t)
	dir := gittest.Repo(t, map[string]string{"README": "a few words\n"})
	base := filepath.Dir(dir)
	words := filepath.Join(base, "words.yaml")
	require.NoError(t, os.WriteFile(words, []byte(controlled), 0o600))
	address, stop := serve(t, muster, dir, "MUSTER_MODEL=script/"+words, "BASE="+base, "MUSTER_ENVIRONMENT_PASS=BASE")
	defer stop()
	ctx, _ := chromedp.NewContext(browser) //nolint:govet // The browser's end ends it.
	p := &tab{t, ctx}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1280, 800), chromedp.Navigate(address)); err != nil { // see open
		t.Fatal(err)
	}
	p.until(`document.querySelector("#none").offsetParent !== null`)

	// Nothing happens without a goal, nor at the first press.
	p.until(`document.querySelector("#start-team").offsetParent !== null && document.querySelectorAll("#stop:not([hidden]), #resume:not([hidden]), #merge:not([hidden])").length === 0`)
	p.until(`(document.querySelector("#start-team").click(), document.activeElement.id === "goal-text")`)
	p.keys("greet -- who comes", kb.Tab, kb.Enter)
	p.until(`document.activeElement.textContent === "Start: press again"`)
	p.do(chromedp.KeyEvent(kb.Tab, chromedp.KeyModifiers(kb.ModifierShift)))
	p.until(`document.querySelector("#start-team").textContent === "Start" && document.querySelector("#control-said").textContent === ""`)
	if _, err := os.Stat(filepath.Join(dir, ".muster")); err == nil {
		t.Error("a team was started at the first press")
	}
	p.twice("start-team")
	p.until(`document.querySelector("#goal").textContent === "greet -- who comes" && document.querySelector(".member.working .does")?.textContent !== ""`)
	p.until(`[...document.querySelectorAll(".member")].some((m) => m.innerText.includes("bash while"))`)
	p.until(`document.querySelector("#start").hidden && document.querySelector("#resume").hidden && document.querySelector("#merge").hidden`)

	p.twice("stop")
	p.until(`document.querySelector("#control-said").textContent.includes("state is kept")`)
	p.until(`document.querySelector("#resume").offsetParent !== null && document.querySelector("#stop").hidden`)
	p.picture("control-stopped")

	p.twice("resume")
	p.until(`document.querySelector("#stop").offsetParent !== null && document.querySelector("#control-said").textContent === ""`)
	gittest.Write(t, base, map[string]string{"go": ""})
	p.until(`document.querySelector("#merge").offsetParent !== null`)
	if _, err := os.Stat(filepath.Join(dir, "greeting")); err == nil {
		t.Error("the work was taken already")
	}
	p.twice("merge")
	p.until(`document.querySelector("#control-said").textContent.includes("came to main by fast-forward") && document.querySelector("#merge").hidden`)
	p.until(`document.querySelectorAll(".node.landed").length === 1`) // nothing is open, so the board has what landed
	p.picture("control-taken")
	if got := gittest.Read(t, dir, "greeting"); got != "hello\n" {
		t.Errorf("the checkout has %q", got)
	}
	// The team is not the server's child. It still writes after its last event, so its process has to end first.
	stop()
	wait.Within(t, time.Minute, "the end of the run", func() bool {
		all, _ := filepath.Glob("/proc/[0-9]*/cwd")
		return !slices.ContainsFunc(all, func(cwd string) bool { at, _ := os.Readlink(cwd); return at == dir })
	})
}

func serve(b testing.TB, path, dir string, env ...string) (address string, stop func()) {
	b.Helper()
	c := exec.CommandContext(context.WithoutCancel(b.Context()), path, "web", "--no-open")
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	require.NoError(b, err)
	require.Value(fmt.Fscanln(out, &address))(b)
	base, _, _ := strings.Cut(address, "?")
	res := require.Value(http.DefaultTransport.RoundTrip(request(b, address, nil)))(b)
	res.Body.Close()
	state, err := http.DefaultTransport.RoundTrip(request(b, base+"api/state", res.Cookies()))
	if err != nil || state.StatusCode != http.StatusOK {
		b.Fatal(err, state.Status)
	}
	state.Body.Close()
	return address, func() { _ = c.Process.Signal(syscall.SIGINT); _ = c.Wait() }
}

func request(b testing.TB, url string, cookies []*http.Cookie) *http.Request {
	b.Helper()
	r := require.Value(http.NewRequestWithContext(b.Context(), http.MethodGet, url, nil))(b)
	for _, c := range cookies {
		r.AddCookie(c)
	}
	return r
}
