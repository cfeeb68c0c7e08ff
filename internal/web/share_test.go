package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"muster"
	"muster/internal/difflines"
	"muster/internal/redact"
	"muster/internal/testing/require"
	"muster/internal/transcript"
	"muster/journal"
	"muster/llm"
)

// A token as a forge gives it, and a key that only the user's environment names.
const (
	shareToken = "ghp_" + "x7Qm2Rk9Lw4Zt8Vb3Ny6Jc1Hd5Gs0Pf2Ka7e"
	shareKey   = "correct-horse-battery-staple-94"
)

// hostile is what a model may say to get a script into the page.
const hostile = "</script><script>document.title='run'</script><!-- <img src=x onerror=\"document.title='run'\"> \u2028 ]]>"

// sharePEM is a key of many lines. What it has is random and opens nothing.
var sharePEM = []string{"-----BEGIN RSA " + "PRIVATE KEY-----", "MIIEpAIBAAKCAQEA3vQ7kW9xT2mZ5bYc1LrD8nHs4fJ6pGqUeVoXiRaKtMwNzB0y",
	"Qd7Ew3Xr9Gh2Lk5Vn8Ts1Yp4Mc6Zb0Fj3Ua7Oi9Rq2We5Dt8Hx1Ks4Nv7Bm0Lg3C", "-----END RSA " + "PRIVATE KEY-----"}

// shareScene fills the world with a run whose conversation has keys, a hostile text and the home directory.
func shareScene(w *world) (home string) {
	w.Helper()
	home = filepath.Dir(w.dir)
	scene(w)
	w.aliceSays("I found "+shareToken+" in "+home+"/notes/.env, and "+shareKey+" elsewhere.", hostile, shareToken)
	input := require.Value(json.Marshal(map[string]string{"path": "key.pem", "content": strings.Join(sharePEM, "\n")}))(w)
	talk := require.Value(transcript.Open(w.Context(), w.store.Log(), "alice"))(w)
	require.NoError(w, talk.Reply(w.Context(), llm.Reply{Message: llm.Message{Role: llm.Assistant,
		Parts: llm.Parts{llm.Call{ID: "p1", Name: "write_file", Input: input}}}}))
	return home
}

func share(w *world, home string) (page []byte, said Shared) {
	w.Helper()
	page, said, err := New(w.team).Share(w.Context(), redact.New(shareKey), home)
	require.NoError(w, err)
	return page, said
}

// A private key of several lines is hidden in a difference too, which has each line for itself, and so is the home
// directory in the names of fields.
func TestShareHidesKeysOfDifferences(t *testing.T) {
	t.Parallel()
	pem := []string{sharePEM[0], strings.Repeat("kX9w", 16), strings.Repeat("Zb4q", 16), sharePEM[3]}
	for _, kind := range []difflines.Kind{difflines.Added, difflines.Removed} {
		d := details{Diff: &diff{}}
		for _, l := range pem {
			d.Diff.Lines = append(d.Diff.Lines, line{Kind: kind, Text: l})
		}
		b := sharing{answers: map[string]any{"api/task/1": d, "api/state": map[string]int{"script//home/ann/x": 1}}}
		data := string(require.Value(b.redact(redact.New(), "/home/ann"))(t))
		if strings.Contains(data, pem[1]) || strings.Contains(data, pem[2]) || strings.Contains(data, "/home/ann") {
			t.Errorf("%s", data)
		}
	}
}

// What is shared has the whole run, without keys and without the path of the home directory.
func TestShareHidesKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	page, said := share(w, shareScene(w))
	for _, secret := range []string{shareToken, shareKey, sharePEM[1], sharePEM[2], filepath.Dir(w.dir), "</script><script>", "<img"} {
		if i := bytes.Index(page, []byte(secret)); i >= 0 {
			t.Errorf("%q is in the page: %.200s", secret, page[max(0, i-60):])
		}
	}
	for _, want := range []string{`I found [secret] in ~/notes/.env, and [secret] elsewhere.`, `answer old routes with a redirect`} {
		if !bytes.Contains(page, []byte(want)) {
			t.Errorf("%q is not in the page", want)
		}
	}
	if said.Hidden != 7 || said.HomePaths == 0 || said.Members != 6 || said.Tasks != 14 || said.Diffs == 0 || said.Entries < 10 ||
		said.Events < 100 || said.Bytes != len(page) || said.IsCompressed || !said.IsUnderWay || said.EndedAt.Sub(said.StartedAt) < 39*time.Minute {
		t.Errorf("%+v", said)
	}
}

// A page of a run is as the server has it at each of its frames, also where the data is large.
func TestShareIsWhatTheServerShows(t *testing.T) {
	t.Parallel()
	w := makeWorld(t, true)
	w.past()
	w.members("alice")
	w.aliceSays(strings.Repeat("what a large run says. ", mostText/23), strings.Repeat("x", 10))
	for i := range 60 {
		w.aliceSays(strings.Repeat(fmt.Sprint("reply ", i, " "), 2000))
	}
	page, said := share(w, "")
	_, data, _ := strings.Cut(string(page), `<script type="text/plain" id="shared">`)
	data, _, _ = strings.Cut(data, "</script>")
	z := require.Value(gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(data))))(t)
	var got struct {
		Frames []frame
		Values []json.RawMessage
	}
	require.NoError(t, json.NewDecoder(z).Decode(&got))
	if !said.IsCompressed || len(got.Frames) < 5 || said.Events == 0 {
		t.Fatalf("%+v, %d frames", said, len(got.Frames))
	}
	for _, f := range got.Frames {
		var want map[string]json.RawMessage
		w.get(fmt.Sprint("/api/past?at=", json.Number(fmt.Sprintf("%f", f.At))), &want)
		for name, value := range want {
			var text string
			switch x := f.Fields[name].(type) {
			case float64:
				text = string(got.Values[int(x)])
			case []any:
				var all []string
				for _, i := range x {
					all = append(all, string(got.Values[int(i.(float64))]))
				}
				text = "[" + strings.Join(all, ",") + "]"
			}
			if name != "now" && name != "events" && !sameJSON(t, text, string(value)) {
				t.Errorf("at %v %s is %s, want %s", f.At, name, text, value)
			}
		}
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil &&
		string(require.Value(json.Marshal(x))(t)) == string(require.Value(json.Marshal(y))(t))
}

// A run of another time is not shared with the last one.
func TestShareHasOneRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.members("alice")
	w.aliceSays("words of an earlier run")
	began := muster.UnixTime(time.Now())
	w.put(muster.TableTeam, "run", muster.Run{Team: "api", Goal: "g", StartedAt: began})
	require.NoError(t, w.journal.Emit(t.Context(), muster.Event{Kind: journal.MemberSpawned, At: began + 1, Member: "alice"}))
	w.aliceSays("words of this run")
	page, said := share(w, "")
	if bytes.Contains(page, []byte("earlier run")) || !bytes.Contains(page, []byte("words of this run")) || said.Entries != 1 {
		t.Errorf("%+v\n%s", said, page)
	}
}

func TestShareWithoutARun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, _, err := New(w.team).Share(t.Context(), nil, ""); muster.HintOf(err) == "" {
		t.Errorf("%v", err)
	}
}

func TestShorten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"/home/ann/src/x.go": "~/src/x.go", "cd /home/ann": "cd ~", "in /home/ann.": "in ~.", "-I/home/ann/include": "-I~/include",
		"/home/anna/x": "/home/anna/x", "/home/ann.old/x": "/home/ann.old/x", "/home/ann-2": "/home/ann-2", "file:///home/ann/x": "file://~/x",
		"/srv/ann/x": "/srv/ann/x", "/ann/x:/ann/y": "~/x:~/y", "": "",
	} {
		if got, _ := shorten(text, []string{"/home/ann", "/ann"}); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	if got := homePaths("/"); len(got) > 0 {
		t.Errorf("the root is a home: %q", got)
	}
}

// The file opens from the disk: the slider moves, a conversation and a difference open, nothing can be changed, and what
// a model says is text.
func testShare(t *testing.T, browser context.Context) {
	w := newWorld(t)
	page, _ := share(w, shareScene(w))
	p := w.openFile(browser, page)
	p.until(`document.querySelector("#replay-time").textContent.endsWith(", 3 of 3 landed") && document.querySelectorAll(".member").length === 6`)
	p.picture("share")
	value[bool](p, `((e) => { e.value = 0; e.dispatchEvent(new Event("input")); return true; })(document.querySelector("#replay-at"))`)
	p.until(`document.querySelector("#replay-time").textContent.endsWith(", 0 of 3 landed") && document.querySelectorAll(".member").length === 0 && document.querySelectorAll("#events li").length < 3`)
	p.untilFocus(kb.Tab, `document.activeElement.id === "replay-next"`)
	p.keys(kb.Enter, kb.Enter, kb.Enter)
	p.until(`document.querySelector("#counts").textContent.includes("3 landed") && document.querySelectorAll("#events li").length > 50`)
	p.keys(kb.Enter) // to the end: the last words are those of now
	value[bool](p, `(location.hash = "member/alice", true)`)
	p.until(`document.querySelector("#detail-body").innerText.includes("<script>document.title='run'") && document.querySelector("#detail-body").innerText.includes("I found [secret]")`)
	for hash, shows := range map[string]string{"task/4": ".diff .plus", "inbox": ".mail", "spending": ".chart", "member/alice": ".edit"} {
		value[bool](p, `(location.hash = "`+hash+`", true)`)
		p.until(`document.querySelectorAll("#detail ` + shows + `").length > 0`)
		const writes = `[...document.querySelectorAll("form, #control, .need button, .diff button, #detail-body button:not([aria-expanded])")].filter((e) => e.checkVisibility()).map((e) => e.outerHTML).join()`
		if got := value[string](p, writes); got != "" {
			t.Errorf("at %s it offers %s", hash, got)
		}
	}
	p.keys(kb.Escape)
	p.until(`document.querySelector("#detail").hidden`)
	if got := value[string](p, `document.title + document.scripts.length + document.querySelector("#trouble").textContent + document.querySelectorAll("img").length`); got != "(3) api-v2 - muster20" {
		t.Errorf("the page is %q", got)
	}
	if got := value[string](p, `performance.getEntriesByType("resource").map((e) => e.name).filter((n) => !n.startsWith("data:")).join()`); got != "" {
		t.Errorf("it loads %s", got)
	}
	const sends = `fetch("http://127.0.0.1:1/").then(() => "sent", (e) => e.message + new Image().src)`
	if got := value[string](p, sends); !strings.Contains(got, "Content Security Policy") && !strings.Contains(got, "Failed to fetch") {
		t.Errorf("it connects: %s", got)
	}
}

// A large run is compressed, and the browser reads it.
func testLargeShare(t *testing.T, browser context.Context) {
	w := newWorld(t)
	scene(w)
	for i := range 60 {
		w.aliceSays(strings.Repeat(fmt.Sprint("reply ", i, " "), 2000))
	}
	page, said := share(w, "")
	if !said.IsCompressed {
		t.Fatalf("%+v", said)
	}
	p := w.openFile(browser, page)
	p.until(`document.querySelector("#replay-time").textContent.endsWith(", 3 of 3 landed") && document.querySelectorAll(".member").length === 6`)
}

// openFile opens a page from the disk, when the server has ended.
func (w *world) openFile(browser context.Context, page []byte) *tab {
	w.Helper()
	path := filepath.Join(w.TempDir(), "a run.html")
	require.NoError(w, os.WriteFile(path, page, 0o600))
	ctx, _ := chromedp.NewContext(browser) //nolint:govet // The browser's end ends it.
	p := &tab{w.TB, ctx}
	require.NoError(w, chromedp.Do(ctx, chromedp.EmulateViewport(1280, 800)))
	w.stop() // no server answers
	p.do(chromedp.Navigate("file://" + path))
	return p
}
