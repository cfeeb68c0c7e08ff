package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chromedp/chromedp"

	"muster"
	"muster/internal/testing/require"
)

// phone is an entrance for a phone without a network: each request goes to the handler.
type phone struct {
	testing.TB
	*Phone
	http.Handler
	mu   sync.Mutex
	told []PhoneEvent
}

const phoneHost = "192.168.1.23:4711"

func newPhone(t testing.TB, s *Server) *phone {
	p := &phone{TB: t}
	p.Phone = NewPhone(s, addrOnly{phoneHost}, func(e PhoneEvent) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.told = append(p.told, e)
	})
	p.Handler = p.handler()
	return p
}

func (p *phone) events() []PhoneEvent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.told)
}

// ask sends a request as the page would, with a cookie where the device has one.
func (p *phone) ask(method, path, body string, c *http.Cookie, change ...func(*http.Request)) *httptest.ResponseRecorder {
	p.Helper()
	r := httptest.NewRequestWithContext(context.Background(), method, path, strings.NewReader(body))
	r.Host = phoneHost
	if method != http.MethodGet {
		r.Header.Set("Origin", "http://"+phoneHost)
		r.Header.Set("Content-Type", "application/json")
	}
	if c != nil {
		r.AddCookie(c)
	}
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

// pairWith opens the address of a code, and returns the cookie of the device.
func (p *phone) pairWith(url string) *http.Cookie {
	p.Helper()
	w := p.ask(http.MethodGet, strings.TrimPrefix(url, "http://"+phoneHost), "", nil)
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/" || len(w.Result().Cookies()) != 1 {
		p.Fatalf("%d to %q: %s", w.Code, w.Header().Get("Location"), w.Body)
	}
	return w.Result().Cookies()[0]
}

// One device gets in by a code, with a secret of its own that no script reads, and a second one does not.
func TestACodePairsOneDevice(t *testing.T) {
	t.Parallel()
	s := New(nil)
	p := newPhone(t, s)
	if w := p.ask(http.MethodGet, "/?pair=", "", nil); w.Code != http.StatusForbidden {
		t.Errorf("without an invitation: %d", w.Code)
	}
	url := p.Invite()
	_, code, _ := strings.Cut(url, "/?pair=")
	if len(code) < 26 || strings.ToUpper(code) != code { // 26 letters of 5 bits
		t.Errorf("the code is %q", code)
	}
	for _, path := range []string{"/", "/app.js", "/api/state", "/nothing", "/?token=" + s.token} {
		if w := p.ask(http.MethodGet, path, "", nil); w.Code != http.StatusUnauthorized || strings.Contains(w.Body.String(), "<") {
			t.Errorf("%s before the pairing: %d %s", path, w.Code, w.Body)
		}
	}
	c := p.pairWith(url)
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || len(c.Value) != 64 || c.Value == s.token || c.Path != "/" {
		t.Errorf("the cookie is %v", c)
	}
	if w := p.ask(http.MethodGet, "/", "", c); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "<title>muster</title>") || w.Header().Get("Content-Security-Policy") != policy {
		t.Errorf("the page: %d %v", w.Code, w.Header())
	}
	if w := p.ask(http.MethodGet, "/?pair="+code, "", nil); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "used before") || len(w.Result().Cookies()) > 0 {
		t.Errorf("a second device: %d %s", w.Code, w.Body)
	}
	if w := p.ask(http.MethodGet, "/?pair="+code, "", c); w.Code != http.StatusSeeOther || len(w.Result().Cookies()) > 0 {
		t.Errorf("the paired device reads the code again: %d %s", w.Code, w.Body)
	}
	for _, value := range []string{s.token, code, ""} {
		if w := p.ask(http.MethodGet, "/", "", &http.Cookie{Name: c.Name, Value: value}); w.Code != http.StatusUnauthorized {
			t.Errorf("with the cookie %q: %d", value, w.Code)
		}
	}
	// A new code takes the place of the device.
	again := p.pairWith(p.Invite())
	for _, x := range []struct {
		*http.Cookie
		want int
	}{{c, http.StatusUnauthorized}, {again, http.StatusOK}} {
		if w := p.ask(http.MethodGet, "/", "", x.Cookie); w.Code != x.want {
			t.Errorf("after a new code: %d, want %d", w.Code, x.want)
		}
	}
	if got := p.events(); !slices.Equal(got, []PhoneEvent{PhonePaired, PhonePaired}) {
		t.Errorf("told %v", got)
	}
}

// Of many devices that send the code at once one gets in.
func TestACodeAtOnce(t *testing.T) {
	t.Parallel()
	p := newPhone(t, New(nil))
	path := strings.TrimPrefix(p.Invite(), "http://"+phoneHost)
	var in, others sync.WaitGroup
	got := make(chan int, 20)
	begin := make(chan struct{})
	for range cap(got) {
		in.Add(1)
		others.Go(func() {
			in.Done()
			<-begin
			got <- p.ask(http.MethodGet, path, "", nil).Code
		})
	}
	in.Wait()
	close(begin)
	others.Wait()
	close(got)
	paired := 0
	for code := range got {
		if code == http.StatusSeeOther {
			paired++
		}
	}
	if paired != 1 {
		t.Errorf("%d devices are paired", paired)
	}
}

func TestWrongCodesCloseAPairing(t *testing.T) {
	t.Parallel()
	p := newPhone(t, New(nil))
	url := p.Invite()
	path := strings.TrimPrefix(url, "http://"+phoneHost)
	wrong := func() {
		if w := p.ask(http.MethodGet, path+"X", "", nil); w.Code != http.StatusForbidden {
			t.Errorf("a wrong code: %d", w.Code)
		}
	}
	for range mostWrong - 1 {
		wrong()
	}
	c := p.pairWith(url) // four are not five
	for range 2 * mostWrong {
		wrong() // what is paired stays: nothing can be guessed any more
	}
	if w := p.ask(http.MethodGet, "/", "", c); w.Code != http.StatusOK {
		t.Errorf("the paired device: %d", w.Code)
	}
	url = p.Invite()
	path = strings.TrimPrefix(url, "http://"+phoneHost)
	for range mostWrong {
		wrong()
	}
	if w := p.ask(http.MethodGet, path, "", nil); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "no code is valid") {
		t.Errorf("the right code after five wrong ones: %d %s", w.Code, w.Body)
	}
	if got := p.events(); !slices.Equal(got, []PhoneEvent{PhonePaired, PhoneClosed}) {
		t.Errorf("told %v", got)
	}
	p.pairWith(p.Invite())
}

// A pairing and a code end after 15 minutes without use. What is being sent ends with them.
func TestAPairingEndsWithoutUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPhone(t, New(nil))
		url := p.Invite()
		time.Sleep(pairingIdle - time.Second)
		c := p.pairWith(url)
		for range 3 { // each use counts anew
			time.Sleep(pairingIdle - time.Second)
			if w := p.ask(http.MethodGet, "/app.js", "", c); w.Code != http.StatusOK {
				t.Fatalf("in use: %d", w.Code)
			}
		}
		p.ask(http.MethodGet, "/", "", nil) // that of another device is none
		p.Phone.mu.Lock()
		ended := p.Phone.pairing.ended
		p.Phone.mu.Unlock()
		time.Sleep(pairingIdle - time.Second)
		isOver := func() bool {
			select {
			case <-ended:
				return true
			default:
				return false
			}
		}
		if isOver() {
			t.Error("it ends too early")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if !isOver() {
			t.Error("it has not ended")
		}
		if w := p.ask(http.MethodGet, "/app.js", "", c); w.Code != http.StatusUnauthorized {
			t.Errorf("afterwards: %d", w.Code)
		}
		url = p.Invite()
		time.Sleep(pairingIdle)
		synctest.Wait()
		if w := p.ask(http.MethodGet, strings.TrimPrefix(url, "http://"+phoneHost), "", nil); w.Code != http.StatusForbidden {
			t.Errorf("a code that nobody has used: %d", w.Code)
		}
		if got := p.events(); !slices.Equal(got, []PhoneEvent{PhonePaired, PhoneIdle, PhoneIdle}) {
			t.Errorf("told %v", got)
		}
		p.Invite()
		p.over(nil) // no timer is left
	})
}

// What a paired phone may do. All else is refused, also what is added to the routes later.
var phoneMay = []string{"GET /api/state", "GET /api/events", "GET /api/member/{name}", "GET /api/task/{id}", "GET /api/inbox", "POST /api/code",
	"GET /api/history", "GET /api/past", "POST /api/answer", "POST /api/mail"}

func TestAPhoneReadsAndAnswersOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add(1)
	w.members("alice")
	q := w.aliceAsks("do it")
	w.server.Launch = func(context.Context, string) error { t.Error("a team starts"); return nil }
	w.server.Merge = func(context.Context) (string, error) { t.Error("the work is taken"); return "", nil }
	p := newPhone(t, w.server)
	c := p.pairWith(p.Invite())
	// An answer and a stream take long or change something, so these are asked for below.
	isFile := func(pattern string) bool {
		return !strings.Contains(pattern, "/api/") && strings.HasPrefix(pattern, "GET /")
	}
	seen := 0
	for _, r := range w.server.routes() {
		method, path, _ := strings.Cut(r.pattern, " ")
		path = strings.NewReplacer("{name}", "alice", "{id}", "1", "{$}", "").Replace(path)
		may := slices.Contains(phoneMay, r.pattern) || isFile(r.pattern)
		if may {
			seen++
			if r.phone == nil {
				t.Errorf("%s is refused", r.pattern)
			}
			continue
		}
		if got := p.ask(method, path, changes[path], c); got.Code != http.StatusForbidden || r.phone != nil {
			t.Errorf("%s: %d %s", r.pattern, got.Code, got.Body)
		}
	}
	if files := len(pageFiles()); seen != len(phoneMay)+files {
		t.Errorf("%d of %d routes are there", seen, len(phoneMay)+files)
	}
	for _, x := range []struct {
		method, path, body string
		want               int
	}{
		{http.MethodPost, "/api/state", "{}", http.StatusForbidden}, {http.MethodPost, "/", "{}", http.StatusForbidden},
		{http.MethodPost, "/api/new", "{}", http.StatusForbidden}, {http.MethodPost, "/api/answer/", "{}", http.StatusForbidden},
		{http.MethodGet, "/nothing", "", http.StatusForbidden}, {http.MethodPut, "/api/mail", "{}", http.StatusMethodNotAllowed},
		{http.MethodGet, "/api/task/1", "", http.StatusOK}, {http.MethodGet, "/api/member/alice", "", http.StatusOK},
		{http.MethodGet, "/api/inbox", "", http.StatusOK}, {http.MethodGet, "/api/history", "", http.StatusOK},
		{http.MethodPost, "/api/mail", `{"to":"alice","text":"x"}`, http.StatusForbidden},
		{http.MethodPost, "/api/mail", `{"to":"all","text":"x"}`, http.StatusForbidden},
		{http.MethodPost, "/api/mail", `{"to":"lead","text":"go on"}`, http.StatusOK},
		{http.MethodPost, "/api/answer", `{"id":"` + string(q.ID) + `","approve":true,"scope":"always"}`, http.StatusForbidden},
		{http.MethodPost, "/api/answer", `{"id":"` + string(q.ID) + `","approve":true,"scope":"run"}`, http.StatusForbidden},
		{http.MethodPost, "/api/answer", `{"id":"` + string(q.ID) + `","approve":true}`, http.StatusOK},
	} {
		if got := p.ask(x.method, x.path, x.body, c); got.Code != x.want {
			t.Errorf("%s %s %s: %d %s", x.method, x.path, x.body, got.Code, got.Body)
		}
	}
	var s state
	if got := p.ask(http.MethodGet, "/api/state", "", c).Body.String(); !strings.Contains(got, `"is_phone":true`) || !strings.Contains(got, `"can":{"start":false,"resume":false,"stop":false,"merge":false}`) {
		t.Errorf("the state is %s", got)
	}
	if w.get("/api/state", &s); s.IsPhone || !s.Can.Stop {
		t.Errorf("on this machine: %+v", s.Can)
	}
	mail, err := w.team.Mail().Pending(t.Context(), muster.Lead)
	if err != nil || len(mail) != 2 || mail[1].Content != "go on" { // that of the request, too
		t.Errorf("the mail of the lead is %+v, %v", mail, err)
	}
	if now, err := w.team.Requests().Get(t.Context(), q.ID); err != nil || now.Status != muster.RequestApproved {
		t.Errorf("the request is %s, %v", now.Status, err)
	}
}

// The Host and the Origin are the address on the terminal, whatever names the page on this machine has.
func TestAPhoneAsksAtOneAddress(t *testing.T) {
	t.Parallel()
	s := New(nil)
	s.Hosts = []string{"box.example.dev", "localhost:8080"}
	p := newPhone(t, s)
	c := p.pairWith(p.Invite())
	for _, host := range []string{"evil.example:4711", "192.168.1.23", "192.168.1.23:80", "localhost:4711", "127.0.0.1:4711", "box.example.dev", "192.168.1.23.evil.example:4711", ""} {
		for _, path := range []string{"/app.js", "/?pair=x"} {
			w := p.ask(http.MethodGet, path, "", c, func(r *http.Request) { r.Host = host })
			if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "only to the address") {
				t.Errorf("%s of host %q: %d %s", path, host, w.Code, w.Body)
			}
		}
	}
	for name, spoil := range map[string]func(*http.Request){
		"a foreign origin":   func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") },
		"the origin null":    func(r *http.Request) { r.Header.Set("Origin", "null") },
		"another port":       func(r *http.Request) { r.Header.Set("Origin", "http://192.168.1.23:80") },
		"a named host":       func(r *http.Request) { r.Header.Set("Origin", "https://box.example.dev") },
		"the other page":     func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:4711") },
		"no origin":          func(r *http.Request) { r.Header.Del("Origin") },
		"a cross-site fetch": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"a neighbour's port": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
	} {
		if w := p.ask(http.MethodPost, "/api/mail", `{"to":"lead","text":"x"}`, c, spoil); w.Code != http.StatusForbidden {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

func TestListenForAPhone(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"8.8.8.8", "127.0.0.1", "0.0.0.0", "169.254.1.1", "::", "2001:db8::1"} {
		l, err := ListenPhone(t.Context(), netip.MustParseAddr(addr))
		if err == nil {
			l.Close()
		}
		if muster.HintOf(err) == "" {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

// A phone shows the team without scrolling to the side, answers a question and writes to the lead. It offers nothing
// else, and says so when its pairing has ended.
func testPhone(t *testing.T, browser context.Context) {
	w := newWorld(t)
	scene(w)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	over := make(chan error, 1)
	p := NewPhone(w.server, require.Value(Listen(t.Context(), "127.0.0.1:0"))(t), func(PhoneEvent) {})
	go func() { over <- p.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
	tabCtx, _ := chromedp.NewContext(browser) //nolint:govet // The browser's end ends it.
	tab := &tab{t, tabCtx}
	require.NoError(t, chromedp.Do(tabCtx, chromedp.EmulateViewport(390, 844)))
	tab.do(chromedp.Navigate(p.Invite()))
	tab.until(`document.querySelectorAll(".need").length === 3 && document.querySelector("#link").textContent === "live"`)
	const wide = `document.documentElement.scrollWidth - innerWidth`
	const writes = `[...document.querySelectorAll("form, #control, .bar button:not(.yes, .no), .diff button, #detail-body button:not([aria-expanded])")].filter((e) => e.checkVisibility()).map((e) => e.id || e.textContent).join()`
	for _, x := range []struct{ hash, offers string }{
		{"", ""}, {"task/4", "detail-close"}, {"member/bob", "detail-close"}, {"member/lead", "detail-close,mail"}, {"inbox", "detail-close"}, {"spending", "detail-close"}, {"task/13", "detail-close"},
	} {
		value[bool](tab, `(location.hash = "`+x.hash+`", true)`)
		if x.hash != "" {
			tab.until(`!document.querySelector("#detail").hidden && document.querySelector("#detail-body").children.length > 0`)
		}
		tab.picture("phone-" + x.hash)
		if got := value[string](tab, writes); got != x.offers {
			t.Errorf("at %q it offers %q, want %q", x.hash, got, x.offers)
		}
		if over := value[int](tab, wide); over > 0 {
			t.Errorf("at %q it is %d pixels too wide", x.hash, over)
		}
	}
	value[bool](tab, `(location.hash = "member/lead", true)`)
	tab.until(`!document.querySelector("#mail").hidden`)
	value[bool](tab, `(document.querySelector("#mail-text").value = "keep the order", document.querySelector("#mail [type=submit]").click(), true)`)
	tab.until(`document.querySelector("#mail-label").textContent === "sent to lead"`)
	value[bool](tab, `(document.querySelector("#detail-close").click(), true)`)
	value[bool](tab, `(document.querySelector(".need .yes").click(), true)`)
	tab.until(`document.querySelector(".need.answered")?.innerText.includes("You: approved")`)
	tab.picture("phone-answered")
	p.over(nil)
	tab.until(`document.querySelector("#link").textContent === "not connected" && document.querySelector("#trouble").textContent.includes("its pairing has ended")`)
}
